/*
 * misuse.pack-short-buffer: intel 2021.18.1
 * (position = 0, MPI_Pack(memory, 2, MPI_INT, stream, 7, &position, MPI_COMM_SELF))
 * MPI 5.0, 5.2: outsize is at least the position after the call
 * expected: an error class
 * got: the process exits with status 13: internal_Pack(30686): Size of data to pack (8 bytes) is larger than remaining space in pack buffer (7 bytes)
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_MISUSE
#include "../finding.h"

static void check(MPI_Datatype t)
{
    check_refused((position = 0, MPI_Pack(memory, 2, MPI_INT, stream, 7, &position, MPI_COMM_SELF)));
}
