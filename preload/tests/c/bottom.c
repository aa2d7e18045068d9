/* Uses types of absolute addresses with MPI_BOTTOM as the buffer, in packs, messages, collective
 * calls and puts. The objects at these addresses are on the heap, and on pages that have
 * inaccessible pages on either side.
 *
 *     bottom [ROUNDS]: two ranks; the output is the same with and without the preload library
 *     bottom unmapped: sends a type at addresses where nothing is mapped
 *     bottom pack, send or receive: passes a null buffer with a type without addresses
 *     bottom freed: uses a type that was freed
 *     bottom fresh N: 20 exchanges for each of N sets of objects, which are allocated for them at
 *       addresses where no other objects were */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int rank, size, wrong;
static unsigned long sum;

static void check(const char *what, const char *got, const char *expected, int n) {
  int i;
  for (i = 0; i < n && got[i] == expected[i]; i++) {}
  if (i < n) {
    printf("rank %d: %s: byte %d is %d, not %d\n", rank, what, i, got[i], expected[i]);
    wrong++;
  }
  for (i = 0; i < n; i++) sum = sum * 31 + (unsigned char)got[i];
}

/* The objects that one type of absolute addresses covers: an int, 3 doubles at distances of 16
 * bytes whose gaps must not change, 5 floats in an allocation of their own, and PIECES pieces. Each
 * piece has RUNS runs of 12 bytes at distances of 20 bytes, and is on a page with an inaccessible
 * page on either side. */
enum { PIECES = 5, RUNS = 40, MAX = 8192 };
typedef struct {
  int a;
  double b[6];
  float *c;
  char *pieces[PIECES];
} Members;

static long page;

static char *lonely(void) {
  char *at = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED || mprotect(at + page, page, PROT_READ | PROT_WRITE)) exit(2);
  return at + page;
}

static Members *members(void) {
  Members *m = malloc(sizeof *m);
  int i;
  m->c = malloc(5 * sizeof(float));
  /* A piece with an even index ends at the last byte before an inaccessible page. A piece with an
   * odd index begins at the first byte after an inaccessible page. */
  for (i = 0; i < PIECES; i++) m->pieces[i] = lonely() + (i % 2 ? 0 : page - ((RUNS - 1) * 20 + 12));
  return m;
}

static void fill(Members *m, int seed) {
  int i, j;
  m->a = seed * 7 + 1;
  for (i = 0; i < 6; i++) m->b[i] = seed + i * 0.5;
  for (i = 0; i < 5; i++) m->c[i] = seed - i;
  for (i = 0; i < PIECES; i++)
    for (j = 0; j < (RUNS - 1) * 20 + 12; j++) m->pieces[i][j] = (char)(seed * 3 + i * 11 + j);
}

/* Copies the bytes of `m` that belong to the type to `out`, in the order of the type map, and the
 * bytes of the gaps to `gaps`. Returns the number of bytes in `out`. */
static int flat(const Members *m, char *out, char *gaps) {
  int n = 0, g = 0, i, j;
  memcpy(out, &m->a, 4), n = 4;
  for (i = 0; i < 6; i++) {
    if (i % 2) memcpy(gaps + g, &m->b[i], 8), g += 8;
    else memcpy(out + n, &m->b[i], 8), n += 8;
  }
  memcpy(out + n, m->c, 20), n += 20;
  for (i = 0; i < PIECES; i++)
    for (j = 0; j < RUNS; j++) {
      memcpy(out + n, m->pieces[i] + j * 20, 12), n += 12;
      if (j + 1 < RUNS) memcpy(gaps + g, m->pieces[i] + j * 20 + 12, 8), g += 8;
    }
  return n;
}

