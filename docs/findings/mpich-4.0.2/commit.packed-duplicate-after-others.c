/*
 * commit.packed-duplicate-after-others: mpich 4.0.2
 * 69 of resized(0,4,vector(1,1,7,int))
 * MPI 5.0, 5.1.9: a committed datatype packs the same however often it is committed and whichever other types are freed or live
 * expected: 276 bytes
 * got: 272 bytes
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_COMMIT
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(1, 1, 7, MPI_INT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(t1, 0, 4, &t2));
    bounds(0, MPI_INT);
    bounds(1, t1);
    bounds(2, t2);
    return t2;
}

static MPI_Datatype orphaned(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(1, 1, 7, MPI_INT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(t1, 0, 4, &t2));
    CALL(MPI_Type_free(&t1));
    return t2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_INT);
        break;
    case 1:
        row(at, 1, 1, 7 * extents[0], 0);
        break;
    case 2:
        walk(1, at);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_commit(t, 69, 2);
}
