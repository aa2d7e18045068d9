/*
 * bytes.hindexed+misaligned on Open MPI 5.0.11 (Open MPI ABI)
 *
 * A message arrives with wrong values.
 *
 * The datatype: hindexed([4,4],[-124,1],int)
 *
 * What the program does: It builds the datatype, commits it and sends 65 instances to itself: from
 * the datatype into memory without gaps, from such memory into the datatype, and from the datatype
 * into the datatype. It compares all bytes with the type map.
 *
 * What MPI 5.0 says (section 3.3.1): The type signatures of the two sides of the transfer are
 * equal, so every value is moved from its place in the sender's type map to its place in the
 * receiver's type map. By this rule, the byte 944 is 0x4b.
 *
 * What Open MPI 5.0.11 does: on this library, the byte 944 is 0xed.
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
    CALL(MPI_Type_create_hindexed(2, (int[]){4, 4}, (MPI_Aint[]){-124, 1}, MPI_INT, &t1));
    bounds(0, MPI_INT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_INT);
        break;
    case 1:
        table(at, 2, (long[]){-124, 1}, (long[]){4, 4}, 1, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_messages(t, 65);
}
