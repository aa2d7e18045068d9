/*
 * bytes.byte-stride--1: openmpi 5.0.11
 * 1 of vector(2,1,-1,byte)
 * MPI 5.0, 5.2: what is packed and unpacked again, or sent, arrives as it was
 * expected: packed byte 1 is 0x66
 * got: packed byte 1 is 0xa5
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, -1, MPI_BYTE, &t1));
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
        row(at, 2, 1, -1 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 1, ROUND_TRIP);
}
