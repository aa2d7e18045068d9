/*
 * commit.packed-duplicate.contiguous.large: mpich 4.0.2
 * 1 of contiguous(5,byte)
 * MPI 5.0, 5.1.9: a committed datatype packs the same however often it is committed and whichever other types are freed or live
 * expected: 5 bytes
 * got: 3 bytes
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_COMMIT
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous_c(5, MPI_BYTE, &t1));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    return t1;
}

static MPI_Datatype orphaned(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous_c(5, MPI_BYTE, &t1));
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        row(at, 1, 5, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_commit(t, 1, 1);
}
