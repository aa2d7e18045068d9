/*
 * external32.external-bytes.f90_real on Open MPI 5.0.11 (Open MPI ABI)
 *
 * MPI_Pack_external writes wrong bytes.
 *
 * The datatype: f90_real(18,37)
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for one instance with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 14.5.2): Every value has exactly one representation in external32. It
 * is big-endian, and its size is that of the standard's table. By this rule, the external32 byte 0
 * is 0x40.
 *
 * What Open MPI 5.0.11 does: on this library, the external32 byte 0 is 0x00.
 *
 * Other libraries: The program fails on MPICH 5.0.2 (`MPI_Pack_external_size: expected 16, got 0`),
 * Intel MPI 2021.18.1 (`expected MPI_SUCCESS, got class 15: MPI_Type_create_f90_real(18, 37,
 * &t0)`).
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t0;
    CALL(MPI_Type_create_f90_real(18, 37, &t0));
    bounds(0, t0);
    return t0;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 16, 1, MPI_LONG_DOUBLE);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x03, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
static const unsigned char external[] = {0x40, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
