/* Measures messages of types that are made for one step each. The script benches/ablation.py uses
 * the times.
 *
 *     steps KIND BLOCKS USES STEPS
 *
 * In each step both ranks make and commit a type of KIND, send USES messages of it in either
 * direction, and free it. A type of the kind `list` has BLOCKS blocks of 4 bytes, whose
 * displacements differ from step to step. The type of the kind `vector` is the same in each step. A
 * type of the kind `subarray` is one column of a matrix, at another place in each step. After each
 * step, the same bytes are packed by hand and sent as often. Prints two medians over the steps in
 * microseconds: of the messages of types, and of those that are packed by hand. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 8, PLANES = 16 };

static int n, *places, *user, *packed;
static const char *kind;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Computes the places of the blocks of a step in ascending order. They depend only on the step, so
 * both ranks compute the same places. */
static void draw(uint64_t step) {
  uint64_t word = step * 0x9e3779b97f4a7c15u + 1;
  int at = 0;
  for (int i = 0; i < n; i++) {
    if (!strcmp(kind, "list")) {
      word = word * 6364136223846793005u + 1442695040888963407u;
      at += 2 + (int)(word >> 61);
      places[i] = at;
    } else if (!strcmp(kind, "vector")) {
      places[i] = i * GAP;
    } else {
      places[i] = i * PLANES + (int)(step % PLANES);
    }
  }
}

static MPI_Datatype made(uint64_t step) {
  MPI_Datatype t;
  if (!strcmp(kind, "list")) {
    MPI_Type_create_indexed_block(n, 1, places, MPI_INT, &t);
  } else if (!strcmp(kind, "vector")) {
    MPI_Type_vector(n, 1, GAP, MPI_INT, &t);
  } else {
    int sizes[2] = {n, PLANES}, part[2] = {n, 1}, start[2] = {0, (int)(step % PLANES)};
    MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_INT, &t);
  }
  MPI_Type_commit(&t);
  return t;
}

static void pack(void) { for (int i = 0; i < n; i++) packed[i] = user[places[i]]; }
static void unpack(void) { for (int i = 0; i < n; i++) user[places[i]] = packed[i]; }

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, uses = atoi(argv[3]), steps = atoi(argv[4]);
  kind = argv[1];
  n = atoi(argv[2]);
  places = malloc(n * sizeof *places);
  packed = malloc(n * sizeof *packed);
  user = calloc((size_t)n * 16 + 64, sizeof *user);
  double *derived = malloc(steps * sizeof *derived), *hand = malloc(steps * sizeof *hand);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; step < steps; step++) {
    draw(step);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    MPI_Datatype t = made(step);
    for (int use = 0; use < uses; use++) {
      if (rank == 0) MPI_Send(user, 1, t, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(user, 1, t, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(user, 1, t, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Type_free(&t);
    derived[step] = (MPI_Wtime() - start) * 1e6;
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int use = 0; use < uses; use++) {
      if (rank == 0) { pack(); MPI_Send(packed, n, MPI_INT, 1, 0, MPI_COMM_WORLD); }
      MPI_Recv(packed, n, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      unpack();
      if (rank == 1) { pack(); MPI_Send(packed, n, MPI_INT, 0, 0, MPI_COMM_WORLD); }
    }
    hand[step] = (MPI_Wtime() - start) * 1e6;
  }
  qsort(derived, steps, sizeof *derived, by_value);
  qsort(hand, steps, sizeof *hand, by_value);
  if (rank == 0) printf("%.3f %.3f\n", derived[steps / 2], hand[steps / 2]);
  MPI_Finalize();
  return 0;
}
