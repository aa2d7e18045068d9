/* Uses types that the preload library never sees committed: types that are committed by the
 * profiling names, as those of Fortran programs, and types that the MPI library makes inside its
 * own calls. The modes `later`, `cancelled` and `reused` have types whose commit the preload
 * library sees.
 *
 * Usage:
 *     unseen types ROUNDS SEED   pairs of ranks: random types of a pool, made anew for each message
 *                                and judged by their type maps
 *     unseen inner ROUNDS        collective calls in which the MPI library makes types
 *     unseen starved ROUNDS      as `types`, while there is no memory for compiled code
 *     unseen CALL ROUNDS         a call by its profiling name: ialltoallw, iallgatherv, allgatherv,
 *                                gatherv or partitioned
 *     unseen persistent ROUNDS   a persistent send and receive, made once and started in each round
 *     unseen later ROUNDS        as `persistent`, with a type that is seen and is used by other
 *                                messages only after the persistent requests were made
 *     unseen cancelled ROUNDS    receives that are cancelled and started again
 *     unseen reused ROUNDS       types that are seen, at addresses of types that were freed */
#include "flat.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int rank, peer, ranks, wrong;

/* Makes the type with the given number in a pool of random types, with its type map, a count and
 * its bounds. The same number always gives the same type. */
static MPI_Datatype pooled(uint64_t number, struct flat *map, int *count, MPI_Aint bounds[4]) {
  uint64_t before = state;
  MPI_Datatype t;
  for (state = number * 0x9e3779b97f4a7c15ull | 1;; map->n = 0) {
    int size;
    is_padded = 0;
    t = random_type(1 + below(3), map);
    MPI_Type_size(t, &size);
    MPI_Type_get_extent(t, &bounds[0], &bounds[1]);
    MPI_Type_get_true_extent(t, &bounds[2], &bounds[3]);
    *count = size > 0 ? 1 + (20000 + below(100000)) / size : 1;
    if (size > 0 && bounds[1] * *count < 4000000 && is_apart(map, bounds[1], *count)) break;
    committed(0, t);
  }
  state = before;
  return t;
}

