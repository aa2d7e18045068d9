/*
 * bounds.bounds-of-nothing: mpich 5.0.2
 * 1 of vector(1,0,0,hvector(2,1,-2,byte))
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb 0 extent 0
 * got: lb -2 extent 0
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hvector(2, 1, -2, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_vector(1, 0, 0, t1, &t2));
    return t2;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 0);
}
