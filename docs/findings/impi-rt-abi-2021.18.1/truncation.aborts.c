/*
 * truncation.aborts on Intel MPI 2021.18.1 (standard ABI)
 *
 * A receive that is too short for its message ends the process.
 *
 * The datatype: byte
 *
 * What the program does: It builds the datatype, commits it and sends itself messages that are
 * longer than the receive buffer, which has room for one instance to 160 KiB. The receive is posted
 * before or after the send, and the error handler is MPI_ERRORS_RETURN. The program compares the
 * memory inside and around the receive buffer with what was there before.
 *
 * What MPI 5.0 says (section 9.3): The error handler is MPI_ERRORS_RETURN, which returns an error
 * code and does not end the process. By this rule, every call returns.
 *
 * What Intel MPI 2021.18.1 does: on this library, the process exits with status 15 and prints
 * `(unknown)(): Other MPI error`.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc_abi FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_TRUNCATION
#include "../finding.h"

static MPI_Datatype build(void)
{
    bounds(0, MPI_BYTE);
    return MPI_BYTE;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_truncation(t, 4, (long[]){0, 4096, 65536, 163840}, WRITTEN);
}
