/*
 * external32.dies.f90_integer: mpich 5.0.2
 * 1 of f90_integer(2)
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process exits with status 1: Assertion failed in file /mpich-5.0.2/src/mpi/datatype/typerep/src/typerep_yaksa_pack_external.c at line 183: 0
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t0;
    CALL(MPI_Type_create_f90_integer(2, &t0));
    bounds(0, t0);
    return t0;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_INTEGER1);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01};
static const unsigned char external[] = {0x01};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
