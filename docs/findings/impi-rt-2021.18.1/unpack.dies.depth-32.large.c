/*
 * unpack.dies.depth-32.large on Intel MPI 2021.18.1 (MPICH ABI)
 *
 * The process ends during legal calls of MPI_Pack and MPI_Unpack.
 *
 * The datatype:
 * subarray([1,1,1],[1,1,1],[0,0,0],Fortran,vector(1,1,2,contiguous(1,contiguous(1,dup(struct([1],[0],[vector(1,1,7,contiguous(1,dup(struct([1],[0],[contiguous(1,vector(1,1,7,vector(1,1,7,vector(1,1,7,struct([1],[0],[resized(0,1802,indexed_block(1,[0],hindexed([0,1],[5,-3],struct([1],[0],[struct([1],[0],[struct([1],[0],[vector(1,1,7,indexed_block(1,[0],vector(1,1,7,resized(3,1802,indexed_block(1,[0],indexed_block(1,[0],hindexed([0,1],[5,1],dup(indexed_block(1,[0],indexed_block(1,[0],indexed_block(1,[0],vector(1,1,7,contiguous(1,vector(1,1,7,vector(1,1,7,struct([1],[0],[contiguous(1,vector(1,1,7,contiguous(1,hindexed([0,1],[5,1],hindexed([0,1],[5,1],vector(1,106,109,resized(0,17,float)))))))]))))))))))))))))])])]))))])))))]))))]))))))
 *
 * What the program does: It builds the datatype with constructors that take large counts, such as
 * MPI_Type_contiguous_c, commits it and packs values that are stored without gaps, unpacks them
 * with MPI_Unpack into one instance of the datatype, and compares the memory with the type map.
 *
 * What MPI 5.0 says (section 5.2): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGABRT and prints `free():
 * invalid next size (normal)`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_UNPACK
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
    bounds(0, MPI_FLOAT);
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
    bounds(41, t41);
    bounds(42, t42);
    bounds(43, t43);
    bounds(44, t44);
    return t44;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_FLOAT);
        break;
    case 1:
        walk(0, at);
        break;
    case 2:
        row(at, 1, 106, 109 * extents[1], 1);
        break;
    case 3:
        table(at, 2, (long[]){5, 1}, (long[]){0, 1}, 1, 2);
        break;
    case 4:
        table(at, 2, (long[]){5, 1}, (long[]){0, 1}, 1, 3);
        break;
    case 5:
        row(at, 1, 1, 0, 4);
        break;
    case 6:
        row(at, 1, 1, 7 * extents[5], 5);
        break;
    case 7:
        row(at, 1, 1, 0, 6);
        break;
    case 8:
        row(at, 1, 1, 0, 7);
        break;
    case 9:
        row(at, 1, 1, 7 * extents[8], 8);
        break;
    case 10:
        row(at, 1, 1, 7 * extents[9], 9);
        break;
    case 11:
        row(at, 1, 1, 0, 10);
        break;
    case 12:
        row(at, 1, 1, 7 * extents[11], 11);
        break;
    case 13:
        table(at, 1, (long[]){0}, (long[]){1}, extents[12], 12);
        break;
    case 14:
        table(at, 1, (long[]){0}, (long[]){1}, extents[13], 13);
        break;
    case 15:
        table(at, 1, (long[]){0}, (long[]){1}, extents[14], 14);
        break;
    case 16:
        walk(15, at);
        break;
    case 17:
        table(at, 2, (long[]){5, 1}, (long[]){0, 1}, 1, 16);
        break;
    case 18:
        table(at, 1, (long[]){0}, (long[]){1}, extents[17], 17);
        break;
    case 19:
        table(at, 1, (long[]){0}, (long[]){1}, extents[18], 18);
        break;
    case 20:
        walk(19, at);
        break;
    case 21:
        row(at, 1, 1, 7 * extents[20], 20);
        break;
    case 22:
        table(at, 1, (long[]){0}, (long[]){1}, extents[21], 21);
        break;
    case 23:
        row(at, 1, 1, 7 * extents[22], 22);
        break;
    case 24:
        row(at, 1, 1, 0, 23);
        break;
    case 25:
        row(at, 1, 1, 0, 24);
        break;
    case 26:
        row(at, 1, 1, 0, 25);
        break;
    case 27:
        table(at, 2, (long[]){5, -3}, (long[]){0, 1}, 1, 26);
        break;
    case 28:
        table(at, 1, (long[]){0}, (long[]){1}, extents[27], 27);
        break;
    case 29:
        walk(28, at);
        break;
    case 30:
        row(at, 1, 1, 0, 29);
        break;
    case 31:
        row(at, 1, 1, 7 * extents[30], 30);
        break;
    case 32:
        row(at, 1, 1, 7 * extents[31], 31);
        break;
    case 33:
        row(at, 1, 1, 7 * extents[32], 32);
        break;
    case 34:
        row(at, 1, 1, 0, 33);
        break;
    case 35:
        row(at, 1, 1, 0, 34);
        break;
    case 36:
        walk(35, at);
        break;
    case 37:
        row(at, 1, 1, 0, 36);
        break;
    case 38:
        row(at, 1, 1, 7 * extents[37], 37);
        break;
    case 39:
        row(at, 1, 1, 0, 38);
        break;
    case 40:
        walk(39, at);
        break;
    case 41:
        row(at, 1, 1, 0, 40);
        break;
    case 42:
        row(at, 1, 1, 0, 41);
        break;
    case 43:
        row(at, 1, 1, 2 * extents[42], 42);
        break;
    case 44:
        table(at, 1, (long[]){0}, (long[]){1}, extents[43], 43);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_unpack(t, 1);
}
