/*
 * elements.elements-of-pairs: mpich 4.0.2
 * 1 of struct([1,1],[0,0],[contiguous(0,double_int),double_int])
 * MPI 5.0, 5.1.11: whether a value with its index is one basic element or two is read in both ways
 * expected: 1 elements
 * got: 0 after 1 elements
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(0, MPI_DOUBLE_INT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){t1, MPI_DOUBLE_INT}, &t2));
    bounds(0, MPI_DOUBLE_INT);
    bounds(1, t1);
    bounds(2, t2);
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_DOUBLE);
        entry(at + 8, 4, 0, MPI_INT);
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
