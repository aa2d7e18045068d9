/* Redistributes arrays as libraries for parallel Fourier transforms do: an array that is
 * distributed along one axis becomes one that is distributed along another axis, and is then
 * brought back. MPI_Alltoallw moves subarrays, whose types are made for each array, used a few
 * times and freed. The parts that are moved are long and short, contiguous and not.
 *
 * Usage: redistributions CASES SEED seen | unseen
 *
 * With `unseen`, types are committed by the profiling name, as Fortran programs do, so that the
 * preload library does not see the commit. All ranks choose the same arrays. In each case each rank
 * compares its part of the array at the end with the same part at the beginning. Rank 0 prints how
 * often they differ, summed over all ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_AXES = 4, MAX_RANKS = 16, RUNS = 3 };

static unsigned state;
static int below(int n) {
  state = state * 1664525u + 1013904223u;
  return (int)((state >> 8) % (unsigned)n);
}

static int rank, ranks, is_seen;

/* Returns the length of the part that the rank `of` has of an axis with `length` elements, and sets
 * `start` to the beginning of the part. */
static int part(int length, int of, int *start) {
  int each = length / ranks, more = length % ranks;
  *start = of * each + (of < more ? of : more);
  return each + (of < more);
}

/* Makes and commits for each rank the type of the rank's part along `axis` of an array. */
static void make_parts(int axes, const int *sizes, int axis, MPI_Datatype element, MPI_Datatype *types) {
  for (int r = 0; r < ranks; r++) {
    int lengths[MAX_AXES], starts[MAX_AXES] = {0};
    memcpy(lengths, sizes, sizeof lengths);
    lengths[axis] = part(sizes[axis], r, &starts[axis]);
    MPI_Type_create_subarray(axes, sizes, lengths, starts, MPI_ORDER_C, element, &types[r]);
    if (is_seen) MPI_Type_commit(&types[r]);
    else PMPI_Type_commit(&types[r]);
  }
}

static size_t bytes_of(int axes, const int *sizes, int element) {
  size_t bytes = (size_t)element;
  for (int i = 0; i < axes; i++) bytes *= (size_t)sizes[i];
  return bytes;
}

/* Redistributes one array there and back a few times. Returns whether this rank's part of the array
 * is the same after that. */
static int is_kept(int number) {
  static MPI_Datatype here[MAX_RANKS], there[MAX_RANKS];
  int axes = 2 + below(MAX_AXES - 1), sizes[MAX_AXES], from[MAX_AXES], to[MAX_AXES], one[MAX_RANKS], zero[MAX_RANKS] = {0}, start, bytes;
  int a = below(axes), b = (a + 1 + below(axes - 1)) % axes;
  for (int i = 0; i < axes; i++) sizes[i] = 12 + below(2);
  MPI_Datatype element = below(2) ? MPI_FLOAT : below(2) ? MPI_DOUBLE : MPI_C_FLOAT_COMPLEX;
  MPI_Type_size(element, &bytes);
  int runs = 1 + below(RUNS);
  for (int r = 0; r < ranks; r++) one[r] = 1;
  /* The array is first distributed along the axis `b` and complete along `a` (sizes `from`), and
   * then the other way round (sizes `to`). */
  memcpy(from, sizes, sizeof from);
  memcpy(to, sizes, sizeof to);
  from[b] = part(sizes[b], rank, &start);
  to[a] = part(sizes[a], rank, &start);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  make_parts(axes, from, a, element, here);
  make_parts(axes, to, b, element, there);
  size_t length = bytes_of(axes, from, bytes);
  char *before = malloc(length), *between = malloc(bytes_of(axes, to, bytes)), *after = calloc(1, length);
  for (size_t i = 0; i < length; i++) before[i] = (char)(i * 7 + (size_t)(rank + number));
  for (int run = 0; run < runs; run++) {
    MPI_Alltoallw(before, one, zero, here, between, one, zero, there, comm);
    MPI_Alltoallw(between, one, zero, there, after, one, zero, here, comm);
  }
  int kept = !memcmp(before, after, length);
  for (int r = 0; r < ranks; r++) {
    MPI_Type_free(&here[r]);
    MPI_Type_free(&there[r]);
  }
  free(before);
  free(between);
  free(after);
  MPI_Comm_free(&comm);
  return kept;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 4 || ranks > MAX_RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
  int cases = atoi(argv[1]), wrong = 0, sum = 0;
  state = (unsigned)atoi(argv[2]);
  is_seen = !strcmp(argv[3], "seen");
  for (int i = 0; i < cases; i++) wrong += !is_kept(i);
  MPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\n", sum);
  MPI_Finalize();
  return 0;
}
