/*
 * bounds.dies.depth-32.large on Intel MPI 2021.18.1 (standard ABI)
 *
 * The process ends during legal calls of MPI_Type_size, MPI_Type_get_extent and
 * MPI_Type_get_true_extent.
 *
 * The datatype:
 * subarray([1,1,1],[1,1,1],[0,0,0],Fortran,vector(1,1,2,contiguous(1,contiguous(1,dup(struct([1],[0],[vector(1,1,7,contiguous(1,dup(struct([1],[0],[contiguous(1,vector(1,1,7,vector(1,1,7,vector(1,1,7,struct([1],[0],[resized(0,1802,indexed_block(1,[0],hindexed([0,1],[5,-3],struct([1],[0],[struct([1],[0],[struct([1],[0],[vector(1,1,7,indexed_block(1,[0],vector(1,1,7,resized(3,1802,indexed_block(1,[0],indexed_block(1,[0],hindexed([0,1],[5,1],dup(indexed_block(1,[0],indexed_block(1,[0],indexed_block(1,[0],vector(1,1,7,contiguous(1,vector(1,1,7,vector(1,1,7,struct([1],[0],[contiguous(1,vector(1,1,7,contiguous(1,hindexed([0,1],[5,1],hindexed([0,1],[5,1],vector(1,106,109,resized(0,17,float)))))))]))))))))))))))))])])]))))])))))]))))]))))))
 *
 * What the program does: It builds the datatype with constructors that take large counts, such as
 * MPI_Type_contiguous_c and calls MPI_Type_size_x, MPI_Type_get_extent, MPI_Type_get_true_extent
 * and MPI_Type_size.
 *
 * What MPI 5.0 says (section 5.1.5 to 5.1.8): All arguments are legal, so every call returns
 * MPI_SUCCESS. By this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGABRT and prints `free():
 * invalid next size (normal)`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_BOUNDS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_resized_c(MPI_FLOAT, 0, 17, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_vector_c(1, 106, 109, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_hindexed_c(2, (MPI_Count[]){0, 1}, (MPI_Count[]){5, 1}, t2, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_create_hindexed_c(2, (MPI_Count[]){0, 1}, (MPI_Count[]){5, 1}, t3, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_contiguous_c(1, t4, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_vector_c(1, 1, 7, t5, &t6));
    MPI_Datatype t7;
    CALL(MPI_Type_contiguous_c(1, t6, &t7));
    MPI_Datatype t8;
    CALL(MPI_Type_create_struct_c(1, (MPI_Count[]){1}, (MPI_Count[]){0}, (MPI_Datatype[]){t7}, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_vector_c(1, 1, 7, t8, &t9));
    MPI_Datatype t10;
    CALL(MPI_Type_vector_c(1, 1, 7, t9, &t10));
    MPI_Datatype t11;
    CALL(MPI_Type_contiguous_c(1, t10, &t11));
    MPI_Datatype t12;
    CALL(MPI_Type_vector_c(1, 1, 7, t11, &t12));
    MPI_Datatype t13;
    CALL(MPI_Type_create_indexed_block_c(1, 1, (MPI_Count[]){0}, t12, &t13));
    MPI_Datatype t14;
    CALL(MPI_Type_create_indexed_block_c(1, 1, (MPI_Count[]){0}, t13, &t14));
    MPI_Datatype t15;
    CALL(MPI_Type_create_indexed_block_c(1, 1, (MPI_Count[]){0}, t14, &t15));
    MPI_Datatype t16;
    CALL(MPI_Type_dup(t15, &t16));
    MPI_Datatype t17;
    CALL(MPI_Type_create_hindexed_c(2, (MPI_Count[]){0, 1}, (MPI_Count[]){5, 1}, t16, &t17));
    MPI_Datatype t18;
    CALL(MPI_Type_create_indexed_block_c(1, 1, (MPI_Count[]){0}, t17, &t18));
    MPI_Datatype t19;
    CALL(MPI_Type_create_indexed_block_c(1, 1, (MPI_Count[]){0}, t18, &t19));
    MPI_Datatype t20;
    CALL(MPI_Type_create_resized_c(t19, 3, 1802, &t20));
    MPI_Datatype t21;
    CALL(MPI_Type_vector_c(1, 1, 7, t20, &t21));
    MPI_Datatype t22;
    CALL(MPI_Type_create_indexed_block_c(1, 1, (MPI_Count[]){0}, t21, &t22));
    MPI_Datatype t23;
    CALL(MPI_Type_vector_c(1, 1, 7, t22, &t23));
    MPI_Datatype t24;
    CALL(MPI_Type_create_struct_c(1, (MPI_Count[]){1}, (MPI_Count[]){0}, (MPI_Datatype[]){t23}, &t24));
    MPI_Datatype t25;
    CALL(MPI_Type_create_struct_c(1, (MPI_Count[]){1}, (MPI_Count[]){0}, (MPI_Datatype[]){t24}, &t25));
    MPI_Datatype t26;
    CALL(MPI_Type_create_struct_c(1, (MPI_Count[]){1}, (MPI_Count[]){0}, (MPI_Datatype[]){t25}, &t26));
    MPI_Datatype t27;
    CALL(MPI_Type_create_hindexed_c(2, (MPI_Count[]){0, 1}, (MPI_Count[]){5, -3}, t26, &t27));
    MPI_Datatype t28;
    CALL(MPI_Type_create_indexed_block_c(1, 1, (MPI_Count[]){0}, t27, &t28));
    MPI_Datatype t29;
    CALL(MPI_Type_create_resized_c(t28, 0, 1802, &t29));
    MPI_Datatype t30;
    CALL(MPI_Type_create_struct_c(1, (MPI_Count[]){1}, (MPI_Count[]){0}, (MPI_Datatype[]){t29}, &t30));
    MPI_Datatype t31;
    CALL(MPI_Type_vector_c(1, 1, 7, t30, &t31));
    MPI_Datatype t32;
    CALL(MPI_Type_vector_c(1, 1, 7, t31, &t32));
    MPI_Datatype t33;
    CALL(MPI_Type_vector_c(1, 1, 7, t32, &t33));
    MPI_Datatype t34;
    CALL(MPI_Type_contiguous_c(1, t33, &t34));
    MPI_Datatype t35;
    CALL(MPI_Type_create_struct_c(1, (MPI_Count[]){1}, (MPI_Count[]){0}, (MPI_Datatype[]){t34}, &t35));
    MPI_Datatype t36;
    CALL(MPI_Type_dup(t35, &t36));
    MPI_Datatype t37;
    CALL(MPI_Type_contiguous_c(1, t36, &t37));
    MPI_Datatype t38;
    CALL(MPI_Type_vector_c(1, 1, 7, t37, &t38));
    MPI_Datatype t39;
    CALL(MPI_Type_create_struct_c(1, (MPI_Count[]){1}, (MPI_Count[]){0}, (MPI_Datatype[]){t38}, &t39));
    MPI_Datatype t40;
    CALL(MPI_Type_dup(t39, &t40));
    MPI_Datatype t41;
    CALL(MPI_Type_contiguous_c(1, t40, &t41));
    MPI_Datatype t42;
    CALL(MPI_Type_contiguous_c(1, t41, &t42));
    MPI_Datatype t43;
    CALL(MPI_Type_vector_c(1, 1, 2, t42, &t43));
    MPI_Datatype t44;
    CALL(MPI_Type_create_subarray_c(3, (MPI_Count[]){1, 1, 1}, (MPI_Count[]){1, 1, 1}, (MPI_Count[]){0, 0, 0}, MPI_ORDER_FORTRAN, t43, &t44));
    return t44;
}

static void check(MPI_Datatype t)
{
    check_calls(t);
}
