/*
 * commit.packed-duplicate.contiguous.large on MPICH 4.0.2 (MPICH ABI)
 *
 * A duplicate packs wrong values after the original was freed.
 *
 * The datatype: contiguous(5,byte)
 *
 * What the program does: It builds the datatype with constructors that take large counts, such as
 * MPI_Type_contiguous_c, commits it and packs one instance with MPI_Pack after committing it a
 * second time, after freeing its parts, with a duplicate after freeing the original, and while a
 * thousand other datatypes are live. It compares the packed bytes with those in memory.
 *
 * What MPI 5.0 says (section 5.1.9): A committed datatype keeps its meaning if it is committed
 * again, and if datatypes from which it was built are freed. Other datatypes have no influence on
 * it. By this rule, MPI_Pack writes 5 bytes.
 *
 * What MPICH 4.0.2 does: on this library, MPI_Pack writes 3 bytes.
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
