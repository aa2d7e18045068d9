/*
 * bounds.bounds.backwards+misaligned+struct: openmpi 4.1.4
 * 1 of struct([1,1,1],[0,-1,-2962],[short,short,short])
 * MPI 5.0, 5.1.6: bounds follow from the type map and its markers; resized, subarray and darray set them
 * expected: lb -2962 extent 2964
 * got: lb -2962 extent 2966
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, -1, -2962}, (MPI_Datatype[]){MPI_SHORT, MPI_SHORT, MPI_SHORT}, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, -2962, 2964);
}
