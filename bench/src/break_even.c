/* Measures one layout under one MPI library, in a process of its own. MPI_ names are the preload
 * library's, PMPI_ names those of the unmodified MPI library.
 *
 *   break_even check LAYOUT OTHER
 *       compares the bytes that both libraries pack, and those that both unpack
 *   break_even unmodified|pack|both LAYOUT OTHER N US
 *       measures times, in N interleaved rounds of US microseconds a variant
 *
 * LAYOUT is an index into the table of layouts.h. OTHER is the index of a layout that is likely to
 * have the same shape, or -1 if there is none. The first measurement is the commit of the layout:
 * by the MPI library (unmodified), by the preload library as it is (pack), or by the preload
 * library with both directions compiled at commit (both). An unrelated type has been committed,
 * packed and unpacked before, so the preload library and its compiler have started, but have seen
 * no type like the layout.
 *
 * check prints "library VERSION". The other modes print "commit NS", then with unmodified and an
 * OTHER also "known NS" (the preload library's commit after that of OTHER), and
 * "packs UNMODIFIED PRELOAD UNMODIFIED PRELOAD": the medians of the rounds in nanoseconds, first
 * for packing, then for unpacking. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct layout { MPI_Datatype (*make)(void); int count; long low, high, bytes; };
#include "layouts.h"

enum { MAX_ROUNDS = 1001 };
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static int by_value(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return (d > 0) - (d < 0); }
static double median(double *v, int n) { qsort(v, n, sizeof *v, by_value); return v[n / 2]; }

static void *memory(long bytes) {
  void *p = calloc(bytes + 64, 1);
  if (!p) { fprintf(stderr, "%ld bytes of memory are needed\n", bytes); exit(1); }
  return (void *)(((size_t)p + 63) / 64 * 64);
}
static void fill(unsigned char *p, long bytes, unsigned long long seed) {
  for (long i = 0; i < bytes; i++) { seed = seed * 6364136223846793005ull + 1442695040888963407ull; p[i] = seed >> 56; }
}

static unsigned char *user, *packed;
static int count, size;
static MPI_Datatype t;

enum { UNMODIFIED_PACK, PACK, UNMODIFIED_UNPACK, UNPACK, VARIANTS };
static void call(int variant, long n) {
  for (long k = 0; k < n; k++) {
    int at = 0;
    switch (variant) {
    case UNMODIFIED_PACK: PMPI_Pack(user, count, t, packed, size, &at, MPI_COMM_SELF); break;
    case PACK: MPI_Pack(user, count, t, packed, size, &at, MPI_COMM_SELF); break;
    case UNMODIFIED_UNPACK: PMPI_Unpack(packed, size, &at, user, count, t, MPI_COMM_SELF); break;
    default: MPI_Unpack(packed, size, &at, user, count, t, MPI_COMM_SELF); break;
    }
    if (at != size) { fprintf(stderr, "variant %d moves the position by %d, not %d\n", variant, at, size); exit(1); }
  }
}
static double time_of(int variant, long n) { double start = now(); call(variant, n); return (now() - start) / n; }

/* Commits, packs and unpacks an unrelated type by the MPI library and by the preload library. So
 * both have done the work of a first call before the layout itself is measured. */
static void warm(void) {
  int lengths[3] = {1, 3, 1};
  MPI_Aint places[3] = {0, 100, 300};
  MPI_Datatype types[3] = {MPI_INT, MPI_CHAR, MPI_DOUBLE}, again;
  MPI_Type_create_struct(3, lengths, places, types, &t);
  MPI_Type_dup(t, &again);
  MPI_Type_commit(&t);
  PMPI_Type_commit(&again);
  user = memory(1024); packed = memory(64); count = 1; size = 15;
  for (int v = 0; v < VARIANTS; v++) call(v, 2);
}

/* Sets a control variable of the preload library, so that MPI_Type_commit compiles the code for
 * unpacking too, and not only that for packing. */
