/*
 * elements.dies.mixed: mpich 5.0.2
 * 1 of struct([1,1],[0,0],[char,indexed([1],[1],byte)])
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGFPE
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_indexed(1, (int[]){1}, (int[]){1}, MPI_BYTE, &t1));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){MPI_CHAR, t1}, &t3));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    bounds(2, MPI_CHAR);
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
        table(at, 1, (long[]){1}, (long[]){1}, extents[0], 0);
        break;
    case 2:
        entry(at, 1, 0, MPI_CHAR);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        row(at, 1, 1, 0, 1);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
