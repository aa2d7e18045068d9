/*
 * elements.dies.darray: mpich 4.0.2
 * 1 of darray(1,0,[1],[cyclic],[4],[1],C,byte)
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process exits with status 1: Assertion failed in file src/binding/c/datatype/type_get_name.c at line 50: ((datatype)&(0x000000ff)) < MPIR_DATATYPE_N_BUILTIN
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_darray(1, 0, 1, (int[]){1}, (int[]){MPI_DISTRIBUTE_CYCLIC}, (int[]){4}, (int[]){1}, MPI_ORDER_C, MPI_BYTE, &t1));
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
        table(at, 1, (long[]){0}, (long[]){1}, extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
