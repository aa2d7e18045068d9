/*
 * bytes.negative-extent: mpich 5.0.2
 * 2 of contiguous(2,resized(0,-2,contiguous(2,byte)))
 * MPI 5.0, 5.2: what is packed and unpacked again, or sent, arrives as it was
 * expected: packed byte 4 is 0x45
 * got: packed byte 4 is 0xa5
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(2, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(t1, 0, -2, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_contiguous(2, t2, &t3));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    bounds(2, t2);
    bounds(3, t3);
    return t3;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        row(at, 1, 2, 0, 0);
        break;
    case 2:
        walk(1, at);
        break;
    case 3:
        row(at, 1, 2, 0, 2);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 2, ROUND_TRIP);
}
