/*
 * elements.elements-of-pairs on Intel MPI 2021.18.1 (standard ABI)
 *
 * MPI_Get_elements counts a value with an index differently.
 *
 * The datatype: struct([1],[0],[double_int])
 *
 * What the program does: It builds the datatype, commits it and receives messages from itself into
 * one instance of the datatype: none, one, half, all but one and all of the basic elements. After
 * each message it compares the results of MPI_Get_count and MPI_Get_elements.
 *
 * What MPI 5.0 says (section 5.1.11): MPI_Get_elements returns the number of basic elements that
 * were received. The standard can be read so that a value with an index, such as MPI_DOUBLE_INT, is
 * one basic element, or two. The standard can be read so that a value with an index, such as
 * MPI_DOUBLE_INT, is one basic element, because it is a predefined datatype, or two, because it is
 * described as a structure. In ddtc it is one. In ddtc's reading, MPI_Get_elements gives 1 after a
 * message of 1 basic elements.
 *
 * What Intel MPI 2021.18.1 does: on this library, MPI_Get_elements gives MPI_UNDEFINED after a
 * message of 1 basic elements.
 *
 * Other libraries: The program passes on Open MPI 5.0.11.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_ELEMENTS
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){MPI_DOUBLE_INT}, &t1));
    bounds(0, MPI_DOUBLE_INT);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 8, 0, MPI_DOUBLE);
        entry(at + 8, 4, 0, MPI_INT);
        break;
    case 1:
        row(at, 1, 1, 0, 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_elements(t, 1, NUMBERS);
}
