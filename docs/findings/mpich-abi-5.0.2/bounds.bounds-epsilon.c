/*
 * bounds.bounds-epsilon on MPICH 5.0.2 (standard ABI)
 *
 * The extent of a datatype is padded differently.
 *
 * The datatype: hvector(2,1,5,short)
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_extent.
 *
 * What MPI 5.0 says (section 5.1.6): The bounds of a datatype follow from the entries of its type
 * map and from lower-bound and upper-bound markers. MPI_Type_create_resized,
 * MPI_Type_create_subarray and MPI_Type_create_darray set these markers. The standard adds an
 * epsilon to the upper bound of a datatype without markers, so that the extent is a multiple of an
 * alignment. Libraries read differently which constructors this concerns and which alignment it is.
 * In ddtc every constructor pads to the strictest alignment of its entries. In ddtc's reading, the
 * lower bound is 0 and the extent is 8.
 *
 * What MPICH 5.0.2 does: on this library, the lower bound is 0 and the extent is 7.
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
    CALL(MPI_Type_create_hvector(2, 1, 5, MPI_SHORT, &t1));
    return t1;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 8);
}
