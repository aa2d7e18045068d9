/*
 * misuse.darray-rank-outside on Intel MPI 2021.18.1 (standard ABI)
 *
 * A call with a forbidden argument does not return an error.
 *
 * What the program does: It sets the error handler MPI_ERRORS_RETURN and makes the forbidden call
 * `MPI_Type_create_darray(2, 2, 1, (int[]){4}, (int[]){MPI_DISTRIBUTE_BLOCK},
 * (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2}, MPI_ORDER_C, MPI_INT, &t)`.
 *
 * What MPI 5.0 says (section 5.1.4): The rank is less than the size of the process group. The
 * standard does not require a library to detect forbidden arguments. In a library of high quality,
 * the call returns an error class.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process exits with status 6 and prints
 * `internal_Type_create_darray(32074): Argument rank has value 2 but must be within [0,1]`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused(MPI_Type_create_darray(2, 2, 1, (int[]){4}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2}, MPI_ORDER_C, MPI_INT, &t));
}
