/*
 * pack.packed-after-others: mpich 4.0.2
 * 3 of hvector(1,1,4,byte)
 * MPI 5.0, 5.2: what is packed and unpacked again, or sent, arrives as it was
 * expected: 3 bytes
 * got: 2 bytes
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hvector(1, 1, 4, MPI_BYTE, &t1));
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
        row(at, 1, 1, 4, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 3, ROUND_TRIP);
}