static void move_by(int way, char *out, char *in, int count, MPI_Datatype t, int tag) {
  MPI_Request q[2];
  if (way == 0) {
    PMPI_Sendrecv(out, count, t, peer, tag, in, count, t, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (way == 1) {
    PMPI_Irecv(in, count, t, peer, tag, MPI_COMM_WORLD, &q[0]);
    PMPI_Isend(out, count, t, peer, tag, MPI_COMM_WORLD, &q[1]);
    PMPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  } else if (way == 2) {
    PMPI_Recv_init(in, count, t, peer, tag, MPI_COMM_WORLD, &q[0]);
    PMPI_Send_init(out, count, t, peer, tag, MPI_COMM_WORLD, &q[1]);
    for (int again = 0; again < 2; again++) {
      PMPI_Startall(2, q);
      PMPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    }
    PMPI_Request_free(&q[0]);
    PMPI_Request_free(&q[1]);
  } else {
    /* Let the message arrive before its receive is started. */
    PMPI_Isend(out, count, t, peer, tag, MPI_COMM_WORLD, &q[0]);
    PMPI_Probe(peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    PMPI_Recv(in, count, t, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    PMPI_Wait(&q[0], MPI_STATUS_IGNORE);
  }
}

static void types(int rounds, int pool) {
  for (int r = 0; r < rounds; r++) {
    struct flat map = {0};
    int count, size;
    MPI_Aint b[4];
    int number = 1 + below(pool);
    MPI_Datatype t = pooled(number, &map, &count, b);
    PMPI_Type_commit(&t);
    MPI_Type_size(t, &size);
    size_t span = 128 + 2 * labs(b[2]) + b[3] + b[1] * count, base = 64 + labs(b[2]), total = (size_t)size * count;
    char *out = malloc(span), *in = malloc(span), *expected = malloc(span), *packed = calloc(1, total);
    for (size_t i = 0; i < span; i++) {
      out[i] = (char)(0x80 | ((i * 7 + r) & 0x3f));
      in[i] = expected[i] = 0x5a;
    }
    laid_out(&map, 0, out + base, b[1], packed, count);
    laid_out(&map, 1, expected + base, b[1], packed, count);
    int way = below(4);
    move_by(way, out + base, in + base, count, t, r);
    /* Compare only the bytes of the type map: with blocks at odd places, the MPI library's own
     * receiver also writes some bytes of gaps. */
    size_t at = 0;
    while (at < span && (expected[at] == 0x5a || in[at] == expected[at])) at++;
    if (at < span) {
      printf("rank %d, round %d, way %d, type %d: byte %zu of %zu is %02x, not %02x; size %d, count %d\n", rank, r, way, number, at, span,
             in[at] & 255, expected[at] & 255, size, count);
      wrong++;
    }
    PMPI_Type_free(&t);
    free(map.bytes); free(map.at);
    free(out); free(in); free(expected); free(packed);
  }
}

/* Makes all requests of this process for executable memory fail from now on, by a filter of system
 * calls. */
static void starve(void) {
#define AT(field) offsetof(struct seccomp_data, field)
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT(nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_memfd_create, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT(args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) { perror("prctl"); exit(3); }
}

/* Makes collective calls with blocks of 12 kB, so that the MPI library sends several blocks in one
 * request. */
static void inner(int rounds) {
  enum { EACH = 3000 };
  /* First send messages of a type whose commit the preload library sees. */
  MPI_Datatype column;
  MPI_Type_vector(2048, 1, 2, MPI_INT, &column);
  MPI_Type_commit(&column);
  int *wide = calloc(4096 * 2, sizeof(int));
  for (int r = 0; r < 8; r++) MPI_Sendrecv(wide, 1, column, peer, r, wide + 4096, 1, column, peer, r, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Type_free(&column);
  free(wide);
  int *out = malloc(sizeof(int) * EACH * ranks), *in = malloc(sizeof(int) * EACH * ranks), counts[64], places[64];
  for (int r = 0; r < rounds && wrong < 5; r++) {
    for (int p = 0; p < ranks; p++) {
      counts[p] = EACH - p;
      places[p] = EACH * p;
      for (int i = 0; i < EACH; i++) out[p * EACH + i] = r + rank * 1000000 + p * 10000 + i;
    }
    memset(in, 0, sizeof(int) * EACH * ranks);
    MPI_Alltoall(out, EACH, MPI_INT, in, EACH, MPI_INT, MPI_COMM_WORLD);
    for (int p = 0; p < ranks; p++)
      for (int i = 0; i < EACH; i++) wrong += in[p * EACH + i] != r + p * 1000000 + rank * 10000 + i;
    memset(in, 0, sizeof(int) * EACH * ranks);
    MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int p = 0; p < ranks; p++)
      for (int i = 0; i < counts[p]; i++) wrong += in[p * EACH + i] != r + p * 1000000 + i;
  }
  free(out);
  free(in);
}

/* Uses each type for three messages and frees it. The type of the next round is another one, often
 * at the address of the freed type. */
static void reused(int rounds) {
  MPI_Datatype last = MPI_DATATYPE_NULL;
  int again = 0;
  double *out = malloc(8 * 4096 * 4), *in = malloc(8 * 4096 * 4);
  for (int r = 0; r < rounds && wrong < 5; r++) {
    MPI_Datatype t;
    int stride = 2 + r % 3, rows = 4096 - r % 7;
    MPI_Type_vector(rows, 1, stride, MPI_DOUBLE, &t);
    MPI_Type_commit(&t);
    again += t == last;
    last = t;
    for (int use = 0; use < 3; use++) {
      for (int i = 0; i < 4096 * 4; i++) { out[i] = r * 100000 + i + use; in[i] = -1; }
      MPI_Sendrecv(out, 1, t, peer, r, in, 1, t, peer, r, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < 4096 * 4; i++) {
        double expected = i % stride == 0 && i / stride < rows ? r * 100000 + i + use : -1;
        if (in[i] != expected) { printf("round %d, use %d: %d is %f\n", r, use, i, in[i]); wrong++; break; }
      }
    }
    MPI_Type_free(&t);
  }
  if (rank == 0) printf("again %d\n", again);
  free(out);
  free(in);
}

enum { ROWS = 6000 };

/* Makes the call that `name` names, `rounds` times. The type of the call has every other integer of
 * a column. The buffers have a column for each rank. */
static void call(const char *name, int rounds) {
  MPI_Datatype half, column, types[64];
  int counts[64], one[64], at[64];
  PMPI_Type_vector(ROWS, 1, 2, MPI_INT, &half);
  PMPI_Type_create_resized(half, 0, ROWS * 2 * sizeof(int), &column);
  /* Open MPI prepares the requests of partitioned messages while it makes progress, where the
   * preload library compiles nothing. So commit their type by a call that the preload library
   * sees. */
  if (*name == 'p') MPI_Type_commit(&column); else PMPI_Type_commit(&column);
  /* In each round, make the call once. Then compare the integers of the type and the integers
   * between them with the expected ones. */
  int *out = malloc(sizeof(int) * ROWS * 2 * ranks), *in = malloc(sizeof(int) * ROWS * 2 * ranks);
  for (int p = 0; p < ranks; p++) { types[p] = column; one[p] = 1; counts[p] = p; at[p] = p * ROWS * 2 * (int)sizeof(int); }
  for (int r = 0; r < rounds && wrong < 5; r++) {
    MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int begin = 0, end = ranks, each = 0;
    for (int i = 0; i < ROWS * 2 * ranks; i++) { out[i] = r + rank * 10000000 + i; in[i] = -1; }
    if (!strcmp(name, "ialltoallw")) {
      each = 1;
      PMPI_Ialltoallw(out, one, at, types, in, one, at, types, MPI_COMM_WORLD, &q[0]);
    } else if (!strcmp(name, "iallgatherv")) {
      PMPI_Iallgatherv(out, 1, column, in, one, counts, column, MPI_COMM_WORLD, &q[0]);
    } else if (!strcmp(name, "allgatherv")) {
      PMPI_Allgatherv(out, 1, column, in, one, counts, column, MPI_COMM_WORLD);
    } else if (!strcmp(name, "gatherv")) {
      PMPI_Gatherv(out, 1, column, in, one, counts, column, 0, MPI_COMM_WORLD);
      if (rank) end = 0;
#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
    } else if (!strcmp(name, "partitioned")) {
      MPI_Psend_init(out, 1, 1, column, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &q[0]);
      MPI_Precv_init(in, 1, 1, column, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &q[1]);
      PMPI_Startall(2, q);
      PMPI_Pready(0, q[0]);
      PMPI_Waitall(2, q, MPI_STATUSES_IGNORE);
      PMPI_Request_free(&q[0]);
      PMPI_Request_free(&q[1]);
      for (int i = 0; i < ROWS * 2; i++) wrong += in[i] != (i % 2 ? -1 : r + peer * 10000000 + i);
      end = 0;
#endif
    }
    PMPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    for (int p = begin; p < end; p++)
      for (int i = 0; i < ROWS * 2; i++) {
        int expected = i % 2 ? -1 : r + p * 10000000 + i + (each ? rank * ROWS * 2 : 0);
        wrong += in[p * ROWS * 2 + i] != expected;
      }
  }
  PMPI_Type_free(&column);
  PMPI_Type_free(&half);
  free(out);
  free(in);
}

/* Makes a persistent send and a persistent receive of `COLUMNS` columns, each of which has every
 * other integer, and starts both in each round. A message is long enough to be cut into pieces. If
 * `is_seen` is true, the preload library sees the commit of the type, and sees eight messages with
 * the type after the persistent requests were made. */
static void persistent(int rounds, int is_seen) {
  enum { COLUMNS = 4, ALL = ROWS * 2 * COLUMNS };
  MPI_Datatype half, column;
  MPI_Request q[2];
  PMPI_Type_vector(ROWS, 1, 2, MPI_INT, &half);
  PMPI_Type_create_resized(half, 0, ROWS * 2 * sizeof(int), &column);
  if (is_seen) MPI_Type_commit(&column); else PMPI_Type_commit(&column);
  int *out = calloc(ALL, sizeof(int)), *in = calloc(ALL, sizeof(int));
  PMPI_Recv_init(in, COLUMNS, column, peer, 0, MPI_COMM_WORLD, &q[0]);
  PMPI_Send_init(out, COLUMNS, column, peer, 0, MPI_COMM_WORLD, &q[1]);
  for (int r = 0; is_seen && r < 8; r++)
    MPI_Sendrecv(out, COLUMNS, column, peer, 1, in, COLUMNS, column, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int r = 0; r < rounds && wrong < 5; r++) {
    for (int i = 0; i < ALL; i++) { out[i] = r + rank * 10000000 + i; in[i] = -1; }
    PMPI_Startall(2, q);
    PMPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < ALL; i++) wrong += in[i] != (i % 2 ? -1 : r + peer * 10000000 + i);
  }
  PMPI_Request_free(&q[0]);
  PMPI_Request_free(&q[1]);
  PMPI_Type_free(&column);
  PMPI_Type_free(&half);
  free(out);
  free(in);
}

/* In each round, starts a receive and cancels it, and then starts a second receive with the same
 * tag. The message must arrive in the buffer of the second receive. */
static void cancelled(int rounds) {
  MPI_Datatype column;
  MPI_Type_vector(ROWS, 1, 2, MPI_INT, &column);
  MPI_Type_commit(&column);
  int *out = malloc(sizeof(int) * ROWS * 2), *in = malloc(sizeof(int) * ROWS * 2), *other = malloc(sizeof(int) * ROWS * 2);
  for (int r = 0; r < rounds && wrong < 5; r++) {
    MPI_Request q[2];
    MPI_Status status;
    int is_cancelled;
    for (int i = 0; i < ROWS * 2; i++) { out[i] = r + i; in[i] = other[i] = -1; }
    MPI_Irecv(other, 1, column, peer, r, MPI_COMM_WORLD, &q[0]);
    MPI_Cancel(&q[0]);
    MPI_Wait(&q[0], &status);
    MPI_Test_cancelled(&status, &is_cancelled);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(in, 1, column, peer, r, MPI_COMM_WORLD, &q[0]);
    MPI_Isend(out, 1, column, peer, r, MPI_COMM_WORLD, &q[1]);
    MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    wrong += !is_cancelled;
    for (int i = 0; i < ROWS * 2; i++) wrong += other[i] != -1 || (in[i] != (i % 2 ? -1 : r + i));
  }
  MPI_Type_free(&column);
  free(out);
  free(in);
  free(other);
}

int main(int argc, char **argv) {
  PMPI_Init(&argc, &argv);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  peer = ranks > 1 ? rank ^ 1 : 0;
  has_basics();
  int rounds = argc > 2 ? atoi(argv[2]) : 0;
  if (argc > 3) state ^= strtoull(argv[3], 0, 10) * 0x9e3779b97f4a7c15ull;
  if (argc > 1 && !strcmp(argv[1], "starved")) starve();
  if (argc > 1 && (!strcmp(argv[1], "types") || !strcmp(argv[1], "starved"))) types(rounds, 24);
  if (argc > 1 && !strcmp(argv[1], "inner")) inner(rounds);
  if (argc > 1 && !strcmp(argv[1], "reused")) reused(rounds);
  if (argc > 1 && !strcmp(argv[1], "cancelled")) cancelled(rounds);
  if (argc > 1 && !strcmp(argv[1], "persistent")) persistent(rounds, 0);
  if (argc > 1 && !strcmp(argv[1], "later")) persistent(rounds, 1);
  if (argc > 1 && strstr("ialltoallw iallgatherv allgatherv gatherv partitioned", argv[1])) call(argv[1], rounds);
  int sum = 0;
  PMPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\n", sum);
  MPI_Finalize();
  return 0;
}
