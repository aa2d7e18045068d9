/*
 * elements.dies-after-others: intel 2021.18.1
 * 17 of struct([3,3],[2,-47],[double_int,double_int])
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGABRT: double free or corruption (out)
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_struct(2, (int[]){3, 3}, (MPI_Aint[]){2, -47}, (MPI_Datatype[]){MPI_DOUBLE_INT, MPI_DOUBLE_INT}, &t1));
    bounds(0, MPI_DOUBLE_INT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_DOUBLE);
        entry(at + 8, 4, 0, MPI_INT);
        break;
    case 1:
        row(at + 2, 1, 3, 0, 0);
        row(at + -47, 1, 3, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 17, BYTES);
}
