/*
 * external32.outside.f90_complex on Open MPI 5.0.11 (Open MPI ABI)
 *
 * Bytes are overwritten that belong to no entry of the type map.
 *
 * The datatype: vector(2,1,2,f90_complex(18,37))
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for one instance with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 3.2.4): A receive modifies only the locations of the elements that it
 * receives. Unpacking and collective calls have the same effect on their receive buffers. By this
 * rule, no byte outside the true bounds is changed.
 *
 * What Open MPI 5.0.11 does: on this library, bytes outside the true bounds are changed.
 *
 * Other libraries: The program fails on MPICH 5.0.2 (`MPI_Pack_external_size: expected 64, got 0`),
 * Intel MPI 2021.18.1 (`expected MPI_SUCCESS, got class 15: MPI_Type_create_f90_complex(18, 37,
 * &t0)`).
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t0;
    CALL(MPI_Type_create_f90_complex(18, 37, &t0));
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
        entry(at, 32, 1, MPI_C_LONG_DOUBLE_COMPLEX);
        break;
    case 1:
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x03, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0xff, 0xbf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0xff, 0xbf, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc0, 0xff, 0x3f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
static const unsigned char external[] = {0x40, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbf, 0xff, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xbf, 0xff, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x3f, 0xff, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
