/*
 * external32.dies.mixed on MPICH 4.0.2 (MPICH ABI)
 *
 * The process ends during legal calls of MPI_Pack_external_size, MPI_Pack_external and
 * MPI_Unpack_external.
 *
 * The datatype: struct([1,1],[0,0],[byte,subarray([2],[1],[1],C,char)])
 *
 * What the program does: It builds the datatype, commits it and compares the results of
 * MPI_Pack_external_size and MPI_Pack_external for one instance with the external32 stream of the
 * same values. Then it unpacks that stream with MPI_Unpack_external and compares the memory with
 * the type map.
 *
 * What MPI 5.0 says (section 5.3): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, every call returns.
 *
 * What MPICH 4.0.2 does: on this library, the process ends by signal 4 and prints `Assertion failed
 * in file src/binding/c/datatype/type_get_name.c at line 50: ((datatype)&(0x000000ff)) <
 * MPIR_DATATYPE_N_BUILTIN`.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_EXTERNAL32
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_subarray(1, (int[]){2}, (int[]){1}, (int[]){1}, MPI_ORDER_C, MPI_CHAR, &t1));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){MPI_BYTE, t1}, &t3));
    bounds(0, MPI_CHAR);
    bounds(1, t1);
    bounds(2, MPI_BYTE);
    bounds(3, t3);
    return t3;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_CHAR);
        break;
    case 1:
        table(at, 1, (long[]){1}, (long[]){1}, extents[0], 0);
        break;
    case 2:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 3:
        row(at, 1, 1, 0, 2);
        row(at, 1, 1, 0, 1);
        break;
    }
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x02};
static const unsigned char external[] = {0x01, 0x02};

static void check(MPI_Datatype t)
{
    check_external32(t, 1, values, external, sizeof external);
}
