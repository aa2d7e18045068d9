/* Checks that a receive of 3000 ints is not overrun by a message of 6000 ints. The program uses
 * MPI_INT, blocking calls and MPI_ERRORS_RETURN.
 *
 *     mpicc truncated.c -o truncated && mpiexec -n 2 ./truncated
 *
 * By MPI 5.0, section 3.2.4, the receive must return an error of class MPI_ERR_TRUNCATE, and must
 * write nothing but its own 3000 ints. The program prints the class of the error and the number of
 * ints that were written after these 3000. The exit status is 1 if the class is another one or if
 * such ints were written. See packaging/openmpi/README.md, "Truncation". */
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