static MPI_Datatype at(Members *m, int commit) {
  int lengths[3 + PIECES] = {1, 1, 5}, i;
  MPI_Aint places[3 + PIECES];
  MPI_Datatype types[3 + PIECES] = {MPI_INT, MPI_DATATYPE_NULL, MPI_FLOAT}, runs, t;
  MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &types[1]);
  MPI_Type_vector(RUNS, 12, 20, MPI_CHAR, &runs);
  MPI_Get_address(&m->a, &places[0]);
  MPI_Get_address(m->b, &places[1]);
  MPI_Get_address(m->c, &places[2]);
  for (i = 0; i < PIECES; i++) {
    lengths[3 + i] = 1;
    types[3 + i] = runs;
    MPI_Get_address(m->pieces[i], &places[3 + i]);
  }
  MPI_Type_create_struct(3 + PIECES, lengths, places, types, &t);
  if (commit) MPI_Type_commit(&t);
  MPI_Type_free(&types[1]);
  MPI_Type_free(&runs);
  return t;
}

static char got[MAX], sent[MAX], gaps[MAX], before[MAX], packed[MAX];

static void received(const char *what, Members *into, int seed, Members *model) {
  int n = flat(into, got, gaps);
  fill(model, seed);
  flat(model, sent, packed);
  check(what, got, sent, n);
  check("gaps", gaps, before, 3 * 8 + PIECES * (RUNS - 1) * 8);
}

static void prepared(Members *into) {
  fill(into, 99);
  flat(into, got, before);
}

