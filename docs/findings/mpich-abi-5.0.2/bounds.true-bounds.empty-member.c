/*
 * bounds.true-bounds.empty-member on MPICH 5.0.2 (standard ABI)
 *
 * MPI_Type_get_true_extent gives wrong bounds.
 *
 * The datatype: struct([1,1],[0,0],[hvector(2,0,2,byte),byte])
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_true_extent.
 *
 * What MPI 5.0 says (section 5.1.8): The true lower bound and the true extent are determined by the
 * entries of the type map alone. Lower-bound and upper-bound markers and alignment do not count. By
 * this rule, the true lower bound is 0 and the true extent is 1.
 *
 * What MPICH 5.0.2 does: on this library, the true lower bound is 0 and the true extent is 2.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
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
