/* A thread waits in MPI_Recv for a message that never comes, and the main thread cancels it there.
 *
 * After that the program ends without MPI_Finalize, since the MPI library may hold locks that the
 * cancelled thread had taken. The thread can be cancelled at any time
 * (PTHREAD_CANCEL_ASYNCHRONOUS), because MPI_Recv need not be a cancellation point. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { BLOCKS = 1000, SECONDS = 20 };

static void *wait_for_message(void *unused)
{
    static int received[2 * BLOCKS];
    MPI_Datatype column;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    MPI_Type_vector(BLOCKS, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Recv(received, 1, column, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    return unused;
}

int main(int argc, char **argv)
{
    int provided;
    void *result = NULL;
    pthread_t thread;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    alarm(SECONDS); /* If the thread is not cancelled, SIGALRM ends the program. */
    pthread_create(&thread, NULL, wait_for_message, NULL);
    usleep(200000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("the thread was %s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
    fflush(stdout);
    _exit(0);
}
