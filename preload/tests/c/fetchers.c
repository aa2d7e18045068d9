/* Several threads put data to a window and get it back, while another thread completes all
 * operations on the window again and again. Prints the number of wrong bytes and wrong gets.
 *
 * Arguments: threads, rounds. Each thread has its own part of the next rank's window, and its own
 * origin buffers, types and requests. A get is completed by its request, by a flush of its own
 * thread, or by a flush of the other thread. The buffer of a get is overwritten as soon as the
 * program may write to it. */
#include "layouts.h"

#include <pthread.h>
#include <stdio.h>

enum { COUNT = 60, PART = 1 << 13, MAX_THREADS = 64 };
static MPI_Win win;
static int rank, ranks, rounds, threads;
static volatile int flushed, stop;
static long wrong[MAX_THREADS];

static void *work(void *argument)
{
    int me = (int)(long)argument, to = (rank + 1) % ranks;
    MPI_Aint at = (MPI_Aint)me * PART;
    char *mine = malloc(PART), *want = malloc(PART);
    for (int round = 0; round < rounds; round++) {
        int kind = round % 3 - 1, variant = (round + me) % 3;
        struct layout l = layout(kind, variant);
        size_t bytes = (size_t)(COUNT * l.extent);
        memset(mine, 0xa5, bytes);
        memset(want, 0xa5, bytes);
        put(&l, mine, 0, COUNT, round, rank, me);
        put(&l, want, 0, COUNT, round, rank, me);
        MPI_Put(mine, COUNT, l.type, to, at, COUNT, l.type, win);
        MPI_Win_flush(to, win);
        memset(mine, 0xa5, bytes);
        MPI_Request request;
        MPI_Rget(mine, COUNT, l.type, to, at, COUNT, l.type, win, &request);
        MPI_Type_free(&l.type);
        int how = (round / 3 + me) % 4, flag = 0, before;
        if (how == 0) complete(&request, round % 4);
        if (how == 1) MPI_Win_flush_local(to, win);
        if (how == 2)
            while (!flag) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        if (how == 3) {
            /* Wait until the thread that flushes has ended two more flushes. The second of them has
             * begun after the get, so it has completed the get. */
            before = flushed;
            while (flushed < before + 2) sched_yield();
        }
        wrong[me] += memcmp(mine, want, bytes) != 0;
        memset(mine, 0x77, bytes);
        if (how) complete(&request, round % 4);
        for (size_t i = 0; i < bytes; i++) wrong[me] += mine[i] != 0x77;
    }
    free(mine);
    free(want);
    return NULL;
}

static void *flush(void *argument)
{
    (void)argument;
    while (!stop) {
        MPI_Win_flush_all(win);
        flushed++;
        sched_yield();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 3);
    threads = atoi(argv[1]), rounds = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* The window is in memory that the program has allocated, so that MPI libraries carry out gets
     * from it by messages. */
    char *memory = malloc((size_t)threads * PART);
    MPI_Win_create(memory, (MPI_Aint)threads * PART, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    pthread_t ids[MAX_THREADS], flusher;
    for (long i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, (void *)i);
    pthread_create(&flusher, NULL, flush, NULL);
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    stop = 1;
    pthread_join(flusher, NULL);
    MPI_Win_unlock_all(win);
    long all = 0;
    for (int i = 0; i < threads; i++) all += wrong[i];
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("wrong %ld\n", all);
    MPI_Win_free(&win);
    free(memory);
    MPI_Finalize();
    return 0;
}
