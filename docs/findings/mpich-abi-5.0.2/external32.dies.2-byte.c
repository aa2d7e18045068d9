/*
 * external32.dies.2-byte on MPICH 5.0.2 (standard ABI)
 *
 * The process ends during legal calls of MPI_Pack_external_size, MPI_Pack_external and
 * MPI_Unpack_external.
 *
 * The datatype: logical2
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
 * 185: 0`.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_LOGICAL2);
    return MPI_LOGICAL2;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 2, 0, MPI_LOGICAL2);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x00, 0x00};
static const unsigned char external[] = {0x00, 0x00};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
