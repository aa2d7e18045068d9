/*
 * bounds.true-bounds.byte-stride--1: openmpi 4.1.4
 * 1 of vector(2,1,-1,byte)
 * MPI 5.0, 5.1.8: true bounds are those of the entries of the type map alone, whatever its markers say
 * expected: lb -1 extent 2
 * got: lb 0 extent 2
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, -1, MPI_BYTE, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_true_bounds(t, -1, 2);
}
