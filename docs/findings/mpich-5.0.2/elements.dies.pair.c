/*
 * elements.dies.pair: mpich 5.0.2
 * 1 of float_int
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGFPE
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_FLOAT_INT);
    return MPI_FLOAT_INT;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_FLOAT);
        entry(at + 4, 4, 0, MPI_INT);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
