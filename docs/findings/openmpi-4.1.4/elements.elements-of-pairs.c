/*
 * elements.elements-of-pairs: openmpi 4.1.4
 * 1 of double_int
 * MPI 5.0, 5.1.11: whether a value with its index is one basic element or two is read in both ways
 * expected: 1 elements
 * got: MPI_UNDEFINED after 1 elements
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_DOUBLE_INT);
    return MPI_DOUBLE_INT;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_DOUBLE);
        entry(at + 8, 4, 0, MPI_INT);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, NUMBERS);
}