static void exchanges(int round, Members *from, Members *into, Members *model) {
  MPI_Datatype s = at(from, 1), r = at(into, 1), b;
  MPI_Request requests[2];
  MPI_Status status;
  int n, place = 0, end, other = 1 - rank, k, zero = 0, one = 1;
  char flatly[MAX];
  fill(from, round + rank);
  n = flat(from, sent, gaps);

  /* Pack the objects of `from` and compare the packed bytes with those that `flat` has copied. Then
   * unpack these bytes into the objects of `into`. */
  MPI_Pack(MPI_BOTTOM, 1, s, packed, MAX, &place, MPI_COMM_WORLD);
  check("pack", packed, sent, n);
  end = place, place = 0, prepared(into);
  memcpy(flatly, packed, n);
  MPI_Unpack(flatly, end, &place, MPI_BOTTOM, 1, r, MPI_COMM_WORLD);
  received("unpack", into, round + rank, model);

  /* Exchange messages with the other rank, which may run without the preload library: blocking,
   * nonblocking and persistent. */
  prepared(into);
  MPI_Sendrecv(MPI_BOTTOM, 1, s, other, 1, MPI_BOTTOM, 1, r, other, 1, MPI_COMM_WORLD, &status);
  MPI_Get_elements(&status, r, &k);
  received("sendrecv", into, round + other, model);
  sum += k;
  prepared(into);
  MPI_Irecv(MPI_BOTTOM, 1, r, other, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(MPI_BOTTOM, 1, s, other, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  received("isend", into, round + other, model);
  MPI_Recv_init(MPI_BOTTOM, 1, r, other, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(MPI_BOTTOM, 1, s, other, 3, MPI_COMM_WORLD, &requests[1]);
  for (k = 0; k < 3; k++) {
    prepared(into);
    fill(from, round + rank + 10 * k);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    received("persistent", into, round + other + 10 * k, model);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  fill(from, round + rank);
  /* Send a message to this rank itself that is received as packed bytes (MPI_PACKED), and compare
   * the bytes. */
  prepared(into);
  n = flat(from, sent, gaps);
  MPI_Sendrecv(MPI_BOTTOM, 1, s, rank, 4, flatly, n, MPI_PACKED, rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check("to bytes", flatly, sent, n);

  /* Broadcast objects from rank `round % 2` to the other rank, first by a blocking and then by a
   * nonblocking call. */
  prepared(into);
  b = round % 2 == rank ? s : r;
  MPI_Bcast(MPI_BOTTOM, 1, b, round % 2, MPI_COMM_WORLD);
  if (b == r) received("bcast", into, round + other, model);
  MPI_Ibcast(MPI_BOTTOM, 1, b, round % 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  if (b == r) received("ibcast", into, round + other, model);
  /* In the following collective calls, data moves only between different ranks: the counts of what
   * a rank sends to itself are 0. */
  {
    int counts[2] = {0, 0}, places[2] = {0, 0};
    MPI_Datatype from_types[2] = {s, s}, into_types[2] = {r, r};
    counts[other] = 1;
    prepared(into);
    MPI_Alltoallw(MPI_BOTTOM, counts, places, from_types, MPI_BOTTOM, counts, places, into_types, MPI_COMM_WORLD);
    received("alltoallw", into, round + other, model);
    prepared(into);
    MPI_Alltoallv(MPI_BOTTOM, counts, places, s, MPI_BOTTOM, counts, places, r, MPI_COMM_WORLD);
    received("alltoallv", into, round + other, model);
    prepared(into);
    MPI_Gatherv(MPI_BOTTOM, rank == 1, s, MPI_BOTTOM, rank == 0 ? (int[]){zero, one} : NULL, places, r, 0, MPI_COMM_WORLD);
    if (rank == 0) received("gatherv", into, round + 1, model);
    prepared(into);
    MPI_Scatterv(MPI_BOTTOM, rank == 1 ? (int[]){one, zero} : NULL, places, s, MPI_BOTTOM, rank == 0, r, 1, MPI_COMM_WORLD);
    if (rank == 0) received("scatterv", into, round + 1, model);
  }
  MPI_Type_free(&s);
  MPI_Type_free(&r);
}

/* Puts objects into the window of the other rank, with MPI_BOTTOM and a type of absolute addresses
 * as the origin. Checks the bytes that the other rank has put into the window of this rank. */
static void puts_(int round, Members *from) {
  MPI_Datatype s = at(from, 1);
  MPI_Win win;
  char *memory;
  int n, other = 1 - rank;
  MPI_Win_allocate(MAX, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memset(memory, 0, MAX);
  fill(from, round + rank);
  n = flat(from, sent, gaps);
  MPI_Win_fence(0, win);
  /* The type at the target has no gaps, and has the same signature as the type `s` at the
   * origin. */
  MPI_Datatype dense, signature[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, chars;
  int lengths[4] = {1, 3, 5, PIECES * RUNS * 12};
  MPI_Aint places[4] = {0, 4, 28, 48};
  MPI_Datatype types[4] = {signature[0], signature[1], signature[2], MPI_CHAR};
  MPI_Type_create_struct(4, lengths, places, types, &dense);
  MPI_Type_commit(&dense);
  chars = dense;
  MPI_Put(MPI_BOTTOM, 1, s, other, 0, 1, chars, win);
  MPI_Win_fence(0, win);
  fill(from, round + other);
  flat(from, sent, gaps);
  check("put", memory, sent, n);
  MPI_Type_free(&dense);
  MPI_Type_free(&s);
  MPI_Win_free(&win);
}

static void said(const char *what, int code) {
  int class = 0;
  MPI_Error_class(code, &class);
  if (rank == 0) printf("%s: class %d\n", what, class), fflush(stdout);
}

/* Makes right and wrong calls with a type of absolute addresses and prints the error class of each.
 * The classes must be those of the MPI library without the preload library. */
static void errors(Members *from) {
  MPI_Datatype t;
  int place;
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  t = at(from, 0);
  place = 0;
  said("pack, not committed", MPI_Pack(MPI_BOTTOM, 1, t, packed, MAX, &place, comm));
  said("send, not committed", MPI_Send(MPI_BOTTOM, 1, t, MPI_PROC_NULL, 0, comm));
  MPI_Type_commit(&t);
  place = 0;
  said("pack", MPI_Pack(MPI_BOTTOM, 1, t, packed, MAX, &place, comm));
  place = 0;
  said("pack, no room", MPI_Pack(MPI_BOTTOM, 1, t, packed, 5, &place, comm));
  MPI_Type_free(&t);
  MPI_Comm_free(&comm);
}

/* Makes 20 calls, of which the last is wrong in the way that `kind` names. The MPI library refuses
 * the wrong call, or the call ends the process. Which of the two happens, and how, depends on the
 * MPI library. */
static int fatal(const char *kind) {
  int i, place, code = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (i = 0; i < 20; i++) {
    MPI_Datatype t;
    Members *m = members();
    char other[MAX], *buffer = i == 19 ? NULL : other;
    if (!strcmp(kind, "unmapped")) {
      t = at(m, 1);
      if (i == 19) munmap((void *)((long)m->pieces[0] / page * page), page);
      code = MPI_Sendrecv(MPI_BOTTOM, 1, t, rank, 0, packed, MAX, MPI_PACKED, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Type_vector(500, 1, 2, MPI_INT, &t);
      MPI_Type_commit(&t);
      memset(other, 0, MAX), place = 0;
      if (i == 19 && !strncmp(kind, "freed", 5)) {
        MPI_Datatype freed = t;
        MPI_Type_free(&t);
        t = freed;
        buffer = other;
      }
      if (!strcmp(kind, "freed")) code = MPI_Sendrecv(other, 1, t, rank, 0, packed, MAX, MPI_PACKED, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      else if (!strcmp(kind, "pack")) code = MPI_Pack(buffer, 1, t, packed, MAX, &place, MPI_COMM_WORLD);
      else if (!strcmp(kind, "send")) code = MPI_Sendrecv(buffer, 1, t, rank, 0, packed, MAX, MPI_PACKED, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      else code = MPI_Sendrecv(packed, 2000, MPI_PACKED, rank, 0, buffer, 1, t, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (i < 19) MPI_Type_free(&t);
  }
  said(kind, code);
  _exit(0);
}

/* Repeats `n` times: allocates two sets of objects, one to send and one to receive into, and
 * exchanges them 20 times with the other rank. A set consists of objects at separate places in
 * memory, which one datatype of absolute addresses covers. The memory of earlier objects is not
 * freed, so that no object has the address of an earlier one. */
static void fresh(int n) {
  Members *model = members();
  int i, k, other = 1 - rank;
  for (i = 0; i < n; i++) {
    Members *from = members(), *into = members();
    MPI_Datatype s = at(from, 1), r = at(into, 1);
    for (k = 0; k < 20; k++) {
      fill(from, i + k + rank);
      prepared(into);
      MPI_Sendrecv(MPI_BOTTOM, 1, s, other, 1, MPI_BOTTOM, 1, r, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      received("fresh", into, i + k + other, model);
    }
    MPI_Type_free(&s);
    MPI_Type_free(&r);
    /* Reserve address space and use the allocator, so that the distances between objects differ
     * from set to set. */
    mmap(NULL, (size_t)page * (17 + 3 * i % 29), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    free(malloc(100 * i));
  }
}

int main(int argc, char **argv) {
  int i, rounds = argc > 1 ? atoi(argv[1]) : 40;
  Members *sets[6];
  page = sysconf(_SC_PAGESIZE);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 2 && !strcmp(argv[1], "fresh")) {
    fresh(atoi(argv[2]));
    printf("rank %d: sum %lx, wrong %d\n", rank, sum, wrong);
    MPI_Finalize();
    return 0;
  }
  if (argc > 1 && atoi(argv[1]) == 0) return fatal(argv[1]);
  for (i = 0; i < 6; i++) sets[i] = members();
  for (i = 0; i < rounds; i++) exchanges(i, sets[i % 3], sets[3 + i % 2], sets[5]);
  for (i = 0; i < 3; i++) puts_(i, sets[i]);
  errors(sets[0]);
  for (i = 0; i < size; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (i == rank) printf("rank %d: sum %lx, wrong %d\n", rank, sum, wrong), fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
