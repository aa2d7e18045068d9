/*
 * truncation.beyond.byte-stride--1 on Open MPI 5.0.11 (Open MPI ABI)
 *
 * A receive writes outside its buffer if the message is too long.
 *
 * The datatype: vector(2,1,-1,byte)
 *
 * What the program does: It builds the datatype, commits it and sends itself messages that are
 * longer than the receive buffer, which has room for one instance to 160 KiB. The receive is posted
 * before or after the send, and the error handler is MPI_ERRORS_RETURN. The program compares the
 * memory inside and around the receive buffer with what was there before.
 *
 * What MPI 5.0 says (section 3.2.4): A message that does not fit into the receive buffer is an
 * overflow error. The standard mandates no behavior for such a program, but advises implementors
 * never to overwrite memory outside the receive buffer. By this rule, no byte outside the receive
 * buffer is changed.
 *
 * What Open MPI 5.0.11 does: on this library, a message of 4 bytes into a receive buffer for 2
 * bytes changes 1 bytes after the buffer.
 *
 * Other libraries: The program passes on MPICH 5.0.2.
 *
 * How to run it: mpicc FILE && ./a.out. An exit status other than 0 shows the difference.
 */
#define CHECK_TRUNCATION
#include "../finding.h"

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_vector(2, 1, -1, MPI_BYTE, &t1));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    return t1;
}

static void walk(int node, long at)
{
    switch (node) {
    case 0:
        entry(at, 1, 0, MPI_BYTE);
        break;
    case 1:
        row(at, 2, 1, -1 * extents[0], 0);
        break;
    }
}

static void check(MPI_Datatype t)
{
    check_truncation(t, 4, (long[]){0, 4096, 65536, 163840}, APART);
}
