/*
 * bounds.bounds.backwards+hindexed+misaligned: openmpi 5.0.11
 * 1 of hindexed([1,1,1],[0,1,-1033],short)
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb -1033 extent 1036
 * got: lb -1033 extent 1038
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hindexed(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 1, -1033}, MPI_SHORT, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, -1033, 1036);
}
