/*
 * misuse.contiguous-null-type on Intel MPI 2021.18.1 (standard ABI)
 *
 * A call with a forbidden argument does not return an error.
 *
 * What the program does: It sets the error handler MPI_ERRORS_RETURN and makes the forbidden call
 * `MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t)`.
 *
 * What MPI 5.0 says (section 5.1.2): The old datatype of a constructor is a valid datatype, which
 * MPI_DATATYPE_NULL is not. The standard does not require a library to detect forbidden arguments.
 * In a library of high quality, the call returns an error class.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process exits with status 3 and prints
 * `internal_Type_contiguous(31871): Datatype for argument datatype is a null datatype`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
}
