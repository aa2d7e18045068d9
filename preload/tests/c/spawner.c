/* A job that starts two more processes of the same program by MPI_Comm_spawn. Every process
 * exchanges messages of a derived type with itself. Processes that start others do so once before
 * and once after the start. With an argument, only rank 0 starts the new processes, and the other
 * ranks are connected to the new processes by MPI_Intercomm_create. */
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

/* Makes and frees an intercommunicator between the two halves of MPI_COMM_WORLD. It does not
 * connect processes of different jobs. */
static void halve_world(void)
{
    MPI_Comm half, both;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank, 3, &both);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

/* Makes an intercommunicator between the world of the first job and that of the spawned processes.
 * Before the call, only rank 0 of the first world is connected to the second world. */
static void join_worlds(MPI_Comm *between, int is_first)
{
    MPI_Comm peer = MPI_COMM_NULL, all;
    if (*between != MPI_COMM_NULL)
        MPI_Intercomm_merge(*between, !is_first, &peer);
    MPI_Intercomm_create(MPI_COMM_WORLD, 0, peer, is_first, 5, &all);
    if (peer != MPI_COMM_NULL) {
        MPI_Comm_free(&peer);
        MPI_Comm_disconnect(between);
    }
    *between = all;
}

int main(int argc, char **argv)
{
    MPI_Comm parent, children = MPI_COMM_NULL;
    int wrong, all = 0, rank, by_leader = argc > 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (by_leader)
        halve_world();
    wrong = wrong_exchanges();
    if (parent == MPI_COMM_NULL) {
        MPI_Comm from = by_leader ? MPI_COMM_SELF : MPI_COMM_WORLD;
        if (!by_leader || rank == 0)
            MPI_Comm_spawn(argv[0], argv + 1, SPAWNED, MPI_INFO_NULL, 0, from, &children, MPI_ERRCODES_IGNORE);
        if (by_leader)
            join_worlds(&children, 1);
        wrong += wrong_exchanges();
        MPI_Barrier(children);
        MPI_Comm_disconnect(&children);
        MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0)
            printf("%d exchanges wrong\n", all);
    } else {
        if (by_leader)
            join_worlds(&parent, 0);
        MPI_Barrier(parent);
        MPI_Comm_disconnect(&parent);
        if (wrong > 0)
            printf("%d exchanges of a spawned process wrong\n", wrong);
    }
    MPI_Finalize();
    return 0;
}
