/*
 * external32.dies.depth-32 on Intel MPI 2021.18.1 (standard ABI)
 *
 * The process ends during legal calls of MPI_Pack_external_size, MPI_Pack_external and
 * MPI_Unpack_external.
 *
 * The datatype:
 * hindexed_block(1,[8],vector(1,1,1,dup(vector(1,1,1,vector(1,1,1,hindexed_block(1,[8],dup(hindexed_block(1,[8],hindexed_block(1,[8],dup(hindexed([1],[8],vector(1,1,1,hindexed([1],[8],struct([1],[0],[hindexed_block(1,[8],vector(1,1,1,hindexed([1],[0],struct([1],[0],[vector(1,1,1,hindexed([1],[0],dup(vector(1,1,1,dup(struct([1],[0],[hindexed_block(1,[8],hindexed_block(1,[8],dup(hindexed_block(1,[8],vector(1,1,1,dup(hvector(2,1,24,hvector(2,1,12,hvector(2,1,6,short)))))))))]))))))]))))]))))))))))))))
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
 * free or corruption (out)`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hvector(2, 1, 6, MPI_SHORT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_hvector(2, 1, 12, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_hvector(2, 1, 24, t2, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_dup(t3, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_vector(1, 1, 1, t4, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t5, &t6));
    MPI_Datatype t7;
    CALL(MPI_Type_dup(t6, &t7));
    MPI_Datatype t8;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t7, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t8, &t9));
    MPI_Datatype t10;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t9}, &t10));
    MPI_Datatype t11;
    CALL(MPI_Type_dup(t10, &t11));
    MPI_Datatype t12;
    CALL(MPI_Type_vector(1, 1, 1, t11, &t12));
    MPI_Datatype t13;
    CALL(MPI_Type_dup(t12, &t13));
    MPI_Datatype t14;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){0}, t13, &t14));
    MPI_Datatype t15;
    CALL(MPI_Type_vector(1, 1, 1, t14, &t15));
    MPI_Datatype t16;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t15}, &t16));
    MPI_Datatype t17;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){0}, t16, &t17));
    MPI_Datatype t18;
    CALL(MPI_Type_vector(1, 1, 1, t17, &t18));
    MPI_Datatype t19;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t18, &t19));
    MPI_Datatype t20;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t19}, &t20));
    MPI_Datatype t21;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){8}, t20, &t21));
    MPI_Datatype t22;
    CALL(MPI_Type_vector(1, 1, 1, t21, &t22));
    MPI_Datatype t23;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){8}, t22, &t23));
    MPI_Datatype t24;
    CALL(MPI_Type_dup(t23, &t24));
    MPI_Datatype t25;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t24, &t25));
    MPI_Datatype t26;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t25, &t26));
    MPI_Datatype t27;
    CALL(MPI_Type_dup(t26, &t27));
    MPI_Datatype t28;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t27, &t28));
    MPI_Datatype t29;
    CALL(MPI_Type_vector(1, 1, 1, t28, &t29));
    MPI_Datatype t30;
    CALL(MPI_Type_vector(1, 1, 1, t29, &t30));
    MPI_Datatype t31;
    CALL(MPI_Type_dup(t30, &t31));
    MPI_Datatype t32;
    CALL(MPI_Type_vector(1, 1, 1, t31, &t32));
    MPI_Datatype t33;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t32, &t33));
    bounds(0, MPI_SHORT);
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
    bounds(20, t20);
    bounds(21, t21);
    bounds(22, t22);
    bounds(23, t23);
    bounds(24, t24);
    bounds(25, t25);
    bounds(26, t26);
    bounds(27, t27);
    bounds(28, t28);
    bounds(29, t29);
    bounds(30, t30);
    bounds(31, t31);
    bounds(32, t32);
    bounds(33, t33);
    return t33;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 2, 0, MPI_SHORT);
        break;
    case 1:
        row(at, 2, 1, 6, 0);
        break;
    case 2:
        row(at, 2, 1, 12, 1);
        break;
    case 3:
        row(at, 2, 1, 24, 2);
        break;
    case 4:
        walk(3, at);
        break;
    case 5:
        row(at, 1, 1, 1 * extents[4], 4);
        break;
    case 6:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 5);
        break;
    case 7:
        walk(6, at);
        break;
    case 8:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 7);
        break;
    case 9:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 8);
        break;
    case 10:
        row(at, 1, 1, 0, 9);
        break;
    case 11:
        walk(10, at);
        break;
    case 12:
        row(at, 1, 1, 1 * extents[11], 11);
        break;
    case 13:
        walk(12, at);
        break;
    case 14:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 13);
        break;
    case 15:
        row(at, 1, 1, 1 * extents[14], 14);
        break;
    case 16:
        row(at, 1, 1, 0, 15);
        break;
    case 17:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 16);
        break;
    case 18:
        row(at, 1, 1, 1 * extents[17], 17);
        break;
    case 19:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 18);
        break;
    case 20:
        row(at, 1, 1, 0, 19);
        break;
    case 21:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 20);
        break;
    case 22:
        row(at, 1, 1, 1 * extents[21], 21);
        break;
    case 23:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 22);
        break;
    case 24:
        walk(23, at);
        break;
    case 25:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 24);
        break;
    case 26:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 25);
        break;
    case 27:
        walk(26, at);
        break;
    case 28:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 27);
        break;
    case 29:
        row(at, 1, 1, 1 * extents[28], 28);
        break;
    case 30:
        row(at, 1, 1, 1 * extents[29], 29);
        break;
    case 31:
        walk(30, at);
        break;
    case 32:
        row(at, 1, 1, 1 * extents[31], 31);
        break;
    case 33:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 32);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x00, 0x02, 0x00, 0x03, 0x00, 0x04, 0x00, 0x05, 0x00, 0x06, 0x00, 0x07, 0x00, 0x08, 0x00};
static const unsigned char external[] = {0x00, 0x01, 0x00, 0x02, 0x00, 0x03, 0x00, 0x04, 0x00, 0x05, 0x00, 0x06, 0x00, 0x07, 0x00, 0x08};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
