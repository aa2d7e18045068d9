/*
 * elements.dies.darray on MPICH 5.0.2 (standard ABI)
 *
 * The process ends during legal calls of MPI_Sendrecv, MPI_Get_count and MPI_Get_elements.
 *
 * The datatype: darray(6,0,[1,1,1],[cyclic,cyclic,block],[4,2,default],[2,1,3],Fortran,byte)
 *
 * What the program does: It builds the datatype, commits it and receives messages from itself into
 * one instance of the datatype: none, one, half, all but one and all of the basic elements. After
 * each message it calls MPI_Get_count and MPI_Get_elements, and compares the memory with the type
 * map.
 *
 * What MPI 5.0 says (section 5.1.11): All arguments are legal, so every call returns MPI_SUCCESS.
 * By this rule, every call returns.
 *
 * What MPICH 5.0.2 does: on this library, the process exits with status 1 and prints `Assertion
 * failed in file /mpich-5.0.2/src/mpi/datatype/get_elements_x.c at line 233: 0`.
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
    CALL(MPI_Type_create_darray(6, 0, 3, (int[]){1, 1, 1}, (int[]){MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, (int[]){4, 2, MPI_DISTRIBUTE_DFLT_DARG}, (int[]){2, 1, 3}, MPI_ORDER_FORTRAN, MPI_BYTE, &t1));
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
        table(at, 1, (long[]){0}, (long[]){1}, extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
