/*
 * bounds.bounds.mixed: openmpi 5.0.11
 * 1 of struct([1,1,1],[4,2,1],[byte,short,byte])
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb 1 extent 4
 * got: lb 1 extent 6
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){4, 2, 1}, (MPI_Datatype[]){MPI_BYTE, MPI_SHORT, MPI_BYTE}, &t2));
    return t2;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 1, 4);
}
