/*
 * messages.dies.depth-16 on Intel MPI 2021.18.1 (standard ABI)
 *
 * The process ends during legal calls of MPI_Sendrecv, MPI_Isend and MPI_Recv.
 *
 * The datatype:
 * hindexed([1],[0],struct([1],[0],[hindexed([0,1],[5,-4],vector(1,1,7,vector(1,1,7,dup(vector(1,1,7,struct([1],[0],[contiguous(1,resized(0,272,indexed_block(1,[0],dup(dup(struct([1],[0],[hindexed([0,1],[5,-4],hindexed([0,1],[5,4],contiguous(1,indexed_block(1,[0],dup(hindexed([0,1],[5,0],contiguous(1,contiguous(1,dup(vector(9,1,2,double_complex))))))))))]))))))]))))))]))
 *
 * What the program does: It builds the datatype, commits it and sends one instance to itself: from
 * the datatype into memory without gaps, from such memory into the datatype, and from the datatype
 * into the datatype. It compares all bytes with the type map.
 *
 * What MPI 5.0 says (section 3.2): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGABRT and prints `free():
 * invalid next size (normal)`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_MESSAGES
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(9, 1, 2, MPI_DOUBLE_COMPLEX, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_dup(t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_contiguous(1, t2, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_contiguous(1, t3, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, 0}, t4, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_dup(t5, &t6));
    MPI_Datatype t7;
    CALL(MPI_Type_create_indexed_block(1, 1, (int[]){0}, t6, &t7));
    MPI_Datatype t8;
    CALL(MPI_Type_contiguous(1, t7, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, 4}, t8, &t9));
    MPI_Datatype t10;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, -4}, t9, &t10));
    MPI_Datatype t11;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t10}, &t11));
    MPI_Datatype t12;
    CALL(MPI_Type_dup(t11, &t12));
    MPI_Datatype t13;
    CALL(MPI_Type_dup(t12, &t13));
    MPI_Datatype t14;
    CALL(MPI_Type_create_indexed_block(1, 1, (int[]){0}, t13, &t14));
    MPI_Datatype t15;
    CALL(MPI_Type_create_resized(t14, 0, 272, &t15));
    MPI_Datatype t16;
    CALL(MPI_Type_contiguous(1, t15, &t16));
    MPI_Datatype t17;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t16}, &t17));
    MPI_Datatype t18;
    CALL(MPI_Type_vector(1, 1, 7, t17, &t18));
    MPI_Datatype t19;
    CALL(MPI_Type_dup(t18, &t19));
    MPI_Datatype t20;
    CALL(MPI_Type_vector(1, 1, 7, t19, &t20));
    MPI_Datatype t21;
    CALL(MPI_Type_vector(1, 1, 7, t20, &t21));
    MPI_Datatype t22;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, -4}, t21, &t22));
    MPI_Datatype t23;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t22}, &t23));
    MPI_Datatype t24;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){0}, t23, &t24));
    bounds(0, MPI_DOUBLE_COMPLEX);
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
    return t24;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 16, 0, MPI_DOUBLE_COMPLEX);
        break;
    case 1:
        row(at, 9, 1, 2 * extents[0], 0);
        break;
    case 2:
        walk(1, at);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        break;
    case 4:
        row(at, 1, 1, 0, 3);
        break;
    case 5:
        table(at, 2, (long[]){5, 0}, (long[]){0, 1}, 1, 4);
        break;
    case 6:
        walk(5, at);
        break;
    case 7:
        table(at, 1, (long[]){0}, (long[]){1}, extents[6], 6);
        break;
    case 8:
        row(at, 1, 1, 0, 7);
        break;
    case 9:
        table(at, 2, (long[]){5, 4}, (long[]){0, 1}, 1, 8);
        break;
    case 10:
        table(at, 2, (long[]){5, -4}, (long[]){0, 1}, 1, 9);
        break;
    case 11:
        row(at, 1, 1, 0, 10);
        break;
    case 12:
        walk(11, at);
        break;
    case 13:
        walk(12, at);
        break;
    case 14:
        table(at, 1, (long[]){0}, (long[]){1}, extents[13], 13);
        break;
    case 15:
        walk(14, at);
        break;
    case 16:
        row(at, 1, 1, 0, 15);
        break;
    case 17:
        row(at, 1, 1, 0, 16);
        break;
    case 18:
        row(at, 1, 1, 7 * extents[17], 17);
        break;
    case 19:
        walk(18, at);
        break;
    case 20:
        row(at, 1, 1, 7 * extents[19], 19);
        break;
    case 21:
        row(at, 1, 1, 7 * extents[20], 20);
        break;
    case 22:
        table(at, 2, (long[]){5, -4}, (long[]){0, 1}, 1, 21);
        break;
    case 23:
        row(at, 1, 1, 0, 22);
        break;
    case 24:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 23);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_messages(t, 1);
}
