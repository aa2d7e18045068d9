/*
 * bounds.bounds-epsilon: intel 2021.18.1
 * 1 of hvector(2,1,5,short)
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb 0 extent 8
 * got: lb 0 extent 7
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hvector(2, 1, 5, MPI_SHORT, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 8);
}
