/*
 * misuse.subarray-subsize-zero: intel 2021.18.1
 * MPI_Type_create_subarray(1, (int[]){4}, (int[]){0}, (int[]){0}, MPI_ORDER_C, MPI_INT, &t)
 * MPI 5.0, 5.1.3: a subsize is at least 1
 * expected: an error class
 * got: MPI_SUCCESS
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused(MPI_Type_create_subarray(1, (int[]){4}, (int[]){0}, (int[]){0}, MPI_ORDER_C, MPI_INT, &t));
}
