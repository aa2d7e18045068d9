/* Measures the cost of MPI_Type_commit when the preload library decodes the committed type. The
 * script benches/decoding.py runs this program.
 *
 *     decoding KIND N ROUNDS COLD
 *
 * In each round a type of KIND is made, committed and freed: a list or vector of N blocks of
 * doubles, a subarray of N rows, or a structure of 3 members. Lists have new displacements in each
 * round; the other kinds alternate between four variants. If COLD is 1, 64 MiB are written before
 * each commit. Prints two medians in nanoseconds: of MPI_Type_commit, and of MPI_Type_get_envelope
 * together with MPI_Type_get_contents, which are called in the MPI library itself after the
 * commit. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGE = 64 << 20 };

static int n, *places, *lengths;
static MPI_Aint *addresses;
static MPI_Datatype *types;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static MPI_Datatype made(const char *kind, int round) {
  MPI_Datatype t;
  if (!strcmp(kind, "indexed"))
    MPI_Type_indexed(n, lengths, places, MPI_DOUBLE, &t);
  else if (!strcmp(kind, "hindexed"))
    MPI_Type_create_hindexed(n, lengths, addresses, MPI_DOUBLE, &t);
  else if (!strcmp(kind, "indexed_block"))
    MPI_Type_create_indexed_block(n, 1, places, MPI_DOUBLE, &t);
  else if (!strcmp(kind, "hindexed_block"))
    MPI_Type_create_hindexed_block(n, 1, addresses, MPI_DOUBLE, &t);
  else if (!strcmp(kind, "vector"))
    MPI_Type_vector(n, 1, 2 + round % 4, MPI_DOUBLE, &t);
  else if (!strcmp(kind, "subarray")) {
    int sizes[2] = {n, 8}, some[2] = {n, 2}, first[2] = {0, round % 4};
    MPI_Type_create_subarray(2, sizes, some, first, MPI_ORDER_C, MPI_DOUBLE, &t);
  } else if (!strcmp(kind, "struct")) {
    int blocks[3] = {1, 2 + round % 4, 1};
    MPI_Aint at[3] = {0, 8, 72};
    MPI_Datatype members[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
    MPI_Type_create_struct(3, blocks, at, members, &t);
  } else
    exit(3);
  return t;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc != 5) return 3;
  const char *kind = argv[1];
  n = atoi(argv[2]);
  int rounds = atoi(argv[3]), cold = atoi(argv[4]);
  places = malloc(n * sizeof *places);
  lengths = malloc(n * sizeof *lengths);
  addresses = malloc(n * sizeof *addresses);
  int *integers = malloc((2 * n + 20) * sizeof *integers);
  MPI_Aint *contents = malloc((n + 20) * sizeof *contents);
  types = malloc(20 * sizeof *types);
  double *times[2];
  for (int k = 0; k < 2; k++) times[k] = malloc(rounds * sizeof(double));
  char *large = malloc(LARGE);
  unsigned seed = 1;
  for (int round = 0; round < rounds; round++) {
    /* In each round, draw new lists of blocks, make a type, and measure its commit. Then measure
     * the two calls by which the preload library decodes a type. */
    for (int i = 0, at = 0; i < n; i++) {
      seed = seed * 1103515245u + 12345;
      places[i] = at;
      addresses[i] = 8L * at;
      lengths[i] = 1 + (seed >> 16) % 3;
      at += lengths[i] + 1 + (seed >> 20) % 3;
    }
    MPI_Datatype t = made(kind, round);
    if (cold) memset(large, round, LARGE);
    double start = now();
    MPI_Type_commit(&t);
    times[0][round] = now() - start;
    int numbers[4];
    start = now();
    PMPI_Type_get_envelope(t, numbers, numbers + 1, numbers + 2, numbers + 3);
    PMPI_Type_get_contents(t, numbers[0], numbers[1], numbers[2], integers, contents, types);
    times[1][round] = now() - start;
    MPI_Type_free(&t);
  }
  for (int k = 0; k < 2; k++) {
    qsort(times[k], rounds, sizeof(double), by_value);
    printf("%.0f ", times[k][rounds / 2]);
  }
  printf("\n");
  MPI_Finalize();
  return 0;
}
