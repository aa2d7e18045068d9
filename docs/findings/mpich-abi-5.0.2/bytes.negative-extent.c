/*
 * bytes.negative-extent on MPICH 5.0.2 (standard ABI)
 *
 * MPI_Pack packs wrong values.
 *
 * The datatype: contiguous(2,resized(0,-2,contiguous(2,byte)))
 *
 * What the program does: It builds the datatype, commits it and packs 2 instances with MPI_Pack,
 * unpacks them with MPI_Unpack, and compares the memory with the type map. Then it does the same
 * with a second copy in the same packed buffer.
 *
 * What MPI 5.0 says (section 5.2): Values that are packed and then unpacked, or sent and received,
 * are unchanged. The type maps on the two sides say where in memory the values are. By this rule,
 * the packed byte 4 is 0x45.
 *
 * What MPICH 5.0.2 does: on this library, the packed byte 4 is 0xa5.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_contiguous(2, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(t1, 0, -2, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_contiguous(2, t2, &t3));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    bounds(2, t2);
    bounds(3, t3);
    return t3;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        row(at, 1, 2, 0, 0);
        break;
    case 2:
        walk(1, at);
        break;
    case 3:
        row(at, 1, 2, 0, 2);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 2, ROUND_TRIP);
}
