/*
 * elements.dies.mixed on MPICH 5.0.2 (standard ABI)
 *
 * The process ends during legal calls of MPI_Sendrecv, MPI_Get_count and MPI_Get_elements.
 *
 * The datatype: struct([1,1],[0,0],[char,indexed([1],[1],byte)])
 *
 * What the program does: It builds the datatype, commits it and receives messages from itself into
 * one instance of the datatype: none, one, half, all but one and all of the basic elements. After
 * each message it calls MPI_Get_count and MPI_Get_elements, and compares the memory with the type
 * map.
 *
 * What MPI 5.0 says (section 5.1.11): All arguments are legal, so every call returns MPI_SUCCESS.
 * By this rule, every call returns.
 *
 * What MPICH 5.0.2 does: on this library, the process ends by SIGFPE.
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
    CALL(MPI_Type_indexed(1, (int[]){1}, (int[]){1}, MPI_BYTE, &t1));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){MPI_CHAR, t1}, &t3));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    bounds(2, MPI_CHAR);
    bounds(3, t3);
    return t3;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        table(at, 1, (long[]){1}, (long[]){1}, extents[0], 0);
        break;
    case 2:
        entry(at, 1, 0, MPI_CHAR);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        row(at, 1, 1, 0, 1);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
