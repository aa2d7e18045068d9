/*
 * messages.misaligned-vector on Open MPI 5.0.11 (Open MPI ABI)
 *
 * A message arrives with wrong values.
 *
 * The datatype: resized(0,144,hvector(4,4,42,int))
 *
 * What the program does: It builds the datatype, commits it and sends 1120 instances to itself:
 * from the datatype into memory without gaps, from such memory into the datatype, and from the
 * datatype into the datatype. It compares all bytes with the type map.
 *
 * What MPI 5.0 says (section 3.3.1): The type signatures of the two sides of the transfer are
 * equal, so every value is moved from its place in the sender's type map to its place in the
 * receiver's type map. By this rule, the bytes of the type map arrive.
 *
 * What Open MPI 5.0.11 does: on this library, other bytes arrive at byte 17,296 of the stream and
 * elsewhere.
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
    CALL(MPI_Type_create_hvector(4, 4, 42, MPI_INT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(t1, 0, 144, &t2));
    bounds(0, MPI_INT);
    bounds(1, t1);
    bounds(2, t2);
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_INT);
        break;
    case 1:
        row(at, 4, 4, 42, 0);
        break;
    case 2:
        walk(1, at);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_messages(t, 1120);
}
