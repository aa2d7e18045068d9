/*
 * bounds.true-bounds-of-nothing on Intel MPI 2021.18.1 (standard ABI)
 *
 * The true bounds of a datatype without entries differ.
 *
 * The datatype: vector(1,0,0,byte)
 *
 * What the program does: It builds the datatype and calls MPI_Type_get_true_extent.
 *
 * What MPI 5.0 says (section 5.1.8): The true bounds are defined by the entries of the type map.
 * The standard does not say what they are if the type map has no entries. The standard does not say
 * what the true bounds of an empty type map are. In ddtc they are 0. In ddtc's reading, the true
 * lower bound is 0 and the true extent is 0.
 *
 * What Intel MPI 2021.18.1 does: on this library, the true lower bound is 0 and the true extent is
 * 1.
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
    check_true_bounds(t, 0, 0);
}
