/*
 * bytes.hindexed+misaligned: openmpi 5.0.11
 * 65 of hindexed([4,4],[-124,1],int)
 * MPI 5.0, 3.3.1: a message between datatypes of one signature moves every value
 * expected: byte 944 is 0x4b
 * got: byte 944 is 0xed
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_MESSAGES
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hindexed(2, (int[]){4, 4}, (MPI_Aint[]){-124, 1}, MPI_INT, &t1));
    bounds(0, MPI_INT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_INT);
        break;
    case 1:
        table(at, 2, (long[]){-124, 1}, (long[]){4, 4}, 1, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_messages(t, 65);
}
