/*
 * pack.dies.empty-member on MPICH 4.0.2 (MPICH ABI)
 *
 * The process ends during legal calls of MPI_Pack_size, MPI_Pack and MPI_Unpack.
 *
 * The datatype: struct([1,1],[0,0],[byte,indexed_block(0,[0],vector(2,1,2,byte))])
 *
 * What the program does: It builds the datatype, commits it and packs one instance with MPI_Pack,
 * unpacks them with MPI_Unpack, and compares the memory with the type map. Then it does the same
 * with a second copy in the same packed buffer.
 *
 * What MPI 5.0 says (section 5.2): All arguments are legal, so every call returns MPI_SUCCESS. By
 * this rule, every call returns.
 *
 * What MPICH 4.0.2 does: on this library, the process ends by SIGFPE and prints `Assertion failed
 * in file src/binding/c/datatype/type_get_name.c at line 50: ((datatype)&(0x000000ff)) <
 * MPIR_DATATYPE_N_BUILTIN`.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_PACK
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, 2, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_indexed_block(1, 0, (int[]){0}, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){MPI_BYTE, t2}, &t3));
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
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    case 2:
        table(at, 1, (long[]){0}, (long[]){0}, extents[1], 1);
        break;
    case 3:
        row(at, 1, 1, 0, 0);
        row(at, 1, 1, 0, 2);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_pack(t, 1, ROUND_TRIP);
}
