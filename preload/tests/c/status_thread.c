/* A second thread asks for the state of a persistent receive while the first one starts and
 * completes it (MPI 5.0, 3.7.6: the request may be inactive). */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
enum { M = 8192, N = 1 << 16, ROUNDS = 100 };
static double in[2 * M], out[2 * N];
static MPI_Request p[2], asked;
static volatile int end;
static void *ask(void *unused) {
  int flag;
  while (!end) MPI_Request_get_status(asked, &flag, MPI_STATUS_IGNORE);
  return unused;
}
int main(int argc, char **argv) {
  int rank, level, wrong = 0;
  pthread_t thread;
  MPI_Datatype small, big;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE) return puts("no threads"), MPI_Finalize(), 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_vector(M, 1, 2, MPI_DOUBLE, &small);
  MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &big);
  MPI_Type_commit(&small);
  MPI_Type_commit(&big);
  if (rank == 0) {
    MPI_Recv_init(in, 1, small, 1, 1, MPI_COMM_WORLD, &p[0]);
    MPI_Send_init(out, 1, big, 1, 2, MPI_COMM_WORLD, &p[1]);
    asked = p[0];
    pthread_create(&thread, NULL, ask, NULL);
    for (int k = 0; k < ROUNDS; k++) {
      for (int i = 0; i < 2 * M; i++) in[i] = -1;
      MPI_Startall(2, p);
      MPI_Waitall(2, p, MPI_STATUSES_IGNORE);
      int bad = 0;
      for (int i = 0; i < 2 * M; i++) bad |= in[i] != (i % 2 ? -1 : k + i);
      wrong += bad;
    }
    end = 1;
    pthread_join(thread, NULL);
    printf("rounds %d wrong %d\n", ROUNDS, wrong);
    MPI_Request_free(&p[0]);
    MPI_Request_free(&p[1]);
  } else {
    for (int k = 0; k < ROUNDS; k++) {
      for (int i = 0; i < 2 * M; i++) in[i] = k + i;
      MPI_Recv(out, 1, big, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(in, 1, small, 0, 1, MPI_COMM_WORLD);
    }
  }
  MPI_Type_free(&small);
  MPI_Type_free(&big);
  MPI_Finalize();
  return 0;
}
