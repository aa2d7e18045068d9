/* Measures costs and gains of the preload library in one process: calls by MPI_ names go to the
 * preload library, and calls by PMPI_ names go to the unmodified MPI library.
 *
 *     mpicc -O3 -march=native -o preload preload.c && ddtc preload -- ./preload > record.csv
 *
 * A line of the output has these columns: the case; bytes; the medians, in nanoseconds, of
 * interleaved rounds for the preload library, for the unmodified library, and for a hand-written
 * loop with constant extents (0 if there is none); and the median absolute deviation of the preload
 * library's rounds in percent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 41 };
static char *user, *packed;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static int by_value(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return (d > 0) - (d < 0); }
static double median(double *v) { qsort(v, ROUNDS, sizeof *v, by_value); return v[ROUNDS / 2]; }

static void line(const char *name, long bytes, double *a, double *b, double *c) {
  double m = median(a), dev[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) dev[i] = a[i] > m ? a[i] - m : m - a[i];
  printf("%s,%ld,%.1f,%.1f,%.1f,%.1f\n", name, bytes, m, median(b), c ? median(c) : 0.0, 100 * median(dev) / m);
  fflush(stdout);
}

#define CALLS(body) do { for (long k = 0; k < n; k++) { at = 0; body; } } while (0)
#define TIME(into, body) do { double start = now(); CALLS(body); into[r] = (now() - start) / n; } while (0)

#define BENCH(name, type, count, hand) do { \
    int at = 0, size = 0; \
    MPI_Type_size(type, &size); \
    long bytes = (long)size * (count), n = bytes < 4096 ? 20000 : 1 + 20000000 / bytes; \
    double a[ROUNDS], b[ROUNDS], c[ROUNDS]; \
    for (int r = 0; r < ROUNDS; r++) { \
      TIME(a, MPI_Pack(user, count, type, packed, 1 << 24, &at, MPI_COMM_SELF)); \
      TIME(b, PMPI_Pack(user, count, type, packed, 1 << 24, &at, MPI_COMM_SELF)); \
      TIME(c, hand; __asm__ volatile("" ::: "memory")); } \
    line("pack " name, bytes, a, b, c); \
    for (int r = 0; r < ROUNDS; r++) { \
      TIME(a, MPI_Unpack(packed, (int)bytes, &at, user, count, type, MPI_COMM_SELF)); \
      TIME(b, PMPI_Unpack(packed, (int)bytes, &at, user, count, type, MPI_COMM_SELF)); } \
    line("unpack " name, bytes, a, b, NULL); } while (0)

struct item { int i; double d; float f[3]; };
struct flat { int i; double d; float f[3]; } __attribute__((packed));

static void blocks(int count, int block, int stride) {
  double *u = (double *)user, *p = (double *)packed;
  for (int i = 0; i < count; i++) for (int j = 0; j < block; j++) *p++ = u[i * stride + j];
}
static void structs(int count) {
  char *p = packed;
  for (int i = 0; i < count; i++, p += 24) {
    memcpy(p, user + 32 * i, 4); memcpy(p + 4, user + 32 * i + 8, 8); memcpy(p + 12, user + 32 * i + 16, 12);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  user = calloc(1 << 25, 1); packed = calloc(1 << 24, 1);
  MPI_Datatype t, s, i8;
  printf("case,bytes,library_ns,host_ns,hand_ns,noise_percent\n");
  BENCH("pass-through 4 doubles", MPI_DOUBLE, 4, (void)0);
#define VECTOR(c, b, st) MPI_Type_vector(c, b, st, MPI_DOUBLE, &t); MPI_Type_commit(&t); \
  BENCH("vector(" #c "," #b "," #st ")", t, 1, blocks(c, b, st)); MPI_Type_free(&t)
  VECTOR(4, 1, 2);
  VECTOR(8, 4, 8);
  VECTOR(512, 1, 2);
  VECTOR(2048, 8, 16);
  VECTOR(64, 64, 128);
  VECTOR(32768, 8, 16);
  int bl[3] = {1, 1, 3};
  MPI_Aint d[3] = {0, 8, 16};
  MPI_Datatype ty[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
  MPI_Type_create_struct(3, bl, d, ty, &t);
  MPI_Type_create_resized(t, 0, 32, &s);
  MPI_Type_commit(&s);
  BENCH("struct i d f3 x 8", s, 8, structs(8));
  BENCH("struct i d f3 x 1024", s, 1024, structs(1024));
  BENCH("struct i d f3 x 65536", s, 65536, structs(65536));
  int *list = malloc(1000 * sizeof *list);
  for (int i = 0, at = 0; i < 1000; i++) { list[i] = at; at += 1 + (i * 7919 % 7); }
  MPI_Type_create_indexed_block(1000, 1, list, MPI_DOUBLE, &i8);
  MPI_Type_commit(&i8);
  double *u = (double *)user, *p = (double *)packed;
  BENCH("indexed_block 1000 x 8 B", i8, 1, for (int i = 0; i < 1000; i++) p[i] = u[list[i]]);
  /* Measure calls that the preload library passes on unchanged. Messages go to MPI_PROC_NULL and
   * collective calls stay in this process, so that little more than the calls is measured. */
