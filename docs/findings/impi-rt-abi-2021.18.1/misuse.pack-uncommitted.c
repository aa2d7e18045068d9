/*
 * misuse.pack-uncommitted: intel 2021.18.1
 * (position = 0, MPI_Type_contiguous(1, MPI_INT, &t), MPI_Pack(memory, 1, t, stream, 64, &position, MPI_COMM_SELF))
 * MPI 5.0, 5.1.9: a datatype must be committed before it is used in packing
 * expected: an error class
 * got: the process exits with status 3: internal_Pack(30658): Datatype has not been committed
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused((position = 0, MPI_Type_contiguous(1, MPI_INT, &t), MPI_Pack(memory, 1, t, stream, 64, &position, MPI_COMM_SELF)));
}
