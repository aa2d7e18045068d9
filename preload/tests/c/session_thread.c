/* A thread opens and closes MPI sessions while the main thread exchanges messages with itself on
 * MPI_COMM_SELF.
 *
 * The thread represents a library that uses the sessions of MPI 4.0 (section 11.3), in a process
 * whose program uses MPI_COMM_WORLD.
 *
 * Usage: session_thread EXCHANGES */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ELEMENTS = 400, SECONDS = 50 };

struct element {
    int number;
    double pair[2];
    char letter;
};

static atomic_int finished;

static void *open_and_close(void *failed)
{
    while (!finished) {
        MPI_Session session;
        if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS) {
            *(int *)failed = 1;
            break;
        }
        MPI_Session_finalize(&session);
    }
    return NULL;
}

static MPI_Datatype type_of_element(void)
{
    int lengths[3] = {1, 2, 1};
    MPI_Aint places[3] = {offsetof(struct element, number), offsetof(struct element, pair), offsetof(struct element, letter)};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, members, element;
    MPI_Type_create_struct(3, lengths, places, types, &members);
    MPI_Type_create_resized(members, 0, sizeof(struct element), &element);
    MPI_Type_commit(&element);
    MPI_Type_free(&members);
    return element;
}

int main(int argc, char **argv)
{
    static struct element sent[ELEMENTS], received[ELEMENTS];
    int exchanges = atoi(argv[1]), provided, failed = 0, wrong = 0;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    alarm(SECONDS); /* If the program hangs, this signal ends it. */
    MPI_Datatype element = type_of_element();
    for (int i = 0; i < ELEMENTS; i++)
        sent[i] = (struct element){.number = i, .pair = {i * 0.5, -i}, .letter = (char)i};
    pthread_create(&thread, NULL, open_and_close, &failed);
    for (int k = 0; k < exchanges; k++) {
        int count = 20 + k % 300;
        MPI_Request requests[2];
        memset(received, 0xff, sizeof received);
        MPI_Irecv(received, count, element, 0, 1, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(sent, count, element, 0, 1, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < count; i++)
            if (received[i].number != i || received[i].pair[0] != i * 0.5 || received[i].pair[1] != -i || received[i].letter != (char)i) {
                wrong++;
                break;
            }
    }
    finished = 1;
    pthread_join(thread, NULL);
    printf("%d exchanges, %d wrong, sessions %s\n", exchanges, wrong, failed ? "failed" : "opened");
    MPI_Type_free(&element);
    MPI_Finalize();
    return 0;
}
