/*
 * elements.elements.darray on Intel MPI 2021.18.1 (standard ABI)
 *
 * MPI_Get_elements gives a wrong number.
 *
 * The datatype: darray(1,0,[1,1,1],[none,cyclic,cyclic],[default,2,2],[1,1,1],C,byte)
 *
 * What the program does: It builds the datatype, commits it and receives messages from itself into
 * one instance of the datatype: none, one, half, all but one and all of the basic elements. After
 * each message it compares the results of MPI_Get_count and MPI_Get_elements.
 *
 * What MPI 5.0 says (section 5.1.11): MPI_Get_elements returns the number of basic elements that
 * were received. MPI_Get_count returns the number of whole instances of the datatype, or
 * MPI_UNDEFINED if the message does not consist of whole instances. By this rule, MPI_Get_elements
 * gives 0 after a message of 0 basic elements.
 *
 * What Intel MPI 2021.18.1 does: on this library, MPI_Get_elements gives -1 after a message of 0
 * basic elements.
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
    CALL(MPI_Type_create_darray(1, 0, 3, (int[]){1, 1, 1}, (int[]){MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC}, (int[]){MPI_DISTRIBUTE_DFLT_DARG, 2, 2}, (int[]){1, 1, 1}, MPI_ORDER_C, MPI_BYTE, &t1));
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
    check_elements(t, 1, NUMBERS);
}
