/*
 * misuse.contiguous-negative-count: intel 2021.18.1
 * MPI_Type_contiguous(-1, MPI_INT, &t)
 * MPI 5.0, 5.1.2: the count of a constructor is a non-negative integer
 * expected: an error class
 * got: the process exits with status 2: internal_Type_contiguous(31870): Negative count, value is -1
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused(MPI_Type_contiguous(-1, MPI_INT, &t));
}
