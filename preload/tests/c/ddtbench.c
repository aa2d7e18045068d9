/* Exchanges the messages of applications between two ranks, by derived datatypes and packed by
 * hand. The messages are the rows of the table in ddtbench.h.
 *
 * As in DDTBench, a datatype is made, committed and freed once in each outer round, and used for a
 * message there and back in each inner round. For types with lists of indices, the indices are
 * drawn anew for each outer round.
 *
 *     ddtbench check [OUTER [INNER [CASE]]]
 *                   checks bytes: prints a line per row, the same for every MPI library, and exits
 *                   with 1 if some bytes are wrong
 *     ddtbench time [OUTER [INNER [CASE]]]
 *                   prints times in microseconds, comma-separated, in the columns that the string
 *                   `columns` names
 *
 * OUTER and INNER are numbers of rounds. Rows run only if their names begin with CASE. Bytes are
 * right if all memory of all arrays, including gaps, is the same as after the exchange that is
 * packed by hand. Memory is overwritten between a send and the receive after it, so that missing
 * bytes are noticed. `time` checks the bytes after its rounds, since it measures the first uses of
 * a datatype. */
#include "ddtbench.h"
#include <time.h>

enum { MAX_TIMES = 4096, MADE = 10, LONG_MESSAGE = 2 << 20, WIDE = 64 << 20 };
static int rank;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}
static void fill(const struct row *r, unsigned seed) {
  for (int k = 0; k < r->areas; k++) {
    uint32_t *p = r->area[k], first = (seed * 16 + k) * 0x9e3779b9u;
    for (size_t i = 0; i < r->area_bytes[k] / 4; i++) p[i] = ((uint32_t)i + first) * 0x85ebca6bu;
  }
}
static uint64_t hash(const struct row *r) {
  uint64_t h[4] = {1, 2, 3, 4};
  for (int k = 0; k < r->areas; k++) {
    const unsigned char *p = r->area[k], *end = p + r->area_bytes[k];
    for (; end - p >= 32; p += 32)
      for (int i = 0; i < 4; i++) { uint64_t w; memcpy(&w, p + 8 * i, 8); h[i] = (h[i] ^ w) * 0x9e3779b97f4a7c15u; h[i] ^= h[i] >> 29; }
    for (; p < end; p++) h[0] = (h[0] ^ *p) * 0x100000001b3u;
  }
  return ((h[0] * 31 + h[1]) * 31 + h[2]) * 31 + h[3];
}

enum { TIMED, CHECKED };
static void spoil(const struct row *r, int checked) { if (checked) fill(r, 7 + rank); }

/* Moves the data of a row to the other rank and back by derived datatypes: by two calls of
 * MPI_Alltoall if the row is a transposition, and otherwise by a message in either direction. If
 * `checked` is true, overwrites the sent data in between. */
