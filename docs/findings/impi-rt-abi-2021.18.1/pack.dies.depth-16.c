/*
 * pack.dies.depth-16 on Intel MPI 2021.18.1 (standard ABI)
 *
 * The process ends during legal calls of MPI_Pack_size, MPI_Pack and MPI_Unpack.
 *
 * The datatype:
 * darray(1,0,[1,1],[none,none],[1,2],[1,1],Fortran,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,contiguous(1,vector(2,1,2,byte)))))))))))))))))
 *
 * What the program does: It builds the datatype, commits it and packs 0 instances with MPI_Pack,
 * unpacks them with MPI_Unpack, and compares the memory with the type map. Then it does the same
 * with a second copy in the same packed buffer.
 *
 * What MPI 5.0 says (section 5.2): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGABRT and prints `double
 * free or corruption (!prev)`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, 2, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_contiguous(1, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_contiguous(1, t2, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_contiguous(1, t3, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_contiguous(1, t4, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_contiguous(1, t5, &t6));
    MPI_Datatype t7;
    CALL(MPI_Type_contiguous(1, t6, &t7));
    MPI_Datatype t8;
    CALL(MPI_Type_contiguous(1, t7, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_contiguous(1, t8, &t9));
    MPI_Datatype t10;
    CALL(MPI_Type_contiguous(1, t9, &t10));
    MPI_Datatype t11;
    CALL(MPI_Type_contiguous(1, t10, &t11));
    MPI_Datatype t12;
    CALL(MPI_Type_contiguous(1, t11, &t12));
    MPI_Datatype t13;
    CALL(MPI_Type_contiguous(1, t12, &t13));
    MPI_Datatype t14;
    CALL(MPI_Type_contiguous(1, t13, &t14));
    MPI_Datatype t15;
    CALL(MPI_Type_contiguous(1, t14, &t15));
    MPI_Datatype t16;
    CALL(MPI_Type_contiguous(1, t15, &t16));
    MPI_Datatype t17;
    CALL(MPI_Type_create_darray(1, 0, 2, (int[]){1, 1}, (int[]){MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_NONE}, (int[]){1, 2}, (int[]){1, 1}, MPI_ORDER_FORTRAN, t16, &t17));
    bounds(0, MPI_BYTE);
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
    return t17;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    case 2:
        row(at, 1, 1, 0, 1);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        break;
    case 4:
        row(at, 1, 1, 0, 3);
        break;
    case 5:
        row(at, 1, 1, 0, 4);
        break;
    case 6:
        row(at, 1, 1, 0, 5);
        break;
    case 7:
        row(at, 1, 1, 0, 6);
        break;
    case 8:
        row(at, 1, 1, 0, 7);
        break;
    case 9:
        row(at, 1, 1, 0, 8);
        break;
    case 10:
        row(at, 1, 1, 0, 9);
        break;
    case 11:
        row(at, 1, 1, 0, 10);
        break;
    case 12:
        row(at, 1, 1, 0, 11);
        break;
    case 13:
        row(at, 1, 1, 0, 12);
        break;
    case 14:
        row(at, 1, 1, 0, 13);
        break;
    case 15:
        row(at, 1, 1, 0, 14);
        break;
    case 16:
        row(at, 1, 1, 0, 15);
        break;
    case 17:
        table(at, 1, (long[]){0}, (long[]){1}, extents[16], 16);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 0, ROUND_TRIP);
}
