/*
 * bytes.f90_complex on MPICH 5.0.2 (standard ABI)
 *
 * MPI_Pack packs wrong values.
 *
 * The datatype: vector(2,1,2,f90_complex(33,undefined))
 *
 * What the program does: It builds the datatype, commits it and packs one instance with MPI_Pack,
 * unpacks them with MPI_Unpack, and compares the memory with the type map. Then it does the same
 * with a second copy in the same packed buffer.
 *
 * What MPI 5.0 says (section 5.2): Values that are packed and then unpacked, or sent and received,
 * are unchanged. The type maps on the two sides say where in memory the values are. By this rule,
 * the packed byte 10 is 0x5f.
 *
 * What MPICH 5.0.2 does: on this library, the packed byte 10 is 0xee.
 *
 * Other libraries: The program fails on MPICH 5.0.2 with the MPICH ABI (`unpacked: byte at
 * displacement 10: expected 0x5f, got 0xe7`), Open MPI 5.0.11 (`expected MPI_SUCCESS, got class 13:
 * MPI_Type_create_f90_complex(33, MPI_UNDEFINED, &t0)`), Intel MPI 2021.18.1 (`expected
 * MPI_SUCCESS, got class 15: MPI_Type_create_f90_complex(33, MPI_UNDEFINED, &t0)`).
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t0;
    CALL(MPI_Type_create_f90_complex(33, MPI_UNDEFINED, &t0));
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, 2, t0, &t1));
    bounds(0, t0);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 32, 0, MPI_COMPLEX32);
        break;
    case 1:
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 1, ROUND_TRIP);
}
