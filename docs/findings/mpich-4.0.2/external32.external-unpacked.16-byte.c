/*
 * external32.external-unpacked.16-byte: mpich 4.0.2
 * 1 of double_complex
 * MPI 5.0, 14.5.2: external32 has one form for every value: big-endian, in the size of its table
 * expected: the byte at displacement 6 is 0x30
 * got: the byte at displacement 6 is 0xf8
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
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
