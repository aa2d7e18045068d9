/*
 * elements.dies.pair.large on Intel MPI 2021.18.1 (standard ABI)
 *
 * The process ends during legal calls of MPI_Sendrecv, MPI_Get_count and MPI_Get_elements.
 *
 * The datatype: vector(2,1,2,float_int)
 *
 * What the program does: It builds the datatype with constructors that take large counts, such as
 * MPI_Type_contiguous_c, commits it and receives messages from itself into one instance of the
 * datatype: none, one, half, all but one and all of the basic elements. After each message it calls
 * MPI_Get_count and MPI_Get_elements, and compares the memory with the type map.
 *
 * What MPI 5.0 says (section 5.1.11): All arguments are legal, so every call returns MPI_SUCCESS.
 * By this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process ends by SIGFPE and prints
 * `MPI_Type_create_f90_integer(97)........: No integer type with 1000 digits of range is
 * available`.
 *
 * Other libraries: The program fails on MPICH 5.0.2 (the process ends by a signal), Intel MPI
 * 2021.18.1 with the MPICH ABI (the process ends by a signal). The program does not run on Open MPI
 * 5.0.11, which lacks functions that it calls.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector_c(2, 1, 2, MPI_FLOAT_INT, &t1));
    bounds(0, MPI_FLOAT_INT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 4, 0, MPI_FLOAT);
        entry(at + 4, 4, 0, MPI_INT);
        break;
    case 1:
        row(at, 2, 1, 2 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, BYTES);
}
