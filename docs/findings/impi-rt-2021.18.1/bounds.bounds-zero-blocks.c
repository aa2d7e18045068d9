/*
 * bounds.bounds-zero-blocks: intel 2021.18.1
 * 1 of struct([1,0,1],[0,0,1],[double_int,double_int,double_int])
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb 0 extent 16
 * got: lb 0 extent 24
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_struct(3, (int[]){1, 0, 1}, (MPI_Aint[]){0, 0, 1}, (MPI_Datatype[]){MPI_DOUBLE_INT, MPI_DOUBLE_INT, MPI_DOUBLE_INT}, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 16);
}
