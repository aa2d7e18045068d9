/*
 * bounds.bounds.backwards+hindexed+misaligned on Open MPI 4.1.4 (Open MPI ABI)
 *
 * MPI_Type_get_extent gives wrong bounds.
 *
 * The datatype: hindexed([1,1,1],[0,1,-1033],short)
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_extent.
 *
 * What MPI 5.0 says (section 5.1.6): The bounds of a datatype follow from the entries of its type
 * map and from lower-bound and upper-bound markers. MPI_Type_create_resized,
 * MPI_Type_create_subarray and MPI_Type_create_darray set these markers. By this rule, the lower
 * bound is -1033 and the extent is 1036.
 *
 * What Open MPI 4.1.4 does: on this library, the lower bound is -1033 and the extent is 1038.
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
    CALL(MPI_Type_create_hindexed(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 1, -1033}, MPI_SHORT, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, -1033, 1036);
}
