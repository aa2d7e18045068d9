/*
 * bytes.struct: mpich 4.0.2
 * 1 of struct([1],[-1],[byte])
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
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){-1}, (MPI_Datatype[]){MPI_BYTE}, &t1));
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
        row(at + -1, 1, 1, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_collectives(t, 1, MOVES);
}
