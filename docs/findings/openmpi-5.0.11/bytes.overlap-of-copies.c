/*
 * bytes.overlap-of-copies on Open MPI 5.0.11 (Open MPI ABI)
 *
 * A message arrives with wrong values.
 *
 * The datatype: hindexed_block(2,[0,1,1,1,1],short)
 *
 * What the program does: It builds the datatype, commits it and sends 64 instances to itself: from
 * the datatype into memory without gaps, from such memory into the datatype, and from the datatype
 * into the datatype. It compares all bytes with the type map.
 *
 * What MPI 5.0 says (section 3.3.1): The type signatures of the two sides of the transfer are
 * equal, so every value is moved from its place in the sender's type map to its place in the
 * receiver's type map. By this rule, the byte 944 is 0x1e.
 *
 * What Open MPI 5.0.11 does: on this library, the byte 944 is 0xc5.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_MESSAGES
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hindexed_block(5, 2, (MPI_Aint[]){0, 1, 1, 1, 1}, MPI_SHORT, &t1));
    bounds(0, MPI_SHORT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 2, 0, MPI_SHORT);
        break;
    case 1:
        table(at, 5, (long[]){0, 1, 1, 1, 1}, (long[]){2, 2, 2, 2, 2}, 1, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_messages(t, 64);
}
