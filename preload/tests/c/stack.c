/* Makes MPI calls from a thread with a small stack, as in runtimes of user-level threads (16 KiB in
 * Argobots). The thread commits types, exchanges and packs data of these types, and frees the
 * types.
 *
 * Usage: stack KIB, where KIB is the size of the thread's stack */
#include <mpi.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { TYPES = 40, EXCHANGES = 30, EXTENT = 56 };

static float sent[400000], received[400000];
static char packed[200000];

static MPI_Datatype type_of_round(int round)
{
    int lengths[3] = {1, 2, 1};
    MPI_Aint places[3] = {0, 8, 24 + 8 * (round % 3)};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, members, element, blocks;
    MPI_Type_create_struct(3, lengths, places, types, &members);
    MPI_Type_create_resized(members, 0, EXTENT, &element);
    MPI_Type_vector(100 + round, 3, 5, element, &blocks);
    MPI_Type_commit(&blocks);
    MPI_Type_free(&members);
    MPI_Type_free(&element);
    return blocks;
}

static void *use_types(void *wrong)
{
    for (int round = 0; round < TYPES; round++) {
        int position = 0;
        MPI_Datatype blocks = type_of_round(round);
        for (int i = 0; i < EXCHANGES; i++) {
            MPI_Request requests[2];
            *(int *)sent = round * EXCHANGES + i;
            MPI_Irecv(received, 1, blocks, 0, 1, MPI_COMM_SELF, &requests[0]);
            MPI_Isend(sent, 1, blocks, 0, 1, MPI_COMM_SELF, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            *(int *)wrong += *(int *)received != round * EXCHANGES + i;
        }
        MPI_Pack(sent, 1, blocks, packed, sizeof packed, &position, MPI_COMM_SELF);
        MPI_Type_free(&blocks);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, wrong = 0;
    pthread_attr_t attributes;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, (size_t)atoi(argv[1]) * 1024) != 0) {
        printf("no stack of %s KiB\n", argv[1]);
        return 1;
    }
    pthread_create(&thread, &attributes, use_types, &wrong);
    pthread_join(thread, NULL);
    printf("%d exchanges wrong\n", wrong);
    MPI_Finalize();
    return 0;
}
