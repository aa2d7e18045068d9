/*
 * elements.dies.darray: mpich 5.0.2
 * 1 of darray(6,0,[1,1,1],[cyclic,cyclic,block],[4,2,default],[2,1,3],Fortran,byte)
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process exits with status 1: Assertion failed in file /mpich-5.0.2/src/mpi/datatype/get_elements_x.c at line 233: 0
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_darray(6, 0, 3, (int[]){1, 1, 1}, (int[]){MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, (int[]){4, 2, MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2, 1, 3}, MPI_ORDER_FORTRAN, MPI_BYTE, &t1));
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
