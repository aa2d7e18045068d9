/*
 * external32.dies.mixed: mpich 4.0.2
 * 1 of struct([1,1],[0,0],[byte,subarray([2],[1],[1],C,char)])
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by signal 4: Assertion failed in file src/binding/c/datatype/type_get_name.c at line 50: ((datatype)&(0x000000ff)) < MPIR_DATATYPE_N_BUILTIN
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_subarray(1, (int[]){2}, (int[]){1}, (int[]){1}, MPI_ORDER_C, MPI_CHAR, &t1));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){MPI_BYTE, t1}, &t3));
    bounds(0, MPI_CHAR);
    bounds(1, t1);
    bounds(2, MPI_BYTE);
    bounds(3, t3);
    return t3;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_CHAR);
        break;
    case 1:
        table(at, 1, (long[]){1}, (long[]){1}, extents[0], 0);
        break;
    case 2:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        row(at, 1, 1, 0, 1);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x02};
static const unsigned char external[] = {0x01, 0x02};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
