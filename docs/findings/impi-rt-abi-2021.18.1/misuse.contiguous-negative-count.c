/*
 * misuse.contiguous-negative-count on Intel MPI 2021.18.1 (standard ABI)
 *
 * A call with a forbidden argument does not return an error.
 *
 * What the program does: It sets the error handler MPI_ERRORS_RETURN and makes the forbidden call
 * `MPI_Type_contiguous(-1, MPI_INT, &t)`.
 *
 * What MPI 5.0 says (section 5.1.2): The count of a constructor is a non-negative integer. The
 * standard does not require a library to detect forbidden arguments. In a library of high quality,
 * the call returns an error class.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process exits with status 2 and prints
 * `internal_Type_contiguous(31870): Negative count, value is -1`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused(MPI_Type_contiguous(-1, MPI_INT, &t));
}
