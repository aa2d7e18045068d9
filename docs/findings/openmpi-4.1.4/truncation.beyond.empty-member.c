/*
 * truncation.beyond.empty-member: openmpi 4.1.4
 * 1 of struct([2,1],[956,954],[int,indexed([],[],hindexed([2,13],[0,-1624],short_int))])
 * MPI 5.0, 3.2.4: a message that does not fit is an overflow error; nothing but the locations of the receive's type map is written
 * expected: nothing written beyond the receive
 * got: of 6144 bytes for 4096, 4 behind it
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_TRUNCATION
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hindexed(2, (int[]){2, 13}, (MPI_Aint[]){0, -1624}, MPI_SHORT_INT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_indexed(0, (int[]){0}, (int[]){0}, t1, &t2));
    MPI_Datatype t4;
    CALL(MPI_Type_create_struct(2, (int[]){2, 1}, (MPI_Aint[]){956, 954}, (MPI_Datatype[]){MPI_INT, t2}, &t4));
    bounds(0, MPI_SHORT_INT);
    bounds(1, t1);
    bounds(2, t2);
    bounds(3, MPI_INT);
    bounds(4, t4);
    return t4;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 2, 0, MPI_SHORT);
        entry(at + 4, 4, 0, MPI_INT);
        break;
    case 1:
        table(at, 2, (long[]){0, -1624}, (long[]){2, 13}, 1, 0);
        break;
    case 2:
        table(at, 0, (long[]){0}, (long[]){0}, extents[1], 1);
        break;
    case 3:
        entry(at, 4, 0, MPI_INT);
        break;
    case 4:
        row(at + 956, 1, 2, 0, 3);
        row(at + 954, 1, 1, 0, 2);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_truncation(t, 4, (long[]){0, 4096, 65536, 163840}, WRITTEN);
}
