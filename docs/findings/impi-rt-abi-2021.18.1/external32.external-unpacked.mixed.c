/*
 * external32.external-unpacked.mixed on Intel MPI 2021.18.1 (standard ABI)
 *
 * MPI_Unpack_external stores wrong values.
 *
 * The datatype: struct([1,1],[0,2],[short,byte])
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for one instance with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 14.5.2): Every value has exactly one representation in external32. It
 * is big-endian, and its size is that of the standard's table. By this rule, the byte at
 * displacement 0 is 0x01.
 *
 * What Intel MPI 2021.18.1 does: on this library, the byte at displacement 0 is 0x00.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
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
