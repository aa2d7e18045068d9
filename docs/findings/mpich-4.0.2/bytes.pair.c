/*
 * bytes.pair: mpich 4.0.2
 * 1 of struct([1,1],[0,1],[byte,double_int])
 * MPI 5.0, 3.3.1: a message between datatypes of one signature moves every value
 * expected: the byte at displacement 1 is 0xf3
 * got: the byte at displacement 1 is 0x13
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 1}, (MPI_Datatype[]){MPI_BYTE, MPI_DOUBLE_INT}, &t2));
    bounds(0, MPI_DOUBLE_INT);
    bounds(1, MPI_BYTE);
    bounds(2, t2);
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_DOUBLE);
        entry(at + 8, 4, 0, MPI_INT);
        break;
    case 1:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 2:
        row(at, 1, 1, 0, 1);
        row(at + 1, 1, 1, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
