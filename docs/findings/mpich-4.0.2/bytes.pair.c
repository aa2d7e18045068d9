/*
 * bytes.pair on MPICH 4.0.2 (MPICH ABI)
 *
 * A message arrives with wrong values.
 *
 * The datatype: struct([1,1],[0,1],[byte,double_int])
 *
 * What the program does: It builds the datatype, commits it and receives messages from itself into
 * one instance of the datatype: none, one, half, all but one and all of the basic elements. After
 * each message it calls MPI_Get_count and MPI_Get_elements, and compares the memory with the type
 * map.
 *
 * What MPI 5.0 says (section 3.3.1): The type signatures of the two sides of the transfer are
 * equal, so every value is moved from its place in the sender's type map to its place in the
 * receiver's type map. By this rule, the byte at displacement 1 is 0xf3.
 *
 * What MPICH 4.0.2 does: on this library, the byte at displacement 1 is 0x13.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 1}, (MPI_Datatype[]){MPI_BYTE, MPI_DOUBLE_INT}, &t2));
    bounds(0, MPI_DOUBLE_INT);
    bounds(1, MPI_BYTE);
    bounds(2, t2);
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_DOUBLE);
        entry(at + 8, 4, 0, MPI_INT);
        break;
    case 1:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 2:
        row(at, 1, 1, 0, 1);
        row(at + 1, 1, 1, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
