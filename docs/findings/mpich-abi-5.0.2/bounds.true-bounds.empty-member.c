/*
 * bounds.true-bounds.empty-member: mpich 5.0.2
 * 1 of struct([1,1],[0,0],[hvector(2,0,2,byte),byte])
 * MPI 5.0, 5.1.8: true bounds are those of the entries of the type map alone, whatever its markers say
 * expected: lb 0 extent 1
 * got: lb 0 extent 2
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hvector(2, 0, 2, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){t1, MPI_BYTE}, &t2));
    return t2;
}

static void check(MPI_Datatype t)
{
    check_true_bounds(t, 0, 1);
}
