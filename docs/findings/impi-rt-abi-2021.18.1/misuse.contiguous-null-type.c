/*
 * misuse.contiguous-null-type: intel 2021.18.1
 * MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t)
 * MPI 5.0, 5.1.2: MPI_DATATYPE_NULL is no datatype that a constructor takes
 * expected: an error class
 * got: the process exits with status 3: internal_Type_contiguous(31871): Datatype for argument datatype is a null datatype
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
}
