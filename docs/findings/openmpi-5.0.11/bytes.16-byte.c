/*
 * bytes.16-byte: openmpi 5.0.11
 * 1 of hindexed([1,1],[0,8],double_complex)
 * MPI 5.0, 5.2: what is packed and unpacked again, or sent, arrives as it was
 * expected: packed byte 16 is 0x15
 * got: packed byte 16 is 0x66
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hindexed(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, MPI_DOUBLE_COMPLEX, &t1));
    bounds(0, MPI_DOUBLE_COMPLEX);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 16, 0, MPI_DOUBLE_COMPLEX);
        break;
    case 1:
        table(at, 2, (long[]){0, 8}, (long[]){1, 1}, 1, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 1, ROUND_TRIP);
}
