/*
 * misuse.pack-short-buffer: mpich 5.0.2
 * (position = 0, MPI_Pack(memory, 2, MPI_INT, stream, 7, &position, MPI_COMM_SELF))
 * MPI 5.0, 5.2: outsize is at least the position after the call
 * expected: an error class
 * got: MPI_SUCCESS
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused((position = 0, MPI_Pack(memory, 2, MPI_INT, stream, 7, &position, MPI_COMM_SELF)));
}
