/*
 * bytes.pair: mpich 5.0.2
 * 1 of vector(2,1,2,2int)
 * MPI 5.0, 3.3.1: a message between datatypes of one signature moves every value
 * expected: the byte at displacement 0 is 0x0e
 * got: the byte at displacement 0 is 0xd6
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, 2, MPI_2INT, &t1));
    bounds(0, MPI_2INT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_INT);
        entry(at + 4, 4, 0, MPI_INT);
        break;
    case 1:
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
