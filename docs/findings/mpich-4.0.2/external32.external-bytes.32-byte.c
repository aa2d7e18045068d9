/*
 * external32.external-bytes.32-byte on MPICH 4.0.2 (MPICH ABI)
 *
 * MPI_Pack_external writes wrong bytes.
 *
 * The datatype: cxx_long_double_complex
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for one instance with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 14.5.2): Every value has exactly one representation in external32. It
 * is big-endian, and its size is that of the standard's table. By this rule, the external32 byte 0
 * is 0x40.
 *
 * What MPICH 4.0.2 does: on this library, the external32 byte 0 is 0x00.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_CXX_LONG_DOUBLE_COMPLEX);
    return MPI_CXX_LONG_DOUBLE_COMPLEX;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 32, 1, MPI_CXX_LONG_DOUBLE_COMPLEX);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x03, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0xff, 0xbf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
static const unsigned char external[] = {0x40, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbf, 0xff, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