static void derived(const struct row *r, MPI_Datatype t[2], int checked) {
  MPI_Comm c = MPI_COMM_WORLD;
  if (r->kind->way == TRANSPOSE) {
    MPI_Alltoall(r->from, 1, t[0], r->to, 1, t[1], c);
    if (checked) { uint64_t *p = r->from; for (size_t i = 0; i < r->bytes / 8; i++) p[i] = i; }
    MPI_Alltoall(r->to, 1, t[0], r->from, 1, t[1], c);
  } else if (rank == 0) {
    MPI_Send(r->from, 1, t[0], 1, 1, c);
    spoil(r, checked);
    MPI_Recv(r->to, 1, t[1], 1, 1, c, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(r->to, 1, t[1], 0, 1, c, MPI_STATUS_IGNORE);
    MPI_Send(r->from, 1, t[0], 0, 1, c);
  }
}

/* Functions that move the data of a row to the other rank and back without derived datatypes: loops
 * pack the data into contiguous bytes, which are sent, and unpack what has arrived. */
static void send_packed(const struct row *r, char *buffer) {
  r->kind->pack(r, buffer);
  MPI_Send(buffer, (int)r->bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
}
static void receive_packed(const struct row *r, char *buffer) {
  void *at = r->kind->unpack ? buffer : r->to;
  MPI_Recv(at, (int)r->bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (r->kind->unpack) r->kind->unpack(r, buffer);
}
static void transposed(const struct row *r, const void *from, void *to, char *buffer) {
  int each = (int)(r->bytes / RANKS);
  fft_blocks(r->n[0], from, (double *)buffer);
  MPI_Alltoall(buffer, each, MPI_BYTE, buffer + r->bytes, each, MPI_BYTE, MPI_COMM_WORLD);
  fft_columns(r->n[0], (const double *)(buffer + r->bytes), to);
}
static void by_hand(const struct row *r, char *buffer, int checked) {
  if (r->kind->way == TRANSPOSE) {
    transposed(r, r->from, r->to, buffer);
    if (checked) memset(r->from, 1, r->bytes);
    transposed(r, r->to, r->from, buffer);
  } else if (rank == 0) {
    send_packed(r, buffer);
    spoil(r, checked);
    receive_packed(r, buffer);
  } else {
    receive_packed(r, buffer);
    send_packed(r, buffer);
  }
}
static char *message(const struct row *r) {
  char *p = malloc(r->kind->way == TRANSPOSE ? 2 * r->bytes : r->bytes);
  if (!p) MPI_Abort(MPI_COMM_WORLD, 1);
  return p;
}

static void begin(struct row *r) {
  r->kind->open(r);
  fill(r, rank);
}
static void lists(struct row *r, int round) {
  if (r->kind->lists) r->kind->lists(r, 2u * (unsigned)round + (unsigned)rank);
}
static void make(const struct row *r, MPI_Datatype t[2]) { r->kind->make(r, t); }
static void unmake(MPI_Datatype t[2]) {
  int same = t[0] == t[1];
  MPI_Type_free(&t[0]);
  if (!same) MPI_Type_free(&t[1]);
}
static void end(struct row *r) {
  while (r->areas) free(r->area[--r->areas]);
  for (int k = 0; k < 2; k++) free(r->list[k]);
}

/* Makes the exchanges of one outer round, and returns how many exchanges by derived datatypes moved
 * wrong bytes on this rank. The result is larger by 1 if the size of the type is wrong or the
 * exchange packed by hand has not changed the memory. Sets `right` to the hash of the right
 * contents. */
static int wrong(struct row *r, int round, int inner, uint64_t *right) {
  int bad = 0;
  MPI_Datatype t[2];
  lists(r, round);
  fill(r, 7 + rank);
  uint64_t spoilt = hash(r);
  fill(r, rank);
  uint64_t before = hash(r);
  char *buffer = message(r);
  by_hand(r, buffer, CHECKED);
  free(buffer);
  *right = hash(r);
  make(r, t);
  int size;
  MPI_Type_size(t[0], &size);
  if ((size_t)size * (r->kind->way == TRANSPOSE ? RANKS : 1) != r->bytes || *right == spoilt || *right == before) bad++;
  for (int k = 0; k < inner; k++) {
    fill(r, rank);
    derived(r, t, CHECKED);
    if (hash(r) != *right) bad++;
  }
  unmake(t);
  return bad;
}

static void print_row(const struct row *r, const char *between) {
  printf("%s%s", r->kind->name, between);
  for (int k = 0; k < r->kind->numbers; k++) printf("%s%d", k ? "x" : "", r->n[k]);
  printf("%s%zu", between, r->bytes);
}

static int check(struct row *r, int outer, int inner) {
  uint64_t right = 0, sum[2] = {0, 0}, all[4];
  begin(r);
  /* Make one exchange per outer round if the first array has more than WIDE bytes, which is more
   * than a cache holds: each exchange fills and reads the whole array. */
  if (r->area_bytes[0] > WIDE) inner = 1;
  for (int o = 0; o < outer; o++) {
    sum[0] += wrong(r, o, inner, &right);
    sum[1] = sum[1] * 31 + right;
  }
  MPI_Gather(sum, 2, MPI_UINT64_T, all, 2, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    print_row(r, " ");
    printf(" bytes, %016llx %016llx", (unsigned long long)all[1], (unsigned long long)all[3]);
    if (all[0] + all[2]) printf(" WRONG %d %d\n", (int)all[0], (int)all[2]);
    else printf(" right\n");
  }
  end(r);
  return rank == 0 && all[0] + all[2];
}

static int less(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }
static void print_least_and_median(double *samples, int n) {
  qsort(samples, n, sizeof *samples, less);
  printf(",%.3f,%.3f", samples[0], n % 2 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2);
}

/* Names of the columns of the output. The times of `derived` are those of a message there and back
 * by a derived datatype, and the times of `hand` those of the same packed by hand. `made` is the
 * time to create, commit and free a datatype that is not used, and `used` is the same time for a
 * datatype that the messages of the round use. `least` is the minimum. `whole` is the mean time of
 * an outer round with all its exchanges and with the creation, commit and free of its datatype. */
static const char columns[] = "case,size,bytes,derived_least,derived_median,hand_least,hand_median,made_least,made_median,used_least,used_median,"
                              "derived_whole,hand_whole";
static double one[MAX_TIMES], other[MAX_TIMES], created[MAX_TIMES];

static int timed(struct row *r, int outer, int inner) {
  double whole = 0, whole_by_hand = 0;
  MPI_Datatype t[2];
  begin(r);
  if (r->bytes >= LONG_MESSAGE) inner = (inner + 3) / 4;
  int n = 0;
  /* Each outer round measures messages of a datatype together with making and freeing the datatype,
   * and then the same messages packed by hand. */
  for (int o = 0; o < outer; o++) {
    lists(r, o);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    make(r, t);
    created[o] = now() - start;
    for (int k = 0; k < inner; k++) {
      double began = now();
      derived(r, t, TIMED);
      if (n + k < MAX_TIMES) one[n + k] = now() - began;
    }
    double freed = now();
    unmake(t);
    double ended = now();
    created[o] += ended - freed;
    whole += ended - start;
    MPI_Barrier(MPI_COMM_WORLD);
    start = now();
    char *buffer = message(r);
    for (int k = 0; k < inner; k++) {
      double began = now();
      by_hand(r, buffer, TIMED);
      if (n + k < MAX_TIMES) other[n + k] = now() - began;
    }
    free(buffer);
    whole_by_hand += now() - start;
    n = n + inner < MAX_TIMES ? n + inner : MAX_TIMES;
  }
  if (rank == 0) {
    print_row(r, ",");
    print_least_and_median(one, n);
    print_least_and_median(other, n);
  }
  /* Measure how long it takes to make and free a datatype that is not used. After that, check the
   * bytes of one exchange, since the measurement itself checks none. */
  MPI_Barrier(MPI_COMM_WORLD);
  for (int o = 0; o < outer; o++) {
    double start = now();
    for (int k = 0; k < MADE; k++) { make(r, t); unmake(t); }
    one[o] = (now() - start) / MADE;
  }
  if (rank == 0) {
    print_least_and_median(one, outer);
    print_least_and_median(created, outer);
    printf(",%.3f,%.3f\n", whole / outer, whole_by_hand / outer);
    fflush(stdout);
  }
  uint64_t right;
  int bad[2] = {wrong(r, outer, 1, &right), 0};
  MPI_Allreduce(&bad[0], &bad[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (bad[1] && rank == 0) { fprintf(stderr, "ddtbench: wrong bytes: "); print_row(r, " "); printf("\n"); }
  end(r);
  return bad[1] != 0;
}

int main(int argc, char **argv) {
  int ranks, failed = 0, done = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int checks = argc > 1 && !strcmp(argv[1], "check");
  int outer = argc > 2 ? atoi(argv[2]) : checks ? 2 : 10, inner = argc > 3 ? atoi(argv[3]) : checks ? 3 : 20;
  const char *prefix = argc > 4 ? argv[4] : "";
  if (ranks != RANKS || argc < 2 || (!checks && strcmp(argv[1], "time")) || outer < 1 || outer > MAX_TIMES || inner < 1) {
    if (rank == 0) fprintf(stderr, "usage, on %d ranks: ddtbench check|time [OUTER [INNER [CASE]]]\n", RANKS);
    MPI_Finalize();
    return 2;
  }
  if (rank == 0 && !checks) {
    static char version[16384];
    int length;
    MPI_Get_library_version(version, &length);
    printf("# %.*s\n%s\n", (int)strcspn(version, "\n"), version, columns);
  }
  for (struct row *r = rows; r < rows + ROWS; r++)
    if (!strncmp(r->kind->name, prefix, strlen(prefix))) {
      done++;
      failed += (checks ? check : timed)(r, outer, inner);
    }
  if (rank == 0 && checks) printf("rows %d wrong %d\n", done, failed);
  MPI_Finalize();
  return rank == 0 && (failed || !done);
}
