/*
 * commit.packed-without-parts.16-byte.large: mpich 4.0.2
 * 1 of darray(1,0,[1],[cyclic],[default],[1],C,contiguous(5,long_double))
 * MPI 5.0, 5.1.9: a committed datatype packs the same however often it is committed and whichever other types are freed or live
 * expected: 80 bytes
 * got: 78 bytes
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_COMMIT
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous_c(5, MPI_LONG_DOUBLE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_darray_c(1, 0, 1, (MPI_Count[]){1}, (int[]){MPI_DISTRIBUTE_CYCLIC}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){1}, MPI_ORDER_C, t1, &t2));
    bounds(0, MPI_LONG_DOUBLE);
    bounds(1, t1);
    bounds(2, t2);
    return t2;
}

static MPI_Datatype orphaned(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous_c(5, MPI_LONG_DOUBLE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_darray_c(1, 0, 1, (MPI_Count[]){1}, (int[]){MPI_DISTRIBUTE_CYCLIC}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){1}, MPI_ORDER_C, t1, &t2));
    CALL(MPI_Type_free(&t1));
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 16, 1, MPI_LONG_DOUBLE);
        break;
    case 1:
        row(at, 1, 5, 0, 0);
        break;
    case 2:
        table(at, 1, (long[]){0}, (long[]){1}, extents[1], 1);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_commit(t, 1, 2);
}
