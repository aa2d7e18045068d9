/*
 * external32.dies.darray: mpich 4.0.2
 * 1 of darray(6,3,[5,1],[cyclic,block],[4,4],[2,3],C,byte)
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by signal 4: Assertion failed in file src/binding/c/datatype/type_get_name.c at line 50: ((datatype)&(0x000000ff)) < MPIR_DATATYPE_N_BUILTIN
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_darray(6, 3, 2, (int[]){5, 1}, (int[]){MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, (int[]){4, 4}, (int[]){2, 3}, MPI_ORDER_C, MPI_BYTE, &t1));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        table(at, 1, (long[]){4}, (long[]){1}, extents[0], 0);
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
