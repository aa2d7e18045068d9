/*
 * elements.dies.mixed: mpich 4.0.2
 * 1 of struct([1,1],[0,4],[int,float])
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGFPE: Assertion failed in file src/binding/c/datatype/type_get_name.c at line 50: ((datatype)&(0x000000ff)) < MPIR_DATATYPE_N_BUILTIN
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_INT, MPI_FLOAT}, &t2));
    bounds(0, MPI_FLOAT);
    bounds(1, MPI_INT);
    bounds(2, t2);
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_FLOAT);
        break;
    case 1:
        entry(at, 4, 0, MPI_INT);
        break;
    case 2:
        row(at, 1, 1, 0, 1);
        row(at + 4, 1, 1, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
