/* Threads exchange messages under MPI_THREAD_MULTIPLE, each thread with its own types and tags,
 * while handles of requests and types are made and freed.
 *
 * Usage: traffic ROUNDS */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, WINDOW = 6, ELEMENTS = 4096 };
static int wrong, rounds, rank, peer;
static MPI_Comm comm;

static void check(const int *in, int n, int b, int s, int seed) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < s; j++) {
      int at = i * s + j, mapped = j < b;
      if (i == n - 1 && !mapped) break;
      if (in[at] != (mapped ? seed + at : -1)) { __sync_fetch_and_add(&wrong, 1); return; }
    }
}

static void *thread(void *arg) {
  int me = (int)(long)arg;
  unsigned dice = me * 7919 + 1;
  static int out[THREADS][WINDOW][ELEMENTS], in[THREADS][WINDOW][ELEMENTS];
  for (int r = 0; r < rounds; r++) {
    /* Choose the type and the way to complete its messages. The random numbers depend only on the
     * thread, so both ranks choose the same. */
    int n = 2 + rand_r(&dice) % 400, b = 1 + rand_r(&dice) % 4, s = b + 1 + rand_r(&dice) % 5, way = rand_r(&dice) % 7;
    MPI_Datatype t;
    MPI_Type_vector(n, b, s, MPI_INT, &t);
    MPI_Type_commit(&t);
    for (int w = 0; w < WINDOW; w++)
      for (int i = 0; i < ELEMENTS; i++) { out[me][w][i] = 1000 * r + w + i; in[me][w][i] = -1; }
    MPI_Request q[2 * WINDOW];
    int flag, index, completed = 0, indices[2 * WINDOW];
    if (way < 5) {
      for (int w = 0; w < WINDOW; w++) MPI_Irecv(in[me][w], 1, t, peer, 100 * me + w, comm, &q[w]);
      for (int w = 0; w < WINDOW; w++) MPI_Isend(out[me][w], 1, t, peer, 100 * me + w, comm, &q[WINDOW + w]);
      if (r % 2) MPI_Type_free(&t);
      if (way == 0) MPI_Waitall(2 * WINDOW, q, MPI_STATUSES_IGNORE);
      else if (way == 1) for (int k = 0; k < 2 * WINDOW; k++) do MPI_Test(&q[k], &flag, MPI_STATUS_IGNORE); while (!flag);
      else if (way == 2) for (int k = 0; k < 2 * WINDOW; k++) MPI_Waitany(2 * WINDOW, q, &index, MPI_STATUS_IGNORE);
      else if (way == 3) for (int done = 0; done < 2 * WINDOW; done += completed) MPI_Waitsome(2 * WINDOW, q, &completed, indices, MPI_STATUSES_IGNORE);
      else do MPI_Testall(2 * WINDOW, q, &flag, MPI_STATUSES_IGNORE); while (!flag);
      if (r % 2 == 0) MPI_Type_free(&t);
    } else if (way == 5) {
      for (int w = 0; w < WINDOW; w++)
        MPI_Sendrecv(out[me][w], 1, t, peer, 100 * me + w, in[me][w], 1, t, peer, 100 * me + w, comm, MPI_STATUS_IGNORE);
      MPI_Type_free(&t);
    } else {
      for (int w = 0; w < WINDOW; w++) {
        MPI_Recv_init(in[me][w], 1, t, peer, 100 * me + w, comm, &q[w]);
        MPI_Send_init(out[me][w], 1, t, peer, 100 * me + w, comm, &q[WINDOW + w]);
      }
      MPI_Type_free(&t);
      MPI_Startall(2 * WINDOW, q);
      MPI_Waitall(2 * WINDOW, q, MPI_STATUSES_IGNORE);
      for (int k = 0; k < 2 * WINDOW; k++) MPI_Request_free(&q[k]);
    }
    for (int w = 0; w < WINDOW; w++) check(in[me][w], n, b, s, 1000 * r + w);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int provided, all;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) return 2;
  rounds = atoi(argv[1]);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = rank ^ 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  pthread_t id[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&id[i], NULL, thread, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(id[i], NULL);
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  if (rank == 0) printf("wrong %d\n", all);
  return all != 0;
}
