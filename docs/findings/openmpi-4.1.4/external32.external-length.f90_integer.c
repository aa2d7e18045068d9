/*
 * external32.external-length.f90_integer: openmpi 4.1.4
 * 1 of f90_integer(18)
 * MPI 5.0, 14.5.2: external32 has one form for every value: big-endian, in the size of its table
 * expected: 8 bytes
 * got: 4 bytes
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t0;
    CALL(MPI_Type_create_f90_integer(18, &t0));
    bounds(0, t0);
    return t0;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_INTEGER8);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
static const unsigned char external[] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
