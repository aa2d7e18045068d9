/*
 * external32.external-unpacked.subarray: intel 2021.18.1
 * 1 of subarray([1],[1],[0],C,short)
 * MPI 5.0, 14.5.2: external32 has one form for every value: big-endian, in the size of its table
 * expected: the byte at displacement 0 is 0x01
 * got: the byte at displacement 0 is 0x00
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_subarray(1, (int[]){1}, (int[]){1}, (int[]){0}, MPI_ORDER_C, MPI_SHORT, &t1));
    bounds(0, MPI_SHORT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 2, 0, MPI_SHORT);
        break;
    case 1:
        table(at, 1, (long[]){0}, (long[]){1}, extents[0], 0);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x00};
static const unsigned char external[] = {0x00, 0x01};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
