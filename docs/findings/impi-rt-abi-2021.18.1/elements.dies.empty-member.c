/*
 * elements.dies.empty-member on Intel MPI 2021.18.1 (standard ABI)
 *
 * The process ends during legal calls of MPI_Sendrecv, MPI_Get_count and MPI_Get_elements.
 *
 * The datatype:
 * struct([0,1,1,0],[0,20,44,144],[int,resized(-8,64,int),dup(struct([0,0,1,1],[8,17,117,125],[2int,contiguous(0,2int),contiguous(0,2int),resized(-16,32,contiguous(0,2int))])),int])
 *
 * What the program does: It builds the datatype, commits it and receives messages from itself into
 * 2 instances of the datatype: none, one, half, all but one and all of the basic elements. After
 * each message it calls MPI_Get_count and MPI_Get_elements, and compares the memory with the type
 * map.
 *
 * What MPI 5.0 says (section 5.1.11): All arguments are legal, so every call returns MPI_SUCCESS.
 * By this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGFPE and prints
 * `MPI_Type_create_f90_integer(97)........: No integer type with 1000 digits of range is
 * available`.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_contiguous(0, MPI_2INT, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_resized(t2, -16, 32, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_contiguous(0, MPI_2INT, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_contiguous(0, MPI_2INT, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_create_struct(4, (int[]){0, 0, 1, 1}, (MPI_Aint[]){8, 17, 117, 125}, (MPI_Datatype[]){MPI_2INT, t5, t4, t3}, &t6));
    MPI_Datatype t7;
    CALL(MPI_Type_dup(t6, &t7));
    MPI_Datatype t8;
    CALL(MPI_Type_create_resized(MPI_INT, -8, 64, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_create_struct(4, (int[]){0, 1, 1, 0}, (MPI_Aint[]){0, 20, 44, 144}, (MPI_Datatype[]){MPI_INT, t8, t7, MPI_INT}, &t9));
    bounds(0, MPI_INT);
    bounds(1, MPI_2INT);
    bounds(2, t2);
    bounds(3, t3);
    bounds(4, t4);
    bounds(5, t5);
    bounds(6, t6);
    bounds(7, t7);
    bounds(8, t8);
    bounds(9, t9);
    return t9;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_INT);
        break;
    case 1:
        entry(at, 4, 0, MPI_INT);
        entry(at + 4, 4, 0, MPI_INT);
        break;
    case 2:
        row(at, 1, 0, 0, 1);
        break;
    case 3:
        walk(2, at);
        break;
    case 4:
        row(at, 1, 0, 0, 1);
        break;
    case 5:
        row(at, 1, 0, 0, 1);
        break;
    case 6:
        row(at + 8, 1, 0, 0, 1);
        row(at + 17, 1, 0, 0, 5);
        row(at + 117, 1, 1, 0, 4);
        row(at + 125, 1, 1, 0, 3);
        break;
    case 7:
        walk(6, at);
        break;
    case 8:
        walk(0, at);
        break;
    case 9:
        row(at, 1, 0, 0, 0);
        row(at + 20, 1, 1, 0, 8);
        row(at + 44, 1, 1, 0, 7);
        row(at + 144, 1, 0, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 2, BYTES);
}
