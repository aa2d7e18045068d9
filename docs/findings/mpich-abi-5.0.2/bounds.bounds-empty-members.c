/*
 * bounds.bounds-empty-members on MPICH 5.0.2 (standard ABI)
 *
 * The bounds of a datatype with members of size zero differ.
 *
 * The datatype: struct([1,1],[0,0],[short,resized(0,1,contiguous(0,short))])
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_extent.
 *
 * What MPI 5.0 says (section 5.1.6): The bounds of a datatype follow from the entries of its type
 * map and from lower-bound and upper-bound markers. MPI_Type_create_resized,
 * MPI_Type_create_subarray and MPI_Type_create_darray set these markers. A member without entries
 * adds nothing to the type map. The standard does not say whether its bounds, or the place at which
 * it stands, count nevertheless. In ddtc only its markers count. In ddtc's reading, the lower bound
 * is 0 and the extent is 1.
 *
 * What MPICH 5.0.2 does: on this library, the lower bound is 0 and the extent is 2.
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
    CALL(MPI_Type_contiguous(0, MPI_SHORT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(t1, 0, 1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){MPI_SHORT, t2}, &t3));
    return t3;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 1);
}
