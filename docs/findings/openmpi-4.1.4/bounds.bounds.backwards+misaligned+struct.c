/*
 * bounds.bounds.backwards+misaligned+struct on Open MPI 4.1.4 (Open MPI ABI)
 *
 * MPI_Type_get_extent gives wrong bounds.
 *
 * The datatype: struct([1,1,1],[0,-1,-2962],[short,short,short])
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_extent.
 *
 * What MPI 5.0 says (section 5.1.6): The bounds of a datatype follow from the entries of its type
 * map and from lower-bound and upper-bound markers. MPI_Type_create_resized,
 * MPI_Type_create_subarray and MPI_Type_create_darray set these markers. By this rule, the lower
 * bound is -2962 and the extent is 2964.
 *
 * What Open MPI 4.1.4 does: on this library, the lower bound is -2962 and the extent is 2966.
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
    CALL(MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, -1, -2962}, (MPI_Datatype[]){MPI_SHORT, MPI_SHORT, MPI_SHORT}, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, -2962, 2964);
}
