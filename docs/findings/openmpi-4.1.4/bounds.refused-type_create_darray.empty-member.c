/*
 * bounds.refused-type_create_darray.empty-member on Open MPI 4.1.4 (Open MPI ABI)
 *
 * MPI_Type_create_darray refuses legal arguments.
 *
 * The datatype: darray(1,0,[1],[none],[default],[1],C,struct([],[],[]))
 *
 * What the program does: It builds the datatype and calls MPI_Type_size_x, MPI_Type_get_extent,
 * MPI_Type_get_true_extent and MPI_Type_size.
 *
 * What MPI 5.0 says (section 5.1.4): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, MPI_Type_create_darray returns MPI_SUCCESS.
 *
 * What Open MPI 4.1.4 does: on this library, MPI_Type_create_darray returns an error of class 3.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
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
