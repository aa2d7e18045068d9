/*
 * bounds.bounds-zero-blocks on Intel MPI 2021.18.1 (standard ABI)
 *
 * The bounds of a datatype with blocks of length zero differ.
 *
 * The datatype: struct([1,0,1],[0,0,1],[double_int,double_int,double_int])
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_extent.
 *
 * What MPI 5.0 says (section 5.1.6): The bounds of a datatype follow from the entries of its type
 * map and from lower-bound and upper-bound markers. MPI_Type_create_resized,
 * MPI_Type_create_subarray and MPI_Type_create_darray set these markers. A block of length zero
 * adds no entry to the type map. The standard does not say whether the displacement of such a
 * block, or a marker in it, counts as a bound nevertheless. In ddtc it does not. In ddtc's reading,
 * the lower bound is 0 and the extent is 16.
 *
 * What Intel MPI 2021.18.1 does: on this library, the lower bound is 0 and the extent is 24.
 *
 * Other libraries: The program fails on MPICH 5.0.2 (`extent: expected 16, got 17`), Open MPI
 * 5.0.11 (`extent: expected 16, got 24`), Intel MPI 2021.18.1 with the MPICH ABI (`extent: expected
 * 16, got 24`).
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_struct(3, (int[]){1, 0, 1}, (MPI_Aint[]){0, 0, 1}, (MPI_Datatype[]){MPI_DOUBLE_INT, MPI_DOUBLE_INT, MPI_DOUBLE_INT}, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 16);
}
