/*
 * commit.packed-without-parts.contiguous: mpich 4.0.2
 * 2 of contiguous(1,contiguous(2,contiguous(2,byte)))
 * MPI 5.0, 5.1.9: a committed datatype packs the same however often it is committed and whichever other types are freed or live
 * expected: 8 bytes
 * got: 6 bytes
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_COMMIT
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(2, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_contiguous(2, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_contiguous(1, t2, &t3));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    bounds(2, t2);
    bounds(3, t3);
    return t3;
}

static MPI_Datatype orphaned(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(2, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_contiguous(2, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_contiguous(1, t2, &t3));
    CALL(MPI_Type_free(&t1));
    CALL(MPI_Type_free(&t2));
    return t3;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        row(at, 1, 2, 0, 0);
        break;
    case 2:
        row(at, 1, 2, 0, 1);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_commit(t, 2, 3);
}
