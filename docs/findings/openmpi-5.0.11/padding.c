/*
 * padding: openmpi 5.0.11
 * 1 of vector(2,1,2,long_double)
 * MPI 5.0, 5.2: the bytes of a packed buffer are the library's own affair
 * expected: the bytes of a long double that hold no value as they were
 * got: other bytes there
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, 2, MPI_LONG_DOUBLE, &t1));
    bounds(0, MPI_LONG_DOUBLE);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 16, 1, MPI_LONG_DOUBLE);
        break;
    case 1:
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 1, PADDING);
}
