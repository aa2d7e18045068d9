/*
 * bytes.pair on MPICH 5.0.2 (standard ABI)
 *
 * A message arrives with wrong values.
 *
 * The datatype: vector(2,1,2,2int)
 *
 * What the program does: It builds the datatype, commits it and receives messages from itself into
 * one instance of the datatype: none, one, half, all but one and all of the basic elements. After
 * each message it calls MPI_Get_count and MPI_Get_elements, and compares the memory with the type
 * map.
 *
 * What MPI 5.0 says (section 3.3.1): The type signatures of the two sides of the transfer are
 * equal, so every value is moved from its place in the sender's type map to its place in the
 * receiver's type map. By this rule, the byte at displacement 0 is 0x0e.
 *
 * What MPICH 5.0.2 does: on this library, the byte at displacement 0 is 0xd6.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, 2, MPI_2INT, &t1));
    bounds(0, MPI_2INT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_INT);
        entry(at + 4, 4, 0, MPI_INT);
        break;
    case 1:
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
