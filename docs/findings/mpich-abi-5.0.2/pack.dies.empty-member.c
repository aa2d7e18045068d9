/*
 * pack.dies.empty-member on MPICH 5.0.2 (standard ABI)
 *
 * The process ends during legal calls of MPI_Pack_size, MPI_Pack and MPI_Unpack.
 *
 * The datatype: let t0 =
 * hindexed_block(0,[6,9,12,15,15,18,21,24,24],hindexed([1],[0],indexed_block(2,[12,9,5,0,-5,-10,-15,-17,-22,-25,-30,-35],byte)));
 * struct([4,3,4,3,2],[584,566,566,565,565],[integer,t0,t0,t0,byte])
 *
 * What the program does: It builds the datatype, commits it and packs one instance with MPI_Pack,
 * unpacks them with MPI_Unpack, and compares the memory with the type map. Then it does the same
 * with a second copy in the same packed buffer.
 *
 * What MPI 5.0 says (section 5.2): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, every call returns.
 *
 * What MPICH 5.0.2 does: on this library, the process ends by SIGFPE.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_indexed_block(12, 2, (int[]){12, 9, 5, 0, -5, -10, -15, -17, -22, -25, -30, -35}, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){0}, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_hindexed_block(9, 0, (MPI_Aint[]){6, 9, 12, 15, 15, 18, 21, 24, 24}, t2, &t3));
    MPI_Datatype t5;
    CALL(MPI_Type_create_struct(5, (int[]){4, 3, 4, 3, 2}, (MPI_Aint[]){584, 566, 566, 565, 565}, (MPI_Datatype[]){MPI_INTEGER, t3, t3, t3, MPI_BYTE}, &t5));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    bounds(2, t2);
    bounds(3, t3);
    bounds(4, MPI_INTEGER);
    bounds(5, t5);
    return t5;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        table(at, 12, (long[]){12, 9, 5, 0, -5, -10, -15, -17, -22, -25, -30, -35}, (long[]){2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, extents[0], 0);
        break;
    case 2:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 1);
        break;
    case 3:
        table(at, 9, (long[]){6, 9, 12, 15, 15, 18, 21, 24, 24}, (long[]){0, 0, 0, 0, 0, 0, 0, 0, 0}, 1, 2);
        break;
    case 4:
        entry(at, 4, 0, MPI_INTEGER);
        break;
    case 5:
        row(at + 584, 1, 4, 0, 4);
        row(at + 566, 1, 3, 0, 3);
        row(at + 566, 1, 4, 0, 3);
        row(at + 565, 1, 3, 0, 3);
        row(at + 565, 1, 2, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 1, ROUND_TRIP);
}