static void both_directions(void) {
  int provided, index, n, one = 1;
  MPI_T_cvar_handle variable;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) || MPI_T_cvar_get_index("ddtc_both_directions", &index)
      || MPI_T_cvar_handle_alloc(index, NULL, &variable, &n) || MPI_T_cvar_write(variable, &one)) {
    fprintf(stderr, "there is no control variable ddtc_both_directions: the preload library is not loaded\n");
    exit(1);
  }
}

static int same(const char *what, const unsigned char *a, const unsigned char *b, long bytes) {
  for (long i = 0; i < bytes; i++)
    if (a[i] != b[i]) { fprintf(stderr, "%s byte %ld is %#04x by the MPI library, %#04x by ddtc\n", what, i, a[i], b[i]); return 0; }
  return 1;
}

static int check(const struct layout *l) {
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, "\n")] = 0;
  printf("library %s\n", version);
  t = l->make(); count = l->count; size = (int)l->bytes;
  MPI_Type_commit(&t);
  long span = l->high - l->low;
  unsigned char *theirs = memory(span), *ours = memory(span), *by_mpi = memory(size + 1), *by_ddtc = memory(size + 1);
  fill(theirs, span, 1); memcpy(ours, theirs, span);
  user = theirs - l->low;
  packed = by_mpi; call(UNMODIFIED_PACK, 1);
  /* The preload library leaves the first call with a communicator to the MPI library, so the
   * second call is compared. */
  packed = by_ddtc; call(PACK, 1); memset(packed, 0, size); call(PACK, 1);
  if (!same("packed", by_mpi, by_ddtc, size + 1)) return 1;
  fill(packed, size, 2);
  call(UNMODIFIED_UNPACK, 1);
  user = ours - l->low; call(UNPACK, 1);
  return !same("unpacked", theirs, ours, span);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc < 4) return 2;
  const struct layout *l = &layouts[atoi(argv[2])], *other = atoi(argv[3]) < 0 ? NULL : &layouts[atoi(argv[3])];
  if (!strcmp(argv[1], "check")) {
    int wrong = check(l);
    MPI_Finalize();
    return wrong;
  }
  if (argc < 6) return 2;
  int rounds = atoi(argv[4]) < MAX_ROUNDS ? atoi(argv[4]) : MAX_ROUNDS;
  double budget = atof(argv[5]) * 1000;
  int unmodified = !strcmp(argv[1], "unmodified");
  if (!strcmp(argv[1], "both")) both_directions();
  warm();
  t = l->make();
  double start = now();
  if (unmodified) PMPI_Type_commit(&t); else MPI_Type_commit(&t);
  printf("commit %.0f\n", now() - start);
  if (unmodified && other) {
    MPI_Datatype o = other->make(), again = l->make();
    MPI_Type_commit(&o);
    start = now();
    MPI_Type_commit(&again);
    printf("known %.0f\n", now() - start);
  }
  if (unmodified) MPI_Type_commit(&t);
  user = (unsigned char *)memory(l->high - l->low) - l->low; packed = memory(l->bytes); count = l->count; size = (int)l->bytes;
  fill(packed, size, 3);
  static double v[VARIANTS][MAX_ROUNDS];
  long n[VARIANTS];
  for (int i = VARIANTS - 1; i >= 0; i--) {
    call(i, 1);
    for (n[i] = 1; time_of(i, n[i]) * n[i] < budget / 2 && n[i] < 1 << 24; n[i] *= 2) {}
  }
  for (int r = 0; r < rounds; r++)
    for (int i = 0; i < VARIANTS; i++) { int turn = (r + i) % VARIANTS; v[turn][r] = time_of(turn, n[turn]); }
  printf("packs");
  for (int i = 0; i < VARIANTS; i++) printf(" %.2f", median(v[i], rounds));
  printf("\n");
  MPI_Finalize();
  return 0;
}
