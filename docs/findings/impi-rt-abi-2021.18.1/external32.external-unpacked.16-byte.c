/*
 * external32.external-unpacked.16-byte on Intel MPI 2021.18.1 (standard ABI)
 *
 * MPI_Unpack_external stores wrong values.
 *
 * The datatype: double_complex
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for one instance with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 14.5.2): Every value has exactly one representation in external32. It
 * is big-endian, and its size is that of the standard's table. By this rule, the byte at
 * displacement 6 is 0x30.
 *
 * What Intel MPI 2021.18.1 does: on this library, the byte at displacement 6 is 0xf8.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_DOUBLE_COMPLEX);
    return MPI_DOUBLE_COMPLEX;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 16, 0, MPI_DOUBLE_COMPLEX);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0xbf};
static const unsigned char external[] = {0x40, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbf, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
