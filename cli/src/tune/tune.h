/* Code that the programs which `ddtc tune` compiles and runs have in common: a datatype for each
 * layout class, packing by hand, and medians of the times of several rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 101, CLASSES = 6 };
static const char *const classes[CLASSES] = {"strided-short", "strided-long", "blocks-short",
                                             "blocks-long",   "table-short",  "table-long"};

/* The data of a message, in one of two forms.
 *
 * - If `parts` is 0, the data are `runs` runs of `block` bytes. If `places` is null, the runs begin
 *   `stride` bytes apart. Otherwise `places` has the offset of each run, in units of 8 bytes.
 * - If `parts` is 1 or 2, the data are structures with three parts each. If `parts` is 1, the parts
 *   are an int, a double and three floats; if it is 2, they are 100, 70 and 86 chars. */
struct layout {
  const char *name;
  MPI_Datatype type;
  int count, block, parts;
  long bytes, runs, stride, extent;
  int *places;
};

/* Makes a layout of the class `class`, which is an index of `classes`, with about `want` bytes of
 * data, and returns 1. Returns 0 if `want` is too small for this class. */
static int layout(struct layout *l, int class, long want) {
  MPI_Datatype s, t;
  memset(l, 0, sizeof *l);
  l->name = classes[class];
  l->count = 1;
  l->block = class % 2 ? 128 : 8;
  long n = class == 2 ? want / 24 + 1 : class == 3 ? want / 256 : want / l->block;
  if (n < (class >= 4 ? 20 : 2)) return 0;
  l->runs = n;
  if (class < 2) {
    l->stride = 2 * l->block;
    MPI_Type_vector((int)n, l->block / 8, l->block / 4, MPI_DOUBLE, &t);
  } else if (class == 2 || class == 3) {
    int lengths[2][3] = {{1, 1, 3}, {100, 70, 86}};
    MPI_Aint at[2][3] = {{0, 8, 16}, {0, 128, 256}};
    MPI_Datatype of[2][3] = {{MPI_INT, MPI_DOUBLE, MPI_FLOAT}, {MPI_CHAR, MPI_CHAR, MPI_CHAR}};
    MPI_Type_create_struct(3, lengths[class - 2], at[class - 2], of[class - 2], &s);
    MPI_Type_create_resized(s, 0, class == 2 ? 32 : 384, &t);
    MPI_Type_free(&s);
    l->count = (int)n;
    l->parts = class - 1;
  } else {
    unsigned seed = 1;
    l->places = malloc(n * sizeof *l->places);
    for (long i = 0, p = 0; i < n; i++) {
      l->places[i] = (int)p;
      seed = seed * 1103515245u + 12345;
      p += l->block / 8 + 1 + (seed >> 16) % 5;
    }
    MPI_Type_create_indexed_block((int)n, l->block / 8, l->places, MPI_DOUBLE, &t);
  }
  MPI_Type_commit(&t);
  int size;
  MPI_Aint lb, extent;
  MPI_Type_size(t, &size);
  MPI_Type_get_extent(t, &lb, &extent);
  l->type = t;
  l->bytes = (long)size * l->count;
  l->extent = (long)extent * l->count;
  return 1;
}

static void forget(struct layout *l) {
  MPI_Type_free(&l->type);
  free(l->places);
}

/* Packs the layout from `user` to `p` if `pack` is not 0. Otherwise unpacks it from `p` to `user`.
 * */
static void by_hand(const struct layout *l, char *user, char *p, int pack) {
#define MOVE(at, n) do { if (pack) memcpy(p, user + (at), n); else memcpy(user + (at), p, n); p += n; } while (0)
#define RUNS(n) for (long i = 0; i < l->runs; i++) MOVE(l->places ? 8L * l->places[i] : i * l->stride, n)
  if (l->parts == 1) for (long i = 0; i < l->runs; i++) { MOVE(32 * i, 4); MOVE(32 * i + 8, 8); MOVE(32 * i + 16, 12); }
  else if (l->parts == 2) for (long i = 0; i < l->runs; i++) { MOVE(384 * i, 100); MOVE(384 * i + 128, 70); MOVE(384 * i + 256, 86); }
  else if (l->block == 8) RUNS(8);
  else RUNS(128);
}

/* Ways to move the data of a layout. CONVERTED: they have a derived type, and the preload library
 * converts the call. BARE: they have the same type, and the unmodified MPI library does the work.
 * BY_HAND: they are packed by hand. */
enum { CONVERTED, BARE, BY_HAND, WAYS };

static int by_value(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return (d > 0) - (d < 0); }
static double median(double *v, int n) { qsort(v, n, sizeof *v, by_value); return v[n / 2]; }
static double deviation(double *v, int n, double m) {
  double d[MAX_ROUNDS];
  for (int i = 0; i < n; i++) d[i] = v[i] > m ? v[i] - m : m - v[i];
  return 100 * median(d, n) / m;
}

/* Median time of a call in microseconds for each way to move the data, and the largest median
 * absolute deviation of these times in percent. */
struct times {
  double of[WAYS], noise;
};

/* Measures each way to move the data of a layout, in interleaved rounds. `time` makes n calls in
 * one way, and returns the microseconds of one call. */
static struct times timed(const struct layout *l, double budget, int rounds, double (*time)(int way, const struct layout *l, long n)) {
  double v[WAYS][MAX_ROUNDS];
  long n[WAYS];
  struct times t = {{0}, 0};
  for (int way = 0; way < WAYS; way++) {
    time(way, l, 3);
    n[way] = 1 + (long)(budget * 1000 / (2 * time(way, l, 3)));
    PMPI_Bcast(&n[way], 1, MPI_LONG, 0, MPI_COMM_WORLD);
  }
  for (int r = 0; r < rounds; r++) for (int way = 0; way < WAYS; way++) v[way][r] = time(way, l, n[way]);
  for (int way = 0; way < WAYS; way++) {
    t.of[way] = median(v[way], rounds);
    double d = deviation(v[way], rounds, t.of[way]);
    t.noise = d > t.noise ? d : t.noise;
  }
  return t;
}

/* On rank 0, prints a line with `name`, the layout's class and bytes, and its times. */
static void row(const char *name, const struct layout *l, const struct times *t, int rank) {
  if (rank == 0) { printf("%s%s,%ld,%.2f,%.2f,%.2f,%.1f\n", name, l->name, l->bytes, t->of[0], t->of[1], t->of[2], t->noise); fflush(stdout); }
}

/* Measures a layout, and prints its line of times. */
static inline void measure(const char *name, const struct layout *l, double budget, int rounds, int rank,
                           double (*time)(int way, const struct layout *l, long n)) {
  struct times t = timed(l, budget, rounds, time);
  row(name, l, &t, rank);
}
