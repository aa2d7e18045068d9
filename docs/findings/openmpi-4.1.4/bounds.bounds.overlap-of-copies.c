/*
 * bounds.bounds.overlap-of-copies: openmpi 4.1.4
 * 1 of hindexed([1,1,1],[1,2,0],short)
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb 0 extent 4
 * got: lb 0 extent 6
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hindexed(3, (int[]){1, 1, 1}, (MPI_Aint[]){1, 2, 0}, MPI_SHORT, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 4);
}
