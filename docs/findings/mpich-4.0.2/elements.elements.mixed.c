/*
 * elements.elements.mixed: mpich 4.0.2
 * 1 of struct([1,1],[0,1],[struct([1],[0],[byte]),short])
 * MPI 5.0, 5.1.11: MPI_Get_elements counts the basic elements received, MPI_Get_count whole instances or MPI_UNDEFINED
 * expected: 2 elements
 * got: 3 after 2 elements
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){MPI_BYTE}, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 1}, (MPI_Datatype[]){t2, MPI_SHORT}, &t3));
    bounds(0, MPI_SHORT);
    bounds(1, MPI_BYTE);
    bounds(2, t2);
    bounds(3, t3);
    return t3;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 2, 0, MPI_SHORT);
        break;
    case 1:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 2:
        row(at, 1, 1, 0, 1);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        row(at + 1, 1, 1, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, NUMBERS);
}
