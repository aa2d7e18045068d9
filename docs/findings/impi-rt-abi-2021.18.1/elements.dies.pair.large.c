/*
 * elements.dies.pair.large: intel 2021.18.1
 * 1 of vector(2,1,2,float_int)
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGFPE: MPI_Type_create_f90_integer(97)........:  No integer type with 1000 digits of range is available
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector_c(2, 1, 2, MPI_FLOAT_INT, &t1));
    bounds(0, MPI_FLOAT_INT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_FLOAT);
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
