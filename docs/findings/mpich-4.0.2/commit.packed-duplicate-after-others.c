/*
 * commit.packed-duplicate-after-others on MPICH 4.0.2 (MPICH ABI)
 *
 * A duplicate packs wrong values after the original was freed.
 *
 * The datatype: resized(0,4,vector(1,1,7,int))
 *
 * What the program does: It builds the datatype, commits it and packs 69 instances with MPI_Pack
 * after committing it a second time, after freeing its parts, with a duplicate after freeing the
 * original, and while a thousand other datatypes are live. It compares the packed bytes with those
 * in memory.
 *
 * What MPI 5.0 says (section 5.1.9): A committed datatype keeps its meaning if it is committed
 * again, and if datatypes from which it was built are freed. Other datatypes have no influence on
 * it. By this rule, MPI_Pack writes 276 bytes.
 *
 * What MPICH 4.0.2 does: on this library, MPI_Pack writes 272 bytes.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
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
