/*
 * elements.dies-after-others on Intel MPI 2021.18.1 (MPICH ABI)
 *
 * The process ends during legal calls of MPI_Sendrecv, MPI_Get_count and MPI_Get_elements.
 *
 * The datatype: struct([3,3],[2,-47],[double_int,double_int])
 *
 * What the program does: It builds the datatype, commits it and receives messages from itself into
 * 17 instances of the datatype: none, one, half, all but one and all of the basic elements. After
 * each message it calls MPI_Get_count and MPI_Get_elements, and compares the memory with the type
 * map.
 *
 * What MPI 5.0 says (section 5.1.11): All arguments are legal, so every call returns MPI_SUCCESS.
 * By this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGABRT and prints `double
 * free or corruption (out)`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_struct(2, (int[]){3, 3}, (MPI_Aint[]){2, -47}, (MPI_Datatype[]){MPI_DOUBLE_INT, MPI_DOUBLE_INT}, &t1));
    bounds(0, MPI_DOUBLE_INT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_DOUBLE);
        entry(at + 8, 4, 0, MPI_INT);
        break;
    case 1:
        row(at + 2, 1, 3, 0, 0);
        row(at + -47, 1, 3, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 17, BYTES);
}
