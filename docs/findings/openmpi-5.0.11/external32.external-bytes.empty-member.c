/*
 * external32.external-bytes.empty-member: openmpi 5.0.11
 * 2 of struct([1,1],[0,0],[byte,darray(2,1,[1],[block],[2],[2],C,short)])
 * MPI 5.0, 14.5.2: external32 has one form for every value: big-endian, in the size of its table
 * expected: external32 byte 1 is 0x02
 * got: external32 byte 1 is 0xa5
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_darray(2, 1, 1, (int[]){1}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){2}, (int[]){2}, MPI_ORDER_C, MPI_SHORT, &t1));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){MPI_BYTE, t1}, &t3));
    bounds(0, MPI_SHORT);
    bounds(1, t1);
    bounds(2, MPI_BYTE);
    bounds(3, t3);
    return t3;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 2, 0, MPI_SHORT);
        break;
    case 1:
        table(at, 0, (long[]){0}, (long[]){0}, extents[0], 0);
        break;
    case 2:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        row(at, 1, 1, 0, 1);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x02};
static const unsigned char external[] = {0x01, 0x02};

static void check(MPI_Datatype t)
{
    check_external32(t, 2, values, external, sizeof external);
}
