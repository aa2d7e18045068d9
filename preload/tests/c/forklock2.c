/* Forks processes under a lock of the program, which also guards the program's MPI calls.
 *
 * One thread exchanges messages of a derived type with itself. It holds a mutex in each exchange,
 * as MPI_THREAD_SERIALIZED allows. The main thread forks children. Every fourth child makes a type,
 * packs with it and frees it, and the others only call _exit. Handlers of pthread_atfork, which are
 * registered before MPI_Init, hold the mutex during each fork, as the manual page of pthread_atfork
 * recommends.
 *
 * Usage: forklock2 FORKS */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 16000, STRIDE = 4, SECONDS = 30 };

static pthread_mutex_t mpi_calls = PTHREAD_MUTEX_INITIALIZER;
static atomic_int finished;
static float sent[BLOCKS * STRIDE], received[BLOCKS * STRIDE];

static void lock(void) { pthread_mutex_lock(&mpi_calls); }
static void unlock(void) { pthread_mutex_unlock(&mpi_calls); }

static void *exchange(void *wrong)
{
    MPI_Datatype column;
    lock();
    MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_FLOAT, &column);
    MPI_Type_commit(&column);
    unlock();
    for (int round = 1; !finished; round++) {
        MPI_Request requests[2];
        sent[(BLOCKS - 1) * STRIDE] = round;
        lock();
        MPI_Irecv(received, 1, column, 0, 1, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(sent, 1, column, 0, 1, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        unlock();
        /* Pause after every fourth exchange. The mutex is not fair, and without a pause the thread
         * that forks could wait for it for seconds. */
        if (round % 4 == 0)
            usleep(200);
        *(int *)wrong += received[(BLOCKS - 1) * STRIDE] != round;
    }
    lock();
    MPI_Type_free(&column);
    unlock();
    return NULL;
}

/* Makes a type, packs with it and frees it. Returns the exit status of a child process: 0 if
 * everything is right. */
static int pack(void)
{
    enum { COLUMNS = 100 };
    MPI_Datatype column;
    float packed[COLUMNS], values[COLUMNS * STRIDE];
    int position = 0, wrong = 0;
    for (int i = 0; i < COLUMNS * STRIDE; i++)
        values[i] = i;
    MPI_Type_vector(COLUMNS, 1, STRIDE, MPI_FLOAT, &column);
    MPI_Type_commit(&column);
    MPI_Pack(values, 1, column, packed, sizeof packed, &position, MPI_COMM_SELF);
    MPI_Type_free(&column);
    for (int i = 0; i < COLUMNS; i++)
        wrong |= packed[i] != i * STRIDE;
    return wrong || position != sizeof packed;
}

int main(int argc, char **argv)
{
    int forks = atoi(argv[1]), provided, wrong = 0, failed = 0;
    pthread_t thread;
    pthread_atfork(lock, unlock, unlock);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    pthread_create(&thread, NULL, exchange, &wrong);
    for (int i = 0; i < forks; i++) {
        int status = -1;
        alarm(SECONDS); /* If the fork deadlocks, SIGALRM ends the program. */
        pid_t child = fork();
        if (child == 0)
            _exit(i % 4 == 0 ? pack() : 0);
        failed += child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    finished = 1;
    pthread_join(thread, NULL);
    printf("%d forks, %d failed, %d exchanges wrong\n", forks, failed, wrong);
    MPI_Finalize();
    return 0;
}
