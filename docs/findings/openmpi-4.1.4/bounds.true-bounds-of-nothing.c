/*
 * bounds.true-bounds-of-nothing: openmpi 4.1.4
 * 1 of vector(2,1,2,contiguous(0,byte))
 * MPI 5.0, 5.1.8: true bounds are said of a type map with entries; what an empty one has is left open
 * expected: lb 0 extent 0
 * got: lb 9223372036854775807 extent 1
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(0, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_vector(2, 1, 2, t1, &t2));
    return t2;
}

static void check(MPI_Datatype t)
{
    check_true_bounds(t, 0, 0);
}
