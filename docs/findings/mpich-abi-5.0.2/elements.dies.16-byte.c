/*
 * elements.dies.16-byte: mpich 5.0.2
 * 1 of struct([1,1],[0,16],[double_complex,real16])
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGFPE
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 16}, (MPI_Datatype[]){MPI_DOUBLE_COMPLEX, MPI_REAL16}, &t2));
    bounds(0, MPI_REAL16);
    bounds(1, MPI_DOUBLE_COMPLEX);
    bounds(2, t2);
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 16, 0, MPI_REAL16);
        break;
    case 1:
        entry(at, 16, 0, MPI_DOUBLE_COMPLEX);
        break;
    case 2:
        row(at, 1, 1, 0, 1);
        row(at + 16, 1, 1, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
