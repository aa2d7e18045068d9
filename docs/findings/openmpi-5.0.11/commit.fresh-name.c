/*
 * commit.fresh-name on Open MPI 5.0.11 (Open MPI ABI)
 *
 * A new datatype has a name.
 *
 * The datatype: vector(0,0,0,byte)
 *
 * What the program does: It builds the datatype, commits it and compares its name before and after
 * a call of MPI_Type_set_name.
 *
 * What MPI 5.0 says (section 7.8): MPI_Type_get_name returns the name that was set last. A datatype
 * without a name has the empty string as its name. By this rule, a new datatype has no name.
 *
 * What Open MPI 5.0.11 does: on this library, the name of a new datatype is `Dup MPI_EMPTY`.
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
    CALL(MPI_Type_vector(0, 0, 0, MPI_BYTE, &t1));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    return t1;
}

static MPI_Datatype orphaned(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(0, 0, 0, MPI_BYTE, &t1));
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        row(at, 0, 0, 0 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_commit(t, 1, 1);
}
