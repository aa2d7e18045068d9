/*
 * bytes.negative-extent on MPICH 4.0.2 (MPICH ABI)
 *
 * Bytes are overwritten that belong to no entry of the type map.
 *
 * The datatype: resized(0,-1,byte)
 *
 * What the program does: It builds the datatype, commits it and moves 2 instances on one process
 * with MPI_Allgather, MPI_Gather, MPI_Scatter, MPI_Alltoallw, MPI_Put and MPI_Get, between the
 * datatype and memory without gaps. It compares all bytes with the type map.
 *
 * What MPI 5.0 says (section 3.2.4): A receive modifies only the locations of the elements that it
 * receives. Unpacking and collective calls have the same effect on their receive buffers. By this
 * rule, no byte outside the true bounds is changed.
 *
 * What MPICH 4.0.2 does: on this library, bytes outside the true bounds are changed.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_COLLECTIVES
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_resized(MPI_BYTE, 0, -1, &t1));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        walk(0, at);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_collectives(t, 2, MOVES);
}
