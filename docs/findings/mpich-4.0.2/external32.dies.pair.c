/*
 * external32.dies.pair: mpich 4.0.2
 * 1 of double_int
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process exits with status 1: Assertion failed in file src/binding/c/datatype/type_get_name.c at line 50: ((datatype)&(0x000000ff)) < MPIR_DATATYPE_N_BUILTIN
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_DOUBLE_INT);
    return MPI_DOUBLE_INT;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_DOUBLE);
        entry(at + 8, 4, 0, MPI_INT);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0x40, 0x02, 0x00, 0x00, 0x00};
static const unsigned char external[] = {0x40, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
