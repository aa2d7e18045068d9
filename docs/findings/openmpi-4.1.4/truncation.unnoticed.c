/*
 * truncation.unnoticed on Open MPI 4.1.4 (Open MPI ABI)
 *
 * A receive that is too short for its message reports no error.
 *
 * The datatype: byte
 *
 * What the program does: It builds the datatype, commits it and sends itself messages that are
 * longer than the receive buffer, which has room for one instance to 160 KiB. The receive is posted
 * before or after the send, and the error handler is MPI_ERRORS_RETURN. The program compares the
 * error class of the receive with MPI_ERR_TRUNCATE.
 *
 * What MPI 5.0 says (section 3.2.4): A message that does not fit into the receive buffer is an
 * overflow error, whose class is MPI_ERR_TRUNCATE. The standard does not require a library to
 * report errors. The standard does not require a library to report errors of a program. In a
 * library of high quality, the receive returns an error of class MPI_ERR_TRUNCATE.
 *
 * What Open MPI 4.1.4 does: on this library, the receive returns MPI_SUCCESS.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
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
    check_truncation(t, 4, (long[]){0, 4096, 65536, 163840}, CLASS);
}
