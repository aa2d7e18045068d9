/* A job that starts two more processes of the same program by MPI_Comm_spawn. Every process
 * exchanges messages of a derived type with itself. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 100, SPAWNED = 2 };

static int wrong_exchanges(void)
{
    MPI_Datatype column;
    int wrong = 0;
    MPI_Type_vector(3, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < ROUNDS; i++) {
        int sent[6] = {i, 2, i + 1, 4, i + 2, 6}, received[6] = {-1, -1, -1, -1, -1, -1};
        MPI_Sendrecv(sent, 1, column, 0, 1, received, 1, column, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        wrong += received[0] != i || received[1] != -1 || received[2] != i + 1 || received[4] != i + 2;
    }
    MPI_Type_free(&column);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    int wrong, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    wrong = wrong_exchanges();
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, SPAWNED, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        MPI_Barrier(children);
        MPI_Comm_disconnect(&children);
        MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0)
            printf("%d exchanges wrong\n", all);
    } else {
        MPI_Barrier(parent);
        MPI_Comm_disconnect(&parent);
        if (wrong > 0)
            printf("%d exchanges of a spawned process wrong\n", wrong);
    }
    MPI_Finalize();
    return 0;
}
