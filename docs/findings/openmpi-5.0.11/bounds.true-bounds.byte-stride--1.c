/*
 * bounds.true-bounds.byte-stride--1 on Open MPI 5.0.11 (Open MPI ABI)
 *
 * MPI_Type_get_true_extent gives wrong bounds.
 *
 * The datatype: vector(2,1,-1,byte)
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_true_extent.
 *
 * What MPI 5.0 says (section 5.1.8): The true lower bound and the true extent are determined by the
 * entries of the type map alone. Lower-bound and upper-bound markers and alignment do not count. By
 * this rule, the true lower bound is -1 and the true extent is 2.
 *
 * What Open MPI 5.0.11 does: on this library, the true lower bound is 0 and the true extent is 2.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
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
