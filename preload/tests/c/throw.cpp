/* Makes MPI calls that an error handler of the program leaves by a C++ exception or by longjmp.
 *
 * MPI does not define what happens then, but programs have done it for a long time: MPI-2 had
 * MPI::ERRORS_THROW_EXCEPTIONS. A receive of a derived type is truncated 20 times, and each time
 * the handler leaves the call. Correct messages that follow must arrive with the right bytes.
 *
 * Usage: throw exception | jump */
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <mpi.h>
#include <stdexcept>

enum { BLOCKS = 1000, ELEMENTS = 4 * BLOCKS, WARM = 50, TRUNCATED = 20, LATER = 30 };

static bool throws;
static jmp_buf outside;
static int sent[ELEMENTS], received[ELEMENTS];

static void leave(MPI_Comm *, int *code, ...)
{
    if (throws)
        throw std::runtime_error("an MPI error");
    longjmp(outside, *code != 0 ? *code : 1);
}

/* Calls the function `call` and returns whether the error handler left it before it could
 * return. */
template <typename Call> static bool was_left(Call call)
{
    if (throws) {
        try {
            call();
        } catch (const std::runtime_error &) {
            return true;
        }
        return false;
    }
    if (setjmp(outside) != 0)
        return true;
    call();
    return false;
}

/* Sends two instances of the type from this process to itself. */
static void exchange(MPI_Datatype column)
{
    MPI_Request requests[2];
    MPI_Irecv(received, 2, column, 0, 1, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(sent, 2, column, 0, 1, MPI_COMM_SELF, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int left = 0, wrong = 0;
    throws = strcmp(argv[1], "exception") == 0;
    MPI_Init(&argc, &argv);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Datatype column;
    MPI_Type_vector(BLOCKS, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < WARM; i++)
        exchange(column);
    for (int i = 0; i < TRUNCATED; i++) {
        MPI_Request request;
        MPI_Isend(sent, 2, column, 0, 2, MPI_COMM_SELF, &request);
        left += was_left([&] { MPI_Recv(received, 1, column, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE); });
        was_left([&] { MPI_Wait(&request, MPI_STATUS_IGNORE); });
    }
    for (int round = 0; round < LATER; round++) {
        for (int i = 0; i < ELEMENTS; i++)
            sent[i] = i + round, received[i] = -1;
        exchange(column);
        for (int i = 0; i < 2 * BLOCKS - 1; i += 2)
            wrong += received[i] != sent[i];
    }
    printf("left %d of %d calls, %d elements wrong later\n", left, TRUNCATED, wrong);
    fflush(stdout);
    MPI_Type_free(&column);
    MPI_Errhandler_free(&handler);
    MPI_Finalize();
    return 0;
}
