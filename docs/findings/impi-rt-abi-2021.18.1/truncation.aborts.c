/*
 * truncation.aborts: intel 2021.18.1
 * 1 of byte
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process exits with status 15: (unknown)(): Other MPI error
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
