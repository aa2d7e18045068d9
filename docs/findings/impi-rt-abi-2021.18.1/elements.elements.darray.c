/*
 * elements.elements.darray: intel 2021.18.1
 * 1 of darray(1,0,[1,1,1],[none,cyclic,cyclic],[default,2,2],[1,1,1],C,byte)
 * MPI 5.0, 5.1.11: MPI_Get_elements counts the basic elements received, MPI_Get_count whole instances or MPI_UNDEFINED
 * expected: 0 elements
 * got: -1 after 0 elements
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
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
