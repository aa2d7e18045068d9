/* One thread completes many receives of a derived type in one call. Three other threads make
 * requests of a named type and complete them. The MPI library gives these requests the handles of
 * the first thread's requests before the first thread's call has returned.
 *
 * Usage: recycled ROUNDS */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 100, BLOCKS = 40, STRIDE = 3 };
static int rounds, wrong;
static volatile int is_over;

/* In each round, receives MESSAGES messages from this process, and counts those that are not in
 * their buffer after the call that completes the receives. */
static void *receives(void *unused) {
  static int in[MESSAGES][BLOCKS * STRIDE], out[BLOCKS];
  MPI_Datatype t;
  MPI_Request all[MESSAGES];
  MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_INT, &t);
  MPI_Type_commit(&t);
  for (int r = 0; r < rounds; r++) {
    memset(in, -1, sizeof in);
    for (int k = 0; k < BLOCKS; k++) out[k] = 1000 * r + k;
    for (int i = 0; i < MESSAGES; i++) MPI_Irecv(in[i], 1, t, 0, i, MPI_COMM_SELF, &all[i]);
    for (int i = 0; i < MESSAGES; i++) MPI_Send(out, BLOCKS, MPI_INT, 0, i, MPI_COMM_SELF);
    if (r % 3 == 0) {
      MPI_Waitall(MESSAGES, all, MPI_STATUSES_IGNORE);
    } else if (r % 3 == 1) {
      int done = 0;
      while (!done) MPI_Testall(MESSAGES, all, &done, MPI_STATUSES_IGNORE);
    } else {
      int indices[MESSAGES];
      for (int done = 0, n; done < MESSAGES; done += n) MPI_Waitsome(MESSAGES, all, &n, indices, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < MESSAGES; i++)
      for (int k = 0; k < BLOCKS; k++)
        if (in[i][k * STRIDE] != 1000 * r + k) {
          wrong++;
          break;
        }
  }
  MPI_Type_free(&t);
  is_over = 1;
  return NULL;
}

static void *makes_requests(void *number) {
  int in[4], out[4] = {0}, tag = 1000 + (int)(long)number;
  MPI_Request both[2];
  while (!is_over) {
    MPI_Irecv(in, 4, MPI_INT, 0, tag, MPI_COMM_SELF, &both[0]);
    MPI_Isend(out, 4, MPI_INT, 0, tag, MPI_COMM_SELF, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int provided;
  pthread_t id[4];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) return 2;
  rounds = atoi(argv[1]);
  pthread_create(&id[0], NULL, receives, NULL);
  for (long i = 1; i < 4; i++) pthread_create(&id[i], NULL, makes_requests, (void *)i);
  for (int i = 0; i < 4; i++) pthread_join(id[i], NULL);
  MPI_Finalize();
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
