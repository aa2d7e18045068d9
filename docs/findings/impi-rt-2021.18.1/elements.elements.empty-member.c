/*
 * elements.elements.empty-member: intel 2021.18.1
 * 1 of darray(4,0,[1],[block],[default],[4],C,struct([1,1],[0,0],[contiguous(0,byte),byte]))
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
    CALL(MPI_Type_contiguous(0, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){t1, MPI_BYTE}, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_darray(4, 0, 1, (int[]){1}, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){4}, MPI_ORDER_C, t2, &t3));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    bounds(2, t2);
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
        row(at, 1, 0, 0, 0);
        break;
    case 2:
        row(at, 1, 1, 0, 1);
        row(at, 1, 1, 0, 0);
        break;
    case 3:
        table(at, 1, (long[]){0}, (long[]){1}, extents[2], 2);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, NUMBERS);
}
