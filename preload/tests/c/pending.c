/* Measures by how much the resident memory of a rank grows while messages of structures are
 * pending.
 *
 * Usage: pending N KB. In turn, each rank starts N messages of KB KiB. The messages of rank 0 wait
 * until rank 1 has started its receives. In the turn of rank 1, sends and receives are started at
 * the same time. Every byte that was received is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "resident.h"

/* An element of the messages, {int, double, float[3]}: 24 of its 32 bytes are part of the type. */
typedef struct {
  int a, gap;
  double b;
  float c[3], end;
} Item;

static MPI_Datatype items(void) {
  int lengths[3] = {1, 1, 3};
  MPI_Aint places[3] = {0, 8, 16};
  MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, s, t;
  MPI_Type_create_struct(3, lengths, places, types, &s);
  MPI_Type_create_resized(s, 0, sizeof(Item), &t);
  MPI_Type_commit(&t);
  MPI_Type_free(&s);
  return t;
}

int main(int argc, char **argv) {
  int rank, n, count, i, k, wrong = 0;
  long before, max_growth = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  n = atoi(argv[1]), count = atoi(argv[2]) * 1024 / 24;
  MPI_Datatype t = items();
  Item *out = calloc(count, sizeof(Item)), *in = calloc((size_t)n * count, sizeof(Item));
  MPI_Request *requests = malloc(n * sizeof *requests);
  memset(in, 1, (size_t)n * count * sizeof(Item));
  for (k = 0; k < count; k++) out[k].a = k, out[k].b = 2 * k, out[k].c[0] = out[k].c[1] = out[k].c[2] = k;
  /* Use the type before the measurement, so that the MPI library has already allocated everything
   * that it allocates only at the first uses. */
  for (i = 0; i < 20; i++) MPI_Sendrecv(out, count, t, 1 - rank, 0, in, count, t, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  memset(in, 1, (size_t)n * count * sizeof(Item));
  before = resident();
  for (k = 0; k < 2; k++) {
    int sends = k == rank;
    for (i = 0; i < n; i++)
      if (sends) MPI_Isend(out, count, t, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
      else if (k == 1) MPI_Irecv(in + (size_t)i * count, count, t, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
    if (resident() - before > max_growth) max_growth = resident() - before;
    /* In the first turn, no rank has started a receive before this barrier. In the second turn, all
     * sends and receives have been started before it. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (!sends && k == 0)
      for (i = 0; i < n; i++) MPI_Irecv(in + (size_t)i * count, count, t, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
    if (resident() - before > max_growth) max_growth = resident() - before;
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    if (resident() - before > max_growth) max_growth = resident() - before;
  }
  for (i = 0; i < n * count; i++) {
    Item *o = &out[i % count], *r = &in[i];
    wrong += r->a != o->a || r->b != o->b || memcmp(r->c, o->c, 12) || r->gap != 0x01010101;
  }
  printf("rank %d: %ld KB more, wrong %d\n", rank, max_growth, wrong);
  MPI_Finalize();
  return 0;
}