#define PASS(name, calls, unmodified) do { \
    double a[ROUNDS], b[ROUNDS]; \
    long n = 20000; \
    int at; \
    for (int r = 0; r < ROUNDS; r++) { TIME(a, calls); TIME(b, unmodified); } \
    (void)at; \
    line("pass-through " name, 0, a, b, NULL); } while (0)
  MPI_Request q;
  int flag;
  PASS("Send of a named type", MPI_Send(user, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_SELF),
       PMPI_Send(user, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_SELF));
  PASS("Send of a derived type", MPI_Send(user, 1, i8, MPI_PROC_NULL, 0, MPI_COMM_SELF),
       PMPI_Send(user, 1, i8, MPI_PROC_NULL, 0, MPI_COMM_SELF));
  PASS("Recv of a named type", MPI_Recv(user, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE),
       PMPI_Recv(user, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  PASS("Irecv and Wait", MPI_Irecv(user, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &q); MPI_Wait(&q, MPI_STATUS_IGNORE),
       PMPI_Irecv(user, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &q); PMPI_Wait(&q, MPI_STATUS_IGNORE));
  PASS("Test", q = MPI_REQUEST_NULL; MPI_Test(&q, &flag, MPI_STATUS_IGNORE),
       q = MPI_REQUEST_NULL; PMPI_Test(&q, &flag, MPI_STATUS_IGNORE));
  int four[1] = {4}, at0[1] = {0}, periods[1] = {1}, one[1] = {1};
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_SELF, 1, one, periods, 0, &ring);
  PASS("Bcast of a named type", MPI_Bcast(user, 4, MPI_DOUBLE, 0, MPI_COMM_SELF), PMPI_Bcast(user, 4, MPI_DOUBLE, 0, MPI_COMM_SELF));
  PASS("Gather of a named type", MPI_Gather(user, 4, MPI_DOUBLE, packed, 4, MPI_DOUBLE, 0, MPI_COMM_SELF),
       PMPI_Gather(user, 4, MPI_DOUBLE, packed, 4, MPI_DOUBLE, 0, MPI_COMM_SELF));
  PASS("Allgather of a named type", MPI_Allgather(user, 4, MPI_DOUBLE, packed, 4, MPI_DOUBLE, MPI_COMM_SELF),
       PMPI_Allgather(user, 4, MPI_DOUBLE, packed, 4, MPI_DOUBLE, MPI_COMM_SELF));
  PASS("Alltoallv of a named type", MPI_Alltoallv(user, four, at0, MPI_DOUBLE, packed, four, at0, MPI_DOUBLE, MPI_COMM_SELF),
       PMPI_Alltoallv(user, four, at0, MPI_DOUBLE, packed, four, at0, MPI_DOUBLE, MPI_COMM_SELF));
  PASS("Neighbor_alltoall of a named type", MPI_Neighbor_alltoall(user, 4, MPI_DOUBLE, packed, 4, MPI_DOUBLE, ring),
       PMPI_Neighbor_alltoall(user, 4, MPI_DOUBLE, packed, 4, MPI_DOUBLE, ring));
  MPI_Datatype named[1] = {MPI_DOUBLE};
  MPI_Aint far[2] = {0, 0};
  PASS("Alltoallw of named types", MPI_Alltoallw(user, four, at0, named, packed, four, at0, named, MPI_COMM_SELF),
       PMPI_Alltoallw(user, four, at0, named, packed, four, at0, named, MPI_COMM_SELF));
  int two[2] = {4, 4};
  MPI_Datatype both[2] = {MPI_DOUBLE, MPI_DOUBLE};
  PASS("Neighbor_alltoallw of named types", MPI_Neighbor_alltoallw(user, two, far, both, packed, two, far, both, ring),
       PMPI_Neighbor_alltoallw(user, two, far, both, packed, two, far, both, ring));
  MPI_Comm_free(&ring);
  /* Measure one-sided operations that the preload library passes on unchanged, and a call of
   * MPI_Win_flush that has nothing to complete. */
  char *memory;
  MPI_Win win;
  MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  PASS("Put of a named type", MPI_Put(user, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, 4, MPI_DOUBLE, win),
       PMPI_Put(user, 4, MPI_DOUBLE, MPI_PROC_NULL, 0, 4, MPI_DOUBLE, win));
  PASS("Put of a derived type", MPI_Put(user, 1, i8, MPI_PROC_NULL, 0, 1, i8, win), PMPI_Put(user, 1, i8, MPI_PROC_NULL, 0, 1, i8, win));
  PASS("Win_flush", MPI_Win_flush(0, win), PMPI_Win_flush(0, win));
  MPI_Win_unlock(0, win);
  MPI_Win_free(&win);
  /* Measure commits. A round constructs, commits and frees types. In the second column the commit
   * is called by its PMPI_ name and bypasses the preload library, so the difference between the two
   * columns is the cost of a commit in the preload library. */
  for (int fresh = 0; fresh < 2; fresh++) {
    double a[ROUNDS], b[ROUNDS];
    static int seed;
    long n = fresh ? 20 : 1000;
    for (int r = 0; r < ROUNDS; r++) {
      int at;
      TIME(a, { MPI_Type_vector(7, 3, 11 + (fresh ? ++seed : 0), MPI_DOUBLE, &t); MPI_Type_commit(&t); MPI_Type_free(&t); });
      TIME(b, { MPI_Type_vector(7, 3, 11 + (fresh ? ++seed : 0), MPI_DOUBLE, &t); PMPI_Type_commit(&t); MPI_Type_free(&t); });
      (void)at;
    }
    line(fresh ? "commit a new layout" : "commit a known layout", 0, a, b, NULL);
  }
  MPI_Finalize();
  return 0;
}
