/*
 * bounds.bounds-empty-members: intel 2021.18.1
 * 1 of struct([1,1],[0,0],[short,resized(0,1,contiguous(0,short))])
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb 0 extent 1
 * got: lb 0 extent 2
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(0, MPI_SHORT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(t1, 0, 1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){MPI_SHORT, t2}, &t3));
    return t3;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 1);
}
