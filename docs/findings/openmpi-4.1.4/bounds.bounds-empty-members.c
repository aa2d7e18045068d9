/*
 * bounds.bounds-empty-members: openmpi 4.1.4
 * 1 of struct([1,1],[0,1],[contiguous(0,byte),byte])
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb 1 extent 1
 * got: lb 0 extent 2
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(0, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 1}, (MPI_Datatype[]){t1, MPI_BYTE}, &t2));
    return t2;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 1, 1);
}
