/*
 * external32.external-size.4-byte: openmpi 5.0.11
 * 1 of wchar
 * MPI 5.0, 14.5.2: external32 has one form for every value: big-endian, in the size of its table
 * expected: 2
 * got: 4
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_WCHAR);
    return MPI_WCHAR;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_WCHAR);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x00, 0x00, 0x00};
static const unsigned char external[] = {0x00, 0x01};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
