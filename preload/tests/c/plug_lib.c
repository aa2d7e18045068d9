/* The plugin that plug.c loads. Its function `run` initializes MPI, exchanges messages of a derived
 * type with the process itself, finalizes MPI, and returns the number of wrong exchanges. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 300 };

int run(void)
{
    int initialized, finalized, wrong = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    printf("before MPI_Init: initialized %d, finalized %d\n", initialized, finalized);
    fflush(stdout);
    MPI_Init(NULL, NULL);
    MPI_Datatype column;
    MPI_Type_vector(3, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < ROUNDS; i++) {
        int sent[6] = {i, 2, i + 1, 4, i + 2, 6}, received[6] = {-1, -1, -1, -1, -1, -1};
        MPI_Sendrecv(sent, 1, column, 0, 1, received, 1, column, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        wrong += received[0] != i || received[1] != -1 || received[2] != i + 1 || received[3] != -1 || received[4] != i + 2;
    }
    MPI_Type_free(&column);
    MPI_Finalize();
    return wrong;
}
