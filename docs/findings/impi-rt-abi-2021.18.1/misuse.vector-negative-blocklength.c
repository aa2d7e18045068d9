/*
 * misuse.vector-negative-blocklength: intel 2021.18.1
 * MPI_Type_vector(2, -1, 3, MPI_INT, &t)
 * MPI 5.0, 5.1.2: a block length is a non-negative integer
 * expected: an error class
 * got: the process exits with status 13: internal_Type_vector(36166): Invalid value for blocklength, must be non-negative but is -1
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused(MPI_Type_vector(2, -1, 3, MPI_INT, &t));
}
