/* A message of 6000 ints for a receive of 3000, plain MPI_INT, blocking calls, MPI_ERRORS_RETURN.
 *
 *     mpicc truncated.c -o truncated && mpiexec -n 2 ./truncated
 *
 * MPI 5.0, 3.2.4: the receive is an error of class MPI_ERR_TRUNCATE, and nothing but its own 3000 ints is written. Exit status 1, and what
 * was written behind them, where that does not hold: packaging/openmpi/README.md, "Truncation". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SENT = 6000, ROOM = 3000, MARK = 0x5a5a5a5a };

int main(int argc, char **argv)
{
    static int buffer[SENT];
    int rank, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < SENT; i++) buffer[i] = rank == 0 ? i : MARK;
    if (rank == 0) {
        MPI_Send(buffer, SENT, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        int behind = 0, class = MPI_SUCCESS;
        MPI_Error_class(MPI_Recv(buffer, ROOM, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
        for (int i = ROOM; i < SENT; i++) behind += buffer[i] != MARK;
        printf("error class %s, %d ints written behind the %d of the receive\n", class == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE" : "wrong",
               behind, ROOM);
        wrong = class != MPI_ERR_TRUNCATE || behind;
    }
    MPI_Bcast(&wrong, 1, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Finalize();
    return wrong;
}
