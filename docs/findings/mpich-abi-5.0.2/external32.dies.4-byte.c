/*
 * external32.dies.4-byte: mpich 5.0.2
 * 1 of logical4
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process exits with status 1: Assertion failed in file /mpich-5.0.2/src/mpi/datatype/typerep/src/typerep_yaksa_pack_external.c at line 187: 0
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_LOGICAL4);
    return MPI_LOGICAL4;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_LOGICAL4);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x00, 0x00, 0x00, 0x00};
static const unsigned char external[] = {0x00, 0x00, 0x00, 0x00};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
