/*
 * external32.external-unpacked.mixed: intel 2021.18.1
 * 1 of struct([1,1],[0,2],[short,byte])
 * MPI 5.0, 14.5.2: external32 has one form for every value: big-endian, in the size of its table
 * expected: the byte at displacement 0 is 0x01
 * got: the byte at displacement 0 is 0x00
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 2}, (MPI_Datatype[]){MPI_SHORT, MPI_BYTE}, &t2));
    bounds(0, MPI_BYTE);
    bounds(1, MPI_SHORT);
    bounds(2, t2);
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        entry(at, 2, 0, MPI_SHORT);
        break;
    case 2:
        row(at, 1, 1, 0, 1);
        row(at + 2, 1, 1, 0, 0);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x00, 0x02};
static const unsigned char external[] = {0x00, 0x01, 0x02};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
