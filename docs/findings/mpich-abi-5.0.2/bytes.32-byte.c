/*
 * bytes.32-byte: mpich 5.0.2
 * 1 of vector(2,1,2,complex32)
 * MPI 5.0, 5.2: what is packed and unpacked again, or sent, arrives as it was
 * expected: packed byte 10 is 0x5f
 * got: packed byte 10 is 0xee
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, 2, MPI_COMPLEX32, &t1));
    bounds(0, MPI_COMPLEX32);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 32, 0, MPI_COMPLEX32);
        break;
    case 1:
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 1, ROUND_TRIP);
}
