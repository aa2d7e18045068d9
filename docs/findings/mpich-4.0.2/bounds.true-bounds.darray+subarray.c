/*
 * bounds.true-bounds.darray+subarray: mpich 4.0.2
 * 1 of darray(3,0,[1,1],[block,cyclic],[3,2],[1,3],C,subarray([2],[1],[1],C,byte))
 * MPI 5.0, 5.1.8: true bounds are those of the entries of the type map alone, whatever its markers say
 * expected: lb 1 extent 1
 * got: lb 0 extent 2
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_subarray(1, (int[]){2}, (int[]){1}, (int[]){1}, MPI_ORDER_C, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_darray(3, 0, 2, (int[]){1, 1}, (int[]){MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, (int[]){3, 2}, (int[]){1, 3}, MPI_ORDER_C, t1, &t2));
    return t2;
}

static void check(MPI_Datatype t)
{
    check_true_bounds(t, 1, 1);
}
