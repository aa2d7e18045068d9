/*
 * commit.fresh-name: openmpi 5.0.11
 * 1 of vector(0,0,0,byte)
 * MPI 5.0, 7.8: a datatype has the name that it was given last, and an empty one until then
 * expected: no name of a new datatype
 * got: Dup MPI_EMPTY
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_COMMIT
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(0, 0, 0, MPI_BYTE, &t1));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    return t1;
}

static MPI_Datatype orphaned(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(0, 0, 0, MPI_BYTE, &t1));
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        row(at, 0, 0, 0 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_commit(t, 1, 1);
}
