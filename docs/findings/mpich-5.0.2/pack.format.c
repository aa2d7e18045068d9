/*
 * pack.format: mpich 5.0.2
 * 17 of hvector(8,2,26,struct([1,1],[0,25],[resized(0,64,real16),byte]))
 * MPI 5.0, 5.2: the bytes of a packed buffer are the library's own affair
 * expected: packed byte 10 is 0x5f
 * got: packed byte 10 is 0xee
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(MPI_REAL16, 0, 64, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 25}, (MPI_Datatype[]){t2, MPI_BYTE}, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_create_hvector(8, 2, 26, t3, &t4));
    bounds(0, MPI_BYTE);
    bounds(1, MPI_REAL16);
    bounds(2, t2);
    bounds(3, t3);
    bounds(4, t4);
    return t4;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        entry(at, 16, 0, MPI_REAL16);
        break;
    case 2:
        walk(1, at);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        row(at + 25, 1, 1, 0, 0);
        break;
    case 4:
        row(at, 8, 2, 26, 3);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 17, FORMAT);
}
