/*
 * bounds.bounds-of-nothing: mpich 4.0.2
 * 1 of contiguous(1,darray(2,1,[1],[block],[default],[2],C,byte))
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb 0 extent 1
 * got: lb 0 extent 0
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_darray(2, 1, 1, (int[]){1}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2}, MPI_ORDER_C, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_contiguous(1, t1, &t2));
    return t2;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 1);
}
