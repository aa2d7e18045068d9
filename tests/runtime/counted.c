/* Sends 1000 messages of 64 KiB from rank 0 to rank 1, whose receives have room for exactly the
 * message. A tool such as callgrind counts the instructions of the functions that an MPI library
 * calls for each message; docs/for-mpich.md and docs/for-openmpi.md have such counts.
 *
 *     counted           buffers without gaps
 *     counted PIECES    buffers of so many pieces, with gaps of the length of a piece */
#include <mpi.h>
#include <stdlib.h>

enum { MESSAGES = 1000, BYTES = 65536 };

int main(int argc, char **argv)
{
    static char buffer[2 * BYTES];
    int rank, pieces = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Datatype type = MPI_BYTE;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (pieces > 1) {
        MPI_Type_vector(pieces, BYTES / pieces, 2 * (BYTES / pieces), MPI_BYTE, &type);
        MPI_Type_commit(&type);
    }
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Request request;
        if (rank == 0) MPI_Isend(buffer, pieces > 1 ? 1 : BYTES, type, 1, 1, MPI_COMM_WORLD, &request);
        else MPI_Irecv(buffer, pieces > 1 ? 1 : BYTES, type, 0, 1, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (pieces > 1) MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
