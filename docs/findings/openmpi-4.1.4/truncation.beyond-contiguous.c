/*
 * truncation.beyond-contiguous: openmpi 4.1.4
 * 1 of byte
 * MPI 5.0, 3.2.4: a message that does not fit is an overflow error; nothing but the locations of the receive's type map is written
 * expected: nothing written beyond the receive
 * got: of 6144 bytes for 4096, 2041 behind it
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_TRUNCATION
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_BYTE);
    return MPI_BYTE;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_truncation(t, 4, (long[]){0, 4096, 65536, 163840}, WRITTEN);
}
