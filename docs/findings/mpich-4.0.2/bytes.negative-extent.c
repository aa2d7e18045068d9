/*
 * bytes.negative-extent: mpich 4.0.2
 * 2 of resized(0,-1,byte)
 * MPI 5.0, 5.2: only what the type map names is written
 * expected: nothing written outside the true bounds
 * got: bytes there changed
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_COLLECTIVES
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_resized(MPI_BYTE, 0, -1, &t1));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        walk(0, at);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_collectives(t, 2, MOVES);
}
