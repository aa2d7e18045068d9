/*
 * external32.external-bytes.empty-member on Open MPI 5.0.11 (Open MPI ABI)
 *
 * MPI_Pack_external writes wrong bytes.
 *
 * The datatype: struct([1,1],[0,0],[byte,darray(2,1,[1],[block],[2],[2],C,short)])
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for 2 instances with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 14.5.2): Every value has exactly one representation in external32. It
 * is big-endian, and its size is that of the standard's table. By this rule, the external32 byte 1
 * is 0x02.
 *
 * What Open MPI 5.0.11 does: on this library, the external32 byte 1 is 0xa5.
 *
 * Other libraries: The program passes on Intel MPI 2021.18.1.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
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
