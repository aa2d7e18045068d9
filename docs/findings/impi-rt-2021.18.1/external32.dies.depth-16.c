/*
 * external32.dies.depth-16 on Intel MPI 2021.18.1 (MPICH ABI)
 *
 * The process ends during legal calls of MPI_Pack_external_size, MPI_Pack_external and
 * MPI_Unpack_external.
 *
 * The datatype:
 * vector(1,1,0,hindexed([1],[0],vector(1,1,0,hindexed_block(1,[0],hindexed_block(1,[0],hindexed_block(1,[0],struct([1],[0],[hindexed_block(1,[0],struct([1],[0],[hindexed_block(1,[8],struct([1],[0],[hindexed_block(1,[8],hindexed_block(1,[8],hindexed_block(1,[8],dup(hvector(2,1,240,hvector(2,1,112,hvector(2,1,64,hvector(2,1,32,double))))))))]))]))])))))))
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for one instance with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 5.3): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGABRT and prints `double
 * free or corruption (!prev)`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hvector(2, 1, 32, MPI_DOUBLE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_hvector(2, 1, 64, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_hvector(2, 1, 112, t2, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_create_hvector(2, 1, 240, t3, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_dup(t4, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t5, &t6));
    MPI_Datatype t7;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t6, &t7));
    MPI_Datatype t8;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t7, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t8}, &t9));
    MPI_Datatype t10;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t9, &t10));
    MPI_Datatype t11;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t10}, &t11));
    MPI_Datatype t12;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){0}, t11, &t12));
    MPI_Datatype t13;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t12}, &t13));
    MPI_Datatype t14;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){0}, t13, &t14));
    MPI_Datatype t15;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){0}, t14, &t15));
    MPI_Datatype t16;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){0}, t15, &t16));
    MPI_Datatype t17;
    CALL(MPI_Type_vector(1, 1, 0, t16, &t17));
    MPI_Datatype t18;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){0}, t17, &t18));
    MPI_Datatype t19;
    CALL(MPI_Type_vector(1, 1, 0, t18, &t19));
    bounds(0, MPI_DOUBLE);
    bounds(1, t1);
    bounds(2, t2);
    bounds(3, t3);
    bounds(4, t4);
    bounds(5, t5);
    bounds(6, t6);
    bounds(7, t7);
    bounds(8, t8);
    bounds(9, t9);
    bounds(10, t10);
    bounds(11, t11);
    bounds(12, t12);
    bounds(13, t13);
    bounds(14, t14);
    bounds(15, t15);
    bounds(16, t16);
    bounds(17, t17);
    bounds(18, t18);
    bounds(19, t19);
    return t19;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_DOUBLE);
        break;
    case 1:
        row(at, 2, 1, 32, 0);
        break;
    case 2:
        row(at, 2, 1, 64, 1);
        break;
    case 3:
        row(at, 2, 1, 112, 2);
        break;
    case 4:
        row(at, 2, 1, 240, 3);
        break;
    case 5:
        walk(4, at);
        break;
    case 6:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 5);
        break;
    case 7:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 6);
        break;
    case 8:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 7);
        break;
    case 9:
        row(at, 1, 1, 0, 8);
        break;
    case 10:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 9);
        break;
    case 11:
        row(at, 1, 1, 0, 10);
        break;
    case 12:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 11);
        break;
    case 13:
        row(at, 1, 1, 0, 12);
        break;
    case 14:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 13);
        break;
    case 15:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 14);
        break;
    case 16:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 15);
        break;
    case 17:
        row(at, 1, 1, 0 * extents[16], 16);
        break;
    case 18:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 17);
        break;
    case 19:
        row(at, 1, 1, 0 * extents[18], 18);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0xbf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0xbf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0xbf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0xbf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0xbf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf8, 0x3f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0xc0};
static const unsigned char external[] = {0x40, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbf, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x3f, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x3f, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbf, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbf, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x3f, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x3f, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbf, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbf, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x3f, 0xf8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
