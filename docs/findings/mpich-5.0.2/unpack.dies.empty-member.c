/*
 * unpack.dies.empty-member on MPICH 5.0.2 (MPICH ABI)
 *
 * The process ends during legal calls of MPI_Pack and MPI_Unpack.
 *
 * The datatype: let t0 = contiguous(0,indexed_block(0,[0],hindexed([1,2],[1,25],short)));
 * hvector(2,2,-8,struct([1,1,2,2],[-24,-12,-12,-11],[2int,resized(-16,32,t0),t0,indexed_block(0,[0],hindexed([1,2],[1,25],short))]))
 *
 * What the program does: It builds the datatype, commits it and packs values that are stored
 * without gaps, unpacks them with MPI_Unpack into one instance of the datatype, and compares the
 * memory with the type map.
 *
 * What MPI 5.0 says (section 5.2): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, every call returns.
 *
 * What MPICH 5.0.2 does: on this library, the process ends by SIGFPE.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_UNPACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hindexed(2, (int[]){1, 2}, (MPI_Aint[]){1, 25}, MPI_SHORT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_indexed_block(1, 0, (int[]){0}, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_hindexed(2, (int[]){1, 2}, (MPI_Aint[]){1, 25}, MPI_SHORT, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_create_indexed_block(1, 0, (int[]){0}, t3, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_contiguous(0, t4, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_create_resized(t5, -16, 32, &t6));
    MPI_Datatype t8;
    CALL(MPI_Type_create_struct(4, (int[]){1, 1, 2, 2}, (MPI_Aint[]){-24, -12, -12, -11}, (MPI_Datatype[]){MPI_2INT, t6, t5, t2}, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_create_hvector(2, 2, -8, t8, &t9));
    bounds(0, MPI_SHORT);
    bounds(1, t1);
    bounds(2, t2);
    bounds(3, t3);
    bounds(4, t4);
    bounds(5, t5);
    bounds(6, t6);
    bounds(7, MPI_2INT);
    bounds(8, t8);
    bounds(9, t9);
    return t9;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 2, 0, MPI_SHORT);
        break;
    case 1:
        table(at, 2, (long[]){1, 25}, (long[]){1, 2}, 1, 0);
        break;
    case 2:
        table(at, 1, (long[]){0}, (long[]){0}, extents[1], 1);
        break;
    case 3:
        table(at, 2, (long[]){1, 25}, (long[]){1, 2}, 1, 0);
        break;
    case 4:
        table(at, 1, (long[]){0}, (long[]){0}, extents[3], 3);
        break;
    case 5:
        row(at, 1, 0, 0, 4);
        break;
    case 6:
        walk(5, at);
        break;
    case 7:
        entry(at, 4, 0, MPI_INT);
        entry(at + 4, 4, 0, MPI_INT);
        break;
    case 8:
        row(at + -24, 1, 1, 0, 7);
        row(at + -12, 1, 1, 0, 6);
        row(at + -12, 1, 2, 0, 5);
        row(at + -11, 1, 2, 0, 2);
        break;
    case 9:
        row(at, 2, 2, -8, 8);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_unpack(t, 1);
}
