/*
 * bounds.bounds-markers on MPICH 5.0.2 (standard ABI)
 *
 * The bounds differ if some members have markers and others do not.
 *
 * The datatype: struct([1,1],[0,32],[resized(0,1,byte),byte])
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_extent.
 *
 * What MPI 5.0 says (section 5.1.6): The bounds of a datatype follow from the entries of its type
 * map and from lower-bound and upper-bound markers. MPI_Type_create_resized,
 * MPI_Type_create_subarray and MPI_Type_create_darray set these markers. The standard can be read
 * so that, if one member has a lower-bound or upper-bound marker, markers alone are the bounds, or
 * so that members without markers count, too. In ddtc markers alone are the bounds. In ddtc's
 * reading, the lower bound is 0 and the extent is 1.
 *
 * What MPICH 5.0.2 does: on this library, the lower bound is 0 and the extent is 33.
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
    CALL(MPI_Type_create_resized(MPI_BYTE, 0, 1, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 32}, (MPI_Datatype[]){t1, MPI_BYTE}, &t2));
    return t2;
}

static void check(MPI_Datatype t)
{
    check_bounds(t, 0, 1);
}
