/*
 * bounds.true-bounds.empty-member: intel 2021.18.1
 * 1 of struct([1,1],[0,2],[byte,contiguous(0,byte)])
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
    CALL(MPI_Type_contiguous(0, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 2}, (MPI_Datatype[]){MPI_BYTE, t1}, &t2));
    return t2;
}

static void check(MPI_Datatype t)
{
    check_true_bounds(t, 0, 1);
}
