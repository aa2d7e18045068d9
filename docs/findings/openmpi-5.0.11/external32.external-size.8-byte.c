/*
 * external32.external-size.8-byte on Open MPI 5.0.11 (Open MPI ABI)
 *
 * MPI_Pack_external_size gives a wrong size.
 *
 * The datatype: long
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for one instance with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 14.5.2): Every value has exactly one representation in external32. It
 * is big-endian, and its size is that of the standard's table. By this rule, MPI_Pack_external_size
 * gives 4.
 *
 * What Open MPI 5.0.11 does: on this library, MPI_Pack_external_size gives 8.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_LONG);
    return MPI_LONG;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_LONG);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
static const unsigned char external[] = {0x00, 0x00, 0x00, 0x01};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
