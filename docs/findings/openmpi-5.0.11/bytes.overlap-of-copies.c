/*
 * bytes.overlap-of-copies: openmpi 5.0.11
 * 64 of hindexed_block(2,[0,1,1,1,1],short)
 * MPI 5.0, 3.3.1: a message between datatypes of one signature moves every value
 * expected: byte 944 is 0x1e
 * got: byte 944 is 0xc5
 * run: mpicc FILE && ./a.out; status 1 says that it is wrong
 */
#define CHECK_MESSAGES
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hindexed_block(5, 2, (MPI_Aint[]){0, 1, 1, 1, 1}, MPI_SHORT, &t1));
    bounds(0, MPI_SHORT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 2, 0, MPI_SHORT);
        break;
    case 1:
        table(at, 5, (long[]){0, 1, 1, 1, 1}, (long[]){2, 2, 2, 2, 2}, 1, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_messages(t, 64);
}
