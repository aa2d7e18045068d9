/*
 * external32.dies.empty-member: mpich 4.0.2
 * 1 of struct([1,1],[0,0],[darray(3,1,[1,1,1],[cyclic,none,none],[default,default,3],[3,1,1],C,byte),byte])
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
    CALL(MPI_Type_create_darray(3, 1, 3, (int[]){1, 1, 1}, (int[]){MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_NONE}, (int[]){MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG, 3}, (int[]){3, 1, 1}, MPI_ORDER_C, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){t1, MPI_BYTE}, &t2));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
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
        table(at, 0, (long[]){0}, (long[]){0}, extents[0], 0);
        break;
    case 2:
        row(at, 1, 1, 0, 1);
        row(at, 1, 1, 0, 0);
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
