/* Several threads commit, duplicate, pack, unpack and free types of their own, and use types that
 * all threads share, all at the same time. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 6, SHARED = 8 };
static MPI_Datatype shared[SHARED];
static int wrong, rounds;

static void check(MPI_Datatype t, int n, int b, int s, MPI_Comm comm) {
  int user[2048], packed[2048], back[2048];
  for (int i = 0; i < 2048; i++) { user[i] = i * 7 + n; back[i] = -1; }
  int at = 0, count = 2, extent = (n - 1) * s + b;
  if (MPI_Pack(user, count, t, packed, sizeof packed, &at, comm) || at != 4 * count * n * b) { __sync_fetch_and_add(&wrong, 1); return; }
  int k = 0;
  for (int c = 0; c < count; c++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < b; j++)
        if (packed[k++] != user[c * extent + i * s + j]) __sync_fetch_and_add(&wrong, 1);
  int end = at;
  at = 0;
  MPI_Unpack(packed, end, &at, back, count, t, comm);
  k = 0;
  for (int c = 0; c < count; c++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < b; j++)
        if (back[c * extent + i * s + j] != packed[k++]) __sync_fetch_and_add(&wrong, 1);
}
static void shape(int i, int *n, int *b, int *s) { *n = 2 + i % 17; *b = 1 + i % 3; *s = *b + 1 + i % 5; }

static void *thread(void *arg) {
  unsigned seed = (unsigned)(long)arg * 7919 + 1;
  MPI_Comm comm = MPI_COMM_SELF;
  for (int r = 0; r < rounds; r++) {
    int n, b, s, i = rand_r(&seed) % 1000;
    shape(i, &n, &b, &s);
    MPI_Datatype t, d;
    MPI_Type_vector(n, b, s, MPI_INT, &t);
    MPI_Type_commit(&t);
    check(t, n, b, s, comm);
    MPI_Type_dup(t, &d);
    MPI_Type_free(&t);
    check(d, n, b, s, comm);
    MPI_Type_free(&d);
    i = rand_r(&seed) % SHARED;
    shape(i * 3, &n, &b, &s);
    check(shared[i], n, b, s, comm);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) return 2;
  rounds = atoi(argv[1]);
  /* Make the shared types. They must be committed before the threads start, but nothing is packed
   * with them here, so that all threads use them for the first time at the same time. */
  for (int i = 0; i < SHARED; i++) {
    int n, b, s;
    shape(i * 3, &n, &b, &s);
    MPI_Type_vector(n, b, s, MPI_INT, &shared[i]);
    MPI_Type_commit(&shared[i]);
  }
  pthread_t id[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&id[i], NULL, thread, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(id[i], NULL);
  for (int i = 0; i < SHARED; i++) MPI_Type_free(&shared[i]);
  MPI_Finalize();
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
