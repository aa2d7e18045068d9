/* Ping-pong of two ranks, per layout class and payload: derived types by the preload library, by the bare host, and packed by hand
 * into a contiguous message. MPI_ names are the library's (run with DDTC_POLICY=all), PMPI_ names the bare host's.
 *
 * Prints "library VERSION", then "CLASS,BYTES,CONVERTED,BARE,HAND,NOISE": medians of interleaved rounds, microseconds one way, and
 * the largest median absolute deviation of the three in percent. Usage: pingpong [rounds [milliseconds per round]] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 101, SIZES = 9 };
static int rank, rounds = 15;
static char *user, *packed;
static long span;

/* What is packed: runs of `lengths` at `places` of an instance, as the class has them. */
struct layout { const char *name; MPI_Datatype type; int count; long bytes, runs; int block; long stride; const int *places; int parts; };

static void by_hand(const struct layout *l, int pack) {
  char *p = packed;
#define MOVE(at, n) do { if (pack) memcpy(p, user + (at), n); else memcpy(user + (at), p, n); p += n; } while (0)
#define RUNS(n) for (long i = 0; i < l->runs; i++) MOVE(l->places ? 8L * l->places[i] : i * l->stride, n)
  if (l->parts == 1) for (long i = 0; i < l->runs; i++) { MOVE(32 * i, 4); MOVE(32 * i + 8, 8); MOVE(32 * i + 16, 12); }
  else if (l->parts == 2) for (long i = 0; i < l->runs; i++) { MOVE(384 * i, 100); MOVE(384 * i + 128, 70); MOVE(384 * i + 256, 86); }
  else if (l->block == 8) RUNS(8);
  else RUNS(128);
}

static int by_value(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return (d > 0) - (d < 0); }
static double median(double *v, int n) { qsort(v, n, sizeof *v, by_value); return v[n / 2]; }
static double deviation(double *v, int n, double m) {
  double d[MOST];
  for (int i = 0; i < n; i++) d[i] = v[i] > m ? v[i] - m : m - v[i];
  return 100 * median(d, n) / m;
}

static double turns(int way, const struct layout *l, long n) {
  MPI_Comm c = MPI_COMM_WORLD;
  MPI_Status s;
  int peer = 1 - rank;
  PMPI_Barrier(c);
  double start = PMPI_Wtime();
  for (long k = 0; k < n; k++)
    for (int half = 0; half < 2; half++) {
      int sending = (rank + half) % 2 == 0;
      if (way == 0) { if (sending) MPI_Send(user, l->count, l->type, peer, 1, c); else MPI_Recv(user, l->count, l->type, peer, 1, c, &s); }
      else if (way == 1) { if (sending) PMPI_Send(user, l->count, l->type, peer, 1, c); else PMPI_Recv(user, l->count, l->type, peer, 1, c, &s); }
      else if (sending) { by_hand(l, 1); PMPI_Send(packed, (int)l->bytes, MPI_BYTE, peer, 1, c); }
      else { PMPI_Recv(packed, (int)l->bytes, MPI_BYTE, peer, 1, c, &s); by_hand(l, 0); }
    }
  return (PMPI_Wtime() - start) * 1e6 / (2.0 * n);
}

static void measure(struct layout *l, double budget) {
  double v[3][MOST], m[3], noise = 0;
  long n[3];
  for (int way = 0; way < 3; way++) {
    double one = turns(way, l, 3);
    one = turns(way, l, 3);
    n[way] = 1 + (long)(budget * 1000 / (2 * one));
    PMPI_Bcast(&n[way], 1, MPI_LONG, 0, MPI_COMM_WORLD);
  }
  for (int r = 0; r < rounds; r++) for (int way = 0; way < 3; way++) v[way][r] = turns(way, l, n[way]);
  for (int way = 0; way < 3; way++) {
    m[way] = median(v[way], rounds);
    double d = deviation(v[way], rounds, m[way]);
    noise = d > noise ? d : noise;
  }
  if (rank == 0) { printf("%s,%ld,%.2f,%.2f,%.2f,%.1f\n", l->name, l->bytes, m[0], m[1], m[2], noise); fflush(stdout); }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int ranks, length;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) { if (!rank) fprintf(stderr, "pingpong: needs 2 ranks, not %d\n", ranks); MPI_Finalize(); return 2; }
  if (argc > 1 && atoi(argv[1]) > 0 && atoi(argv[1]) < MOST) rounds = atoi(argv[1]);
  double budget = argc > 2 ? atof(argv[2]) : 2;
  static char version[16384];
  MPI_Get_library_version(version, &length);
  if (rank == 0) printf("library %.*s\n", (int)strcspn(version, "\n"), version);
  span = 40L << 20;
  user = malloc(span); packed = malloc(8 << 20);
  memset(user, 1, span); memset(packed, 1, 8 << 20);
  int *places = malloc(sizeof *places * (1 << 20));
  for (int k = 0; k < SIZES; k++) {
    long want = 64L << (2 * k);
    MPI_Datatype t, s;
    for (int c = 0; c < 6; c++) {
      struct layout l = {0};
      static const char *names[] = {"strided-short", "strided-long", "blocks-short", "blocks-long", "table-short", "table-long"};
      l.name = names[c]; l.count = 1; l.block = c % 2 ? 128 : 8;
      long n = want / l.block;
      if (c == 2) n = want / 24 + 1;
      if (c == 3) n = want / 256;
      if (n < (c >= 4 ? 20 : 2)) continue;
      l.runs = n;
      if (c < 2) {
        l.stride = 2 * l.block;
        MPI_Type_vector((int)n, l.block / 8, l.block / 4, MPI_DOUBLE, &t);
      } else if (c == 2) {
        int len[3] = {1, 1, 3};
        MPI_Aint at[3] = {0, 8, 16};
        MPI_Datatype of[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
        MPI_Type_create_struct(3, len, at, of, &s);
        MPI_Type_create_resized(s, 0, 32, &t);
        MPI_Type_free(&s);
        l.count = (int)n; l.parts = 1;
      } else if (c == 3) {
        int len[3] = {100, 70, 86};
        MPI_Aint at[3] = {0, 128, 256};
        MPI_Datatype of[3] = {MPI_CHAR, MPI_CHAR, MPI_CHAR};
        MPI_Type_create_struct(3, len, at, of, &s);
        MPI_Type_create_resized(s, 0, 384, &t);
        MPI_Type_free(&s);
        l.count = (int)n; l.parts = 2;
      } else {
        unsigned seed = 1;
        for (long i = 0, p = 0; i < n; i++) { places[i] = (int)p; seed = seed * 1103515245u + 12345; p += l.block / 8 + 1 + (seed >> 16) % 5; }
        l.places = places;
        MPI_Type_create_indexed_block((int)n, l.block / 8, places, MPI_DOUBLE, &t);
      }
      MPI_Type_commit(&t);
      int size;
      MPI_Type_size(t, &size);
      l.type = t; l.bytes = (long)size * l.count;
      measure(&l, budget);
      MPI_Type_free(&t);
    }
  }
  MPI_Finalize();
  return 0;
}
