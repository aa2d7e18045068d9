/*
 * pack.format on MPICH 5.0.2 (standard ABI)
 *
 * The packed format is not the sequence of the values' bytes.
 *
 * The datatype: hvector(8,2,26,struct([1,1],[0,25],[resized(0,64,real16),byte]))
 *
 * What the program does: It builds the datatype, commits it and packs 17 instances with MPI_Pack
 * and compares the packed bytes with those in memory, in the order of the type map.
 *
 * What MPI 5.0 says (section 5.2): A program uses the contents of a packed buffer only by unpacking
 * them. The library chooses the bytes in the buffer, and also the bytes that hold no value. The
 * packed format belongs to the library. The values are right when the library unpacks them again.
 * In ddtc's reading, the packed byte 10 is 0x5f.
 *
 * What MPICH 5.0.2 does: on this library, the packed byte 10 is 0xee.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(MPI_REAL16, 0, 64, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 25}, (MPI_Datatype[]){t2, MPI_BYTE}, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_create_hvector(8, 2, 26, t3, &t4));
    bounds(0, MPI_BYTE);
    bounds(1, MPI_REAL16);
    bounds(2, t2);
    bounds(3, t3);
    bounds(4, t4);
    return t4;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        entry(at, 16, 0, MPI_REAL16);
        break;
    case 2:
        walk(1, at);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        row(at + 25, 1, 1, 0, 0);
        break;
    case 4:
        row(at, 8, 2, 26, 3);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 17, FORMAT);
}
