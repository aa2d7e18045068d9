/*
 * padding on MPICH 5.0.2 (standard ABI)
 *
 * MPI_Pack does not keep the padding bytes of a long double.
 *
 * The datatype: vector(2,1,2,long_double)
 *
 * What the program does: It builds the datatype, commits it and packs one instance with MPI_Pack
 * and compares all packed bytes, also padding, with those in memory.
 *
 * What MPI 5.0 says (section 5.2): A program uses the contents of a packed buffer only by unpacking
 * them. The library chooses the bytes in the buffer, and also the bytes that hold no value. The
 * padding bytes of an x87 long double hold no value, so the standard does not say that packing
 * keeps them. A program that compares packed bytes or whole memory sees the difference. In ddtc's
 * reading, the bytes of a long double that hold no value are packed unchanged.
 *
 * What MPICH 5.0.2 does: on this library, other bytes are packed in their place.
 *
 * Other libraries: The program passes on Intel MPI 2021.18.1.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, 2, MPI_LONG_DOUBLE, &t1));
    bounds(0, MPI_LONG_DOUBLE);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 16, 1, MPI_LONG_DOUBLE);
        break;
    case 1:
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 1, PADDING);
}
