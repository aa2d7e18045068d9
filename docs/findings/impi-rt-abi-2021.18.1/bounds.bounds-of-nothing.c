/*
 * bounds.bounds-of-nothing on Intel MPI 2021.18.1 (standard ABI)
 *
 * The bounds of a datatype without entries differ.
 *
 * The datatype: vector(1,0,0,byte)
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_extent.
 *
 * What MPI 5.0 says (section 5.1.6): The bounds of a datatype follow from the entries of its type
 * map and from lower-bound and upper-bound markers. MPI_Type_create_resized,
 * MPI_Type_create_subarray and MPI_Type_create_darray set these markers. The definition of the
 * bounds takes a minimum and a maximum over the entries of the type map and the markers, and does
 * not say what they are if there are neither. In ddtc all bounds of an empty type map are 0. In
 * ddtc's reading, the lower bound is 0 and the extent is 0.
 *
 * What Intel MPI 2021.18.1 does: on this library, the lower bound is 0 and the extent is 1.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(1, 0, 0, MPI_BYTE, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 0);
}
