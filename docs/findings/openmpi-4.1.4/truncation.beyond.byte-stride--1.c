/*
 * truncation.beyond.byte-stride--1: openmpi 4.1.4
 * 1 of vector(2,1,-1,byte)
 * MPI 5.0, 3.2.4: a message that does not fit is an overflow error; nothing but the locations of the receive's type map is written
 * expected: nothing written beyond the receive
 * got: of 4 bytes for 2, 1 behind it
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_TRUNCATION
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
    check_truncation(t, 4, (long[]){0, 4096, 65536, 163840}, WRITTEN);
}
