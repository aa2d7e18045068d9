/*
 * misuse.subarray-start-outside on MPICH 5.0.2 (standard ABI)
 *
 * A call with a forbidden argument does not return an error.
 *
 * What the program does: It sets the error handler MPI_ERRORS_RETURN and makes the forbidden call
 * `MPI_Type_create_subarray(1, (int[]){4}, (int[]){2}, (int[]){3}, MPI_ORDER_C, MPI_INT, &t)`.
 *
 * What MPI 5.0 says (section 5.1.3): The start in a dimension is at most the size minus the
 * subsize. The standard does not require a library to detect forbidden arguments. In a library of
 * high quality, the call returns an error class.
 *
 * What MPICH 5.0.2 does: on this library, the call returns MPI_SUCCESS.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused(MPI_Type_create_subarray(1, (int[]){4}, (int[]){2}, (int[]){3}, MPI_ORDER_C, MPI_INT, &t));
}
