/*
 * bounds.bounds-zero-blocks on MPICH 5.0.2 (standard ABI)
 *
 * The bounds of a datatype with blocks of length zero differ.
 *
 * The datatype: struct([1,0,1],[0,0,1],[short,short,short])
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_extent.
 *
 * What MPI 5.0 says (section 5.1.6): The bounds of a datatype follow from the entries of its type
 * map and from lower-bound and upper-bound markers. MPI_Type_create_resized,
 * MPI_Type_create_subarray and MPI_Type_create_darray set these markers. A block of length zero
 * adds no entry to the type map. The standard does not say whether the displacement of such a
 * block, or a marker in it, counts as a bound nevertheless. In ddtc it does not. In ddtc's reading,
 * the lower bound is 0 and the extent is 4.
 *
 * What MPICH 5.0.2 does: on this library, the lower bound is 0 and the extent is 3.
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
    CALL(MPI_Type_create_struct(3, (int[]){1, 0, 1}, (MPI_Aint[]){0, 0, 1}, (MPI_Datatype[]){MPI_SHORT, MPI_SHORT, MPI_SHORT}, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 4);
}
