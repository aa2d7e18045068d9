/*
 * external32.dies.f90_real on MPICH 5.0.2 (standard ABI)
 *
 * The process ends during legal calls of MPI_Pack_external_size, MPI_Pack_external and
 * MPI_Unpack_external.
 *
 * The datatype: f90_real(undefined,307)
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for one instance with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 5.3): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, every call returns.
 *
 * What MPICH 5.0.2 does: on this library, the process exits with status 1 and prints `Assertion
 * failed in file /mpich-5.0.2/src/mpi/datatype/typerep/src/typerep_yaksa_pack_external.c at line
 * 196: 0`.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t0;
    CALL(MPI_Type_create_f90_real(MPI_UNDEFINED, 307, &t0));
    bounds(0, t0);
    return t0;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_REAL8);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30, 0x40};
static const unsigned char external[] = {0x40, 0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
