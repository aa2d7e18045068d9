/*
 * decode.dies.depth-32 on Intel MPI 2021.18.1 (standard ABI)
 *
 * The process ends during legal calls of MPI_Type_get_envelope and MPI_Type_get_contents.
 *
 * The datatype:
 * subarray([14,1,1],[1,1,1],[4,0,0],C,indexed_block(1,[0],indexed_block(1,[0],hindexed([0,1],[5,-1],vector(1,1,7,struct([1],[0],[resized(-182,392,resized(-182,392,resized(-182,392,struct([1],[0],[contiguous(1,indexed_block(1,[0],contiguous(1,struct([1],[0],[contiguous(1,vector(1,1,7,vector(1,1,7,dup(vector(1,1,7,hindexed([0,1],[5,1],resized(-183,392,dup(struct([1],[0],[indexed_block(1,[0],contiguous(1,dup(vector(1,1,7,contiguous(1,hindexed([0,1],[5,-2],vector(1,1,7,vector(1,1,7,contiguous(1,resized(-181,392,hindexed([0,1],[5,2],indexed_block(1,[0],hindexed([0,1],[5,-1],vector(1,1,7,hindexed([0,1],[5,1],hindexed([0,1],[5,3],vector(1,1,7,indexed_block(1,[0],indexed_block(24,[1,-24],struct([2],[6],[int]))))))))))))))))))))])))))))))]))))]))))]))))))
 *
 * What the program does: It builds the datatype and compares the results of MPI_Type_get_envelope
 * and MPI_Type_get_contents, or of their large-count versions, with the arguments of the
 * constructor.
 *
 * What MPI 5.0 says (section 5.1.13): All arguments are legal, so every call returns MPI_SUCCESS.
 * By this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGABRT and prints `free():
 * invalid next size (normal)`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_DECODE
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_struct(1, (int[]){2}, (MPI_Aint[]){6}, (MPI_Datatype[]){MPI_INT}, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_indexed_block(2, 24, (int[]){1, -24}, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_indexed_block(1, 1, (int[]){0}, t2, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_vector(1, 1, 7, t3, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, 3}, t4, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, 1}, t5, &t6));
    MPI_Datatype t7;
    CALL(MPI_Type_vector(1, 1, 7, t6, &t7));
    MPI_Datatype t8;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, -1}, t7, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_create_indexed_block(1, 1, (int[]){0}, t8, &t9));
    MPI_Datatype t10;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, 2}, t9, &t10));
    MPI_Datatype t11;
    CALL(MPI_Type_create_resized(t10, -181, 392, &t11));
    MPI_Datatype t12;
    CALL(MPI_Type_contiguous(1, t11, &t12));
    MPI_Datatype t13;
    CALL(MPI_Type_vector(1, 1, 7, t12, &t13));
    MPI_Datatype t14;
    CALL(MPI_Type_vector(1, 1, 7, t13, &t14));
    MPI_Datatype t15;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, -2}, t14, &t15));
    MPI_Datatype t16;
    CALL(MPI_Type_contiguous(1, t15, &t16));
    MPI_Datatype t17;
    CALL(MPI_Type_vector(1, 1, 7, t16, &t17));
    MPI_Datatype t18;
    CALL(MPI_Type_dup(t17, &t18));
    MPI_Datatype t19;
    CALL(MPI_Type_contiguous(1, t18, &t19));
    MPI_Datatype t20;
    CALL(MPI_Type_create_indexed_block(1, 1, (int[]){0}, t19, &t20));
    MPI_Datatype t21;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t20}, &t21));
    MPI_Datatype t22;
    CALL(MPI_Type_dup(t21, &t22));
    MPI_Datatype t23;
    CALL(MPI_Type_create_resized(t22, -183, 392, &t23));
    MPI_Datatype t24;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, 1}, t23, &t24));
    MPI_Datatype t25;
    CALL(MPI_Type_vector(1, 1, 7, t24, &t25));
    MPI_Datatype t26;
    CALL(MPI_Type_dup(t25, &t26));
    MPI_Datatype t27;
    CALL(MPI_Type_vector(1, 1, 7, t26, &t27));
    MPI_Datatype t28;
    CALL(MPI_Type_vector(1, 1, 7, t27, &t28));
    MPI_Datatype t29;
    CALL(MPI_Type_contiguous(1, t28, &t29));
    MPI_Datatype t30;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t29}, &t30));
    MPI_Datatype t31;
    CALL(MPI_Type_contiguous(1, t30, &t31));
    MPI_Datatype t32;
    CALL(MPI_Type_create_indexed_block(1, 1, (int[]){0}, t31, &t32));
    MPI_Datatype t33;
    CALL(MPI_Type_contiguous(1, t32, &t33));
    MPI_Datatype t34;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t33}, &t34));
    MPI_Datatype t35;
    CALL(MPI_Type_create_resized(t34, -182, 392, &t35));
    MPI_Datatype t36;
    CALL(MPI_Type_create_resized(t35, -182, 392, &t36));
    MPI_Datatype t37;
    CALL(MPI_Type_create_resized(t36, -182, 392, &t37));
    MPI_Datatype t38;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t37}, &t38));
    MPI_Datatype t39;
    CALL(MPI_Type_vector(1, 1, 7, t38, &t39));
    MPI_Datatype t40;
    CALL(MPI_Type_create_hindexed(2, (int[]){0, 1}, (MPI_Aint[]){5, -1}, t39, &t40));
    MPI_Datatype t41;
    CALL(MPI_Type_create_indexed_block(1, 1, (int[]){0}, t40, &t41));
    MPI_Datatype t42;
    CALL(MPI_Type_create_indexed_block(1, 1, (int[]){0}, t41, &t42));
    MPI_Datatype t43;
    CALL(MPI_Type_create_subarray(3, (int[]){14, 1, 1}, (int[]){1, 1, 1}, (int[]){4, 0, 0}, MPI_ORDER_C, t42, &t43));
    return t43;
}

static void check(MPI_Datatype t)
{
    struct contents want = {
        .combiner = MPI_COMBINER_SUBARRAY,
        .lengths = {11, 0, 0, 1},
        .integers = (int[]){3, 14, 1, 1, 1, 1, 1, 4, 0, 0, MPI_ORDER_C},
        .parts = (struct part[]){{MPI_COMBINER_INDEXED_BLOCK, 384, -183, 392}},
    };
    check_decode(t, want);
}
