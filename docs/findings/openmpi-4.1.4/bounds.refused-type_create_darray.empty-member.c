/*
 * bounds.refused-type_create_darray.empty-member: openmpi 4.1.4
 * 1 of darray(1,0,[1],[none],[default],[1],C,struct([],[],[]))
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: MPI_SUCCESS
 * got: MPI_Type_create_darray returns an error of class 3
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t0;
    CALL(MPI_Type_create_struct(0, (int[]){0}, (MPI_Aint[]){0}, (MPI_Datatype[]){MPI_BYTE}, &t0));
    MPI_Datatype t1;
    CALL(MPI_Type_create_darray(1, 0, 1, (int[]){1}, (int[]){MPI_DISTRIBUTE_NONE}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){1}, MPI_ORDER_C, t0, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_calls(t);
}
