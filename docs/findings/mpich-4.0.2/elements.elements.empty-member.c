/*
 * elements.elements.empty-member: mpich 4.0.2
 * 1 of struct([1,1],[0,0],[contiguous(0,byte),byte])
 * MPI 5.0, 5.1.11: MPI_Get_elements counts the basic elements received, MPI_Get_count whole instances or MPI_UNDEFINED
 * expected: 1 elements
 * got: 0 after 1 elements
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
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    bounds(2, t2);
    return t2;
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
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, NUMBERS);
}
