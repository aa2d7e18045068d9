/*
 * commit.packed-without-parts-after-others: mpich 4.0.2
 * 17 of dup(contiguous(5,int64_t))
 * MPI 5.0, 5.1.9: a committed datatype packs the same however often it is committed and whichever other types are freed or live
 * expected: 680 bytes
 * got: 678 bytes
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_COMMIT
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(5, MPI_INT64_T, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_dup(t1, &t2));
    bounds(0, MPI_INT64_T);
    bounds(1, t1);
    bounds(2, t2);
    return t2;
}

static MPI_Datatype orphaned(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(5, MPI_INT64_T, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_dup(t1, &t2));
    CALL(MPI_Type_free(&t1));
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_INT64_T);
        break;
    case 1:
        row(at, 1, 5, 0, 0);
        break;
    case 2:
        walk(1, at);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_commit(t, 17, 2);
}
