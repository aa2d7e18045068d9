/*
 * elements.dies.depth-32 on Intel MPI 2021.18.1 (standard ABI)
 *
 * The process ends during legal calls of MPI_Sendrecv, MPI_Get_count and MPI_Get_elements.
 *
 * The datatype:
 * dup(hindexed([1],[4],dup(hindexed_block(1,[8],dup(hindexed([1],[4],hindexed([1],[8],hindexed([1],[0],struct([1],[0],[dup(vector(1,1,1,dup(dup(dup(vector(1,1,1,struct([1],[0],[vector(1,1,1,vector(1,1,1,struct([1],[0],[struct([1],[0],[vector(1,1,1,vector(1,1,1,hindexed([1],[8],vector(1,1,1,hindexed_block(1,[8],hindexed_block(1,[8],hindexed_block(1,[8],struct([1],[0],[hindexed_block(1,[8],struct([1],[0],[hindexed_block(1,[8],struct([1],[0],[hindexed_block(1,[8],hindexed_block(1,[8],hindexed_block(1,[8],dup(hvector(2,1,240,hvector(2,1,112,hvector(2,1,64,hvector(2,1,32,double))))))))]))]))]))))))))])])))])))))))])))))))))
 *
 * What the program does: It builds the datatype, commits it and receives messages from itself into
 * one instance of the datatype: none, one, half, all but one and all of the basic elements. After
 * each message it calls MPI_Get_count and MPI_Get_elements, and compares the memory with the type
 * map.
 *
 * What MPI 5.0 says (section 5.1.11): All arguments are legal, so every call returns MPI_SUCCESS.
 * By this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGABRT and prints `free():
 * invalid next size (normal)`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_ELEMENTS
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
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t11, &t12));
    MPI_Datatype t13;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t12}, &t13));
    MPI_Datatype t14;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t13, &t14));
    MPI_Datatype t15;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t14, &t15));
    MPI_Datatype t16;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t15, &t16));
    MPI_Datatype t17;
    CALL(MPI_Type_vector(1, 1, 1, t16, &t17));
    MPI_Datatype t18;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){8}, t17, &t18));
    MPI_Datatype t19;
    CALL(MPI_Type_vector(1, 1, 1, t18, &t19));
    MPI_Datatype t20;
    CALL(MPI_Type_vector(1, 1, 1, t19, &t20));
    MPI_Datatype t21;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t20}, &t21));
    MPI_Datatype t22;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t21}, &t22));
    MPI_Datatype t23;
    CALL(MPI_Type_vector(1, 1, 1, t22, &t23));
    MPI_Datatype t24;
    CALL(MPI_Type_vector(1, 1, 1, t23, &t24));
    MPI_Datatype t25;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t24}, &t25));
    MPI_Datatype t26;
    CALL(MPI_Type_vector(1, 1, 1, t25, &t26));
    MPI_Datatype t27;
    CALL(MPI_Type_dup(t26, &t27));
    MPI_Datatype t28;
    CALL(MPI_Type_dup(t27, &t28));
    MPI_Datatype t29;
    CALL(MPI_Type_dup(t28, &t29));
    MPI_Datatype t30;
    CALL(MPI_Type_vector(1, 1, 1, t29, &t30));
    MPI_Datatype t31;
    CALL(MPI_Type_dup(t30, &t31));
    MPI_Datatype t32;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t31}, &t32));
    MPI_Datatype t33;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){0}, t32, &t33));
    MPI_Datatype t34;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){8}, t33, &t34));
    MPI_Datatype t35;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){4}, t34, &t35));
    MPI_Datatype t36;
    CALL(MPI_Type_dup(t35, &t36));
    MPI_Datatype t37;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t36, &t37));
    MPI_Datatype t38;
    CALL(MPI_Type_dup(t37, &t38));
    MPI_Datatype t39;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){4}, t38, &t39));
    MPI_Datatype t40;
    CALL(MPI_Type_dup(t39, &t40));
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
    bounds(34, t34);
    bounds(35, t35);
    bounds(36, t36);
    bounds(37, t37);
    bounds(38, t38);
    bounds(39, t39);
    bounds(40, t40);
    return t40;
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
        table(at, 1, (long[]){8}, (long[]){1}, 1, 11);
        break;
    case 13:
        row(at, 1, 1, 0, 12);
        break;
    case 14:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 13);
        break;
    case 15:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 14);
        break;
    case 16:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 15);
        break;
    case 17:
        row(at, 1, 1, 1 * extents[16], 16);
        break;
    case 18:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 17);
        break;
    case 19:
        row(at, 1, 1, 1 * extents[18], 18);
        break;
    case 20:
        row(at, 1, 1, 1 * extents[19], 19);
        break;
    case 21:
        row(at, 1, 1, 0, 20);
        break;
    case 22:
        row(at, 1, 1, 0, 21);
        break;
    case 23:
        row(at, 1, 1, 1 * extents[22], 22);
        break;
    case 24:
        row(at, 1, 1, 1 * extents[23], 23);
        break;
    case 25:
        row(at, 1, 1, 0, 24);
        break;
    case 26:
        row(at, 1, 1, 1 * extents[25], 25);
        break;
    case 27:
        walk(26, at);
        break;
    case 28:
        walk(27, at);
        break;
    case 29:
        walk(28, at);
        break;
    case 30:
        row(at, 1, 1, 1 * extents[29], 29);
        break;
    case 31:
        walk(30, at);
        break;
    case 32:
        row(at, 1, 1, 0, 31);
        break;
    case 33:
        table(at, 1, (long[]){0}, (long[]){1}, 1, 32);
        break;
    case 34:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 33);
        break;
    case 35:
        table(at, 1, (long[]){4}, (long[]){1}, 1, 34);
        break;
    case 36:
        walk(35, at);
        break;
    case 37:
        table(at, 1, (long[]){8}, (long[]){1}, 1, 36);
        break;
    case 38:
        walk(37, at);
        break;
    case 39:
        table(at, 1, (long[]){4}, (long[]){1}, 1, 38);
        break;
    case 40:
        walk(39, at);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
