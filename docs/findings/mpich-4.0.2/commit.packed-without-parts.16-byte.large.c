/*
 * commit.packed-without-parts.16-byte.large on MPICH 4.0.2 (MPICH ABI)
 *
 * A datatype packs wrong values after its parts were freed.
 *
 * The datatype: darray(1,0,[1],[cyclic],[default],[1],C,contiguous(5,long_double))
 *
 * What the program does: It builds the datatype with constructors that take large counts, such as
 * MPI_Type_contiguous_c, commits it and packs one instance with MPI_Pack after committing it a
 * second time, after freeing its parts, with a duplicate after freeing the original, and while a
 * thousand other datatypes are live. It compares the packed bytes with those in memory.
 *
 * What MPI 5.0 says (section 5.1.9): A committed datatype keeps its meaning if it is committed
 * again, and if datatypes from which it was built are freed. Other datatypes have no influence on
 * it. By this rule, MPI_Pack writes 80 bytes.
 *
 * What MPICH 4.0.2 does: on this library, MPI_Pack writes 78 bytes.
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
