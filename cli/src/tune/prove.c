/* Tries what happens under an MPI library if messages are converted. MPI_ names call the preload
 * library, which converts every message of a type with gaps (DDTC_POLICY=all). PMPI_ names call the
 * MPI library as a rank without ddtc does. So each message is converted by no rank, by its sender,
 * by its receiver or by both.
 *
 * For each message, the program chooses who converts, the type, the layout on each side, the
 * length, whether the receive is posted before the send, and the calls that start and complete the
 * message. Both ranks choose from the same fixed seeds, so they agree without communication, and
 * the receiver knows what each byte must be, also in gaps and around the buffer.
 *
 * Rank 0 prints lines that begin with "ddtc-prove ": the key of the proof, the number of nodes and
 * ranks, and for each step "begun STEP" and then "proven STEP". A rank that finds a fault prints
 * "refused STEP WHY" and ends the program, because results after a wrong message say nothing. Every
 * wait has a deadline.
 *
 * Usage: prove SECONDS STEP.. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, BLANK = 0x5a, AROUND = 64, LONGEST = 4 << 20, REGION = 4 * LONGEST };
enum { BLOCKING, NONBLOCKING, PERSISTENT, COLLECTIVES, STEPS };
static const char *const steps[STEPS] = {"blocking", "nonblocking", "persistent", "collectives"};
enum { NEITHER, SENDER, RECEIVER, BOTH, MODES };
static const char *const modes[MODES] = {"nobody", "the sender", "the receiver", "everybody"};

static int step, rank, ranks;
static unsigned seconds;
static long (*conversions)(int of);

static void say(const char *form, ...) {
  if (rank) return;
  va_list list;
  va_start(list, form);
  printf("ddtc-prove ");
  vprintf(form, list);
  printf("\n");
  fflush(stdout);
  va_end(list);
}

/* Refuses the step and ends the job. Any rank may call this function. */
static void refuse(const char *form, ...) {
  char why[200];
  va_list list;
  va_start(list, form);
  vsnprintf(why, sizeof why, form, list);
  va_end(list);
  printf("ddtc-prove refused %s %s\n", steps[step], why);
  fflush(stdout);
  /* Give the launcher time to forward the line. */
  usleep(200000);
  _exit(3);
}

static char late[100];
static void too_late(int signal) {
  (void)signal;
  if (write(1, late, strlen(late)) < 0) _exit(4);
  usleep(200000);
  _exit(3);
}

static uint64_t state;
static uint64_t next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state >> 11; }
static int below(int n) { return (int)(next() % (uint64_t)n); }

/* Kinds of units of which a message consists: an int, a structure of int, double and int, or a
 * complex number of 16 bytes. */
enum { INTS, PAIRS, WIDES, SIGNATURES };
static const int unit[SIGNATURES] = {4, 16, 16};
enum { DENSE, STRIDED, STRUCTURES, INDEXED, LAYOUTS };

static const int sizes[] = {64, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1048576, 4194304};
enum { SIZES = 11, LENGTHS = 3 * SIZES };
static long units_of(int signature, int length) { return sizes[length / 3] / unit[signature] + length % 3 - 1; }

/* One side of a message: `count` elements of `type`, which together consist of `units` units. */
struct side {
  int signature, layout, count;
  long units;
  MPI_Datatype type;
};

/* Returns the offset in a buffer of byte `at` of unit `i`. */
static long place(const struct side *s, long i, int at) {
  int u = unit[s->signature];
  if (s->signature == PAIRS && s->layout != DENSE) at += at < 4 ? 0 : 4; /* The double is aligned. */
  if (s->layout == DENSE) return i * u + at;
  u = s->signature == PAIRS ? 24 : u;
  if (s->layout == STRIDED) return i * 2 * u + at;
  if (s->layout == STRUCTURES) return i * (s->signature == PAIRS ? 32 : 2 * u) + at;
  return (i + i / 5 + (i + 2) / 3) * u + at;
}

/* Each type is created at its first use and kept, as programs do, which commit their types once. */
static MPI_Datatype made[SIGNATURES][LAYOUTS][LENGTHS];

static struct side side(int signature, int layout, int length) {
  struct side s = {signature, layout, 1, units_of(signature, length), MPI_DATATYPE_NULL};
  MPI_Datatype b = signature == INTS ? MPI_INT : MPI_C_DOUBLE_COMPLEX, t;
  int lengths[3] = {1, 1, 1}, n = (int)s.units;
  /* In the layouts STRUCTURES and DENSE, a unit is an element, so a message has several elements.
   * In the other layouts the whole message is one element. */
  if (layout == STRUCTURES || layout == DENSE) s.count = n, length = 0;
  if (layout == DENSE && signature != PAIRS) { s.type = b; return s; }
  MPI_Datatype *keep = &made[signature][layout][length];
  if (!*keep) {
    if (signature == PAIRS) {
      MPI_Aint places[3] = {0, layout == DENSE ? 4 : 8, layout == DENSE ? 12 : 16};
      MPI_Type_create_struct(3, lengths, places, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE, MPI_INT}, &b);
    }
    if (layout == STRUCTURES || layout == DENSE) MPI_Type_create_resized(b, 0, place(&s, 1, 0), keep);
    else if (layout == STRIDED) MPI_Type_create_hvector(n, 1, place(&s, 1, 0), b, keep);
    else {
      MPI_Aint *at = malloc(n * sizeof *at);
      for (long i = 0; i < n; i++) at[i] = place(&s, i, 0);
      MPI_Type_create_hindexed_block(n, 1, at, b, &t);
      free(at);
      *keep = t;
    }
    MPI_Type_commit(keep);
  }
  s.type = *keep;
  return s;
}

static long span(const struct side *s) { return place(s, s->units - 1, unit[s->signature] - 1) + 1; }

/* Regions of memory for buffers. After the end of each region lies an inaccessible page. */
static char *regions[4];
static char *region(int k) {
  if (!regions[k]) {
    regions[k] = mmap(NULL, REGION + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (regions[k] == MAP_FAILED || mprotect(regions[k] + REGION, PAGE, PROT_NONE)) abort();
  }
  return regions[k];
}
static char *buffer(int k, const struct side *s) { return region(k) + REGION - (span(s) + 15) / 16 * 16; }

static char value(int seed, long i, int at) {
  uint64_t x = ((uint64_t)seed << 40 ^ (uint64_t)(i * 16 + at) ^ 7) * 0x9e3779b97f4a7c15u;
  return (char)(x >> 33);
}
static char *blank(int k, const struct side *s) {
  char *b = buffer(k, s);
  memset(b - AROUND, BLANK, region(k) + REGION - (b - AROUND));
  return b;
}
static void put(const struct side *s, char *to, int seed, long units) {
  for (long i = 0; i < units; i++)
    for (int at = 0; at < unit[s->signature]; at++) to[place(s, i, at)] = value(seed, i, at);
}
static char *filled(int k, const struct side *s, int seed) {
  char *b = blank(k, s);
  put(s, b, seed, s->units);
  return b;
}

/* Refuses the step if region `k` does not hold the first `units` units of a message and blank bytes
 * everywhere else. If the message did not fit into the receive, any part of it may have arrived;
 * then only the bytes outside of the type must be blank. */
static void look(int k, const struct side *s, int seed, long units, int fits, const char *what) {
  static char *wanted, *free_places;
  if (!wanted) wanted = malloc(REGION + AROUND), free_places = malloc(REGION + AROUND);
  char *b = buffer(k, s);
  long length = region(k) + REGION - (b - AROUND);
  memset(wanted, BLANK, length);
  if (fits) {
    put(s, wanted + AROUND, seed, units);
    if (memcmp(wanted, b - AROUND, length)) refuse("wrong bytes: %s", what);
    return;
  }
  memset(free_places, 0, length);
  for (long i = 0; i < s->units; i++)
    for (int at = 0; at < unit[s->signature]; at++) free_places[AROUND + place(s, i, at)] = 1;
  for (long i = 0; i < length; i++)
    if (!free_places[i] && b[i - AROUND] != BLANK) refuse("bytes outside of the receive: %s", what);
}

struct message {
  int mode, from, to, early, way, completion, seed, starts, fits;
  struct side sent, received;
  char what[140];
};

/* For each mode: number of messages, number of messages that this rank should have converted, and
 * number of those that it did convert. */
static long messages[MODES], asked[MODES], converted[MODES];

static int class_of(int code) {
  int class = code;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

/* Refuses the step if a receive has returned a wrong error code, status or data. */
static void judge(const struct message *m, int code, const MPI_Status *status) {
  if (!m->fits) {
    int class = class_of(code);
    if (class == MPI_ERR_IN_STATUS) class = class_of(status->MPI_ERROR);
    if (class != MPI_ERR_TRUNCATE) refuse("a message that is too long gives class %d: %s", class, m->what);
  } else {
    if (code != MPI_SUCCESS) refuse("a receive gives class %d: %s", class_of(code), m->what);
    int elements, count, each = m->received.signature == PAIRS ? 3 : 1;
    MPI_Get_elements(status, m->received.type, &elements);
    MPI_Get_count(status, m->received.type, &count);
    long units = m->sent.units;
    int whole = m->received.count == 1 ? (units == m->received.units ? 1 : MPI_UNDEFINED) : (int)units;
    if (status->MPI_SOURCE != m->from || status->MPI_TAG != 7 || elements != units * each || count != whole)
      refuse("a wrong status: %s", m->what);
  }
  look(1, &m->received, m->seed, m->sent.units, m->fits, m->what);
}

/* Waits for a request in one of several ways. */
static int complete(int how, MPI_Request *request, MPI_Status *status) {
  MPI_Request two[2] = {MPI_REQUEST_NULL, *request};
  MPI_Status both[2];
  int done = 0, at, code = MPI_SUCCESS, n;
  switch (how) {
  case 0: return MPI_Wait(request, status);
  case 1: while (!done && code == MPI_SUCCESS) code = MPI_Test(request, &done, status); return code;
  case 2: code = MPI_Waitall(2, two, both); *status = both[1]; break;
  case 3: code = MPI_Waitany(2, two, &at, status); break;
  case 4: code = MPI_Waitsome(2, two, &n, &at, both); *status = both[0]; break;
  case 5: while (!done && code == MPI_SUCCESS) code = MPI_Testall(2, two, &done, both); *status = both[1]; break;
  default: while (!done && code == MPI_SUCCESS) code = MPI_Testany(2, two, &at, &done, status);
  }
  *request = two[1];
  return code;
}
enum { COMPLETIONS = 7 };

#define CALL(ours, name, ...) ((ours) ? MPI_##name(__VA_ARGS__) : PMPI_##name(__VA_ARGS__))

static void go(const struct message *m, int first) {
  char byte = 0;
  if (rank == first) PMPI_Send(&byte, 1, MPI_CHAR, rank == m->from ? m->to : m->from, 9, MPI_COMM_WORLD);
  else PMPI_Recv(&byte, 1, MPI_CHAR, first, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void good(const struct message *m, int code) {
  if (code != MPI_SUCCESS) refuse("a send gives class %d: %s", class_of(code), m->what);
}

/* Sends a message. If the receive is to be posted before the send, the receiver sends a token as
 * soon as the receive is posted. For a blocking receive it sends the token just before the call,
 * and the sender then waits for a moment. */
static void send(const struct message *m) {
  int ours = m->mode == SENDER || m->mode == BOTH, n = m->sent.count, to = m->to;
  MPI_Datatype t = m->sent.type;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  char *b = filled(0, &m->sent, m->seed);
  if (step == PERSISTENT) good(m, m->way % 2 ? CALL(ours, Ssend_init, b, n, t, to, 7, MPI_COMM_WORLD, &request)
                                             : CALL(ours, Send_init, b, n, t, to, 7, MPI_COMM_WORLD, &request));
  for (int start = 0; start < m->starts; start++) {
    if (start) put(&m->sent, b, m->seed + start, m->sent.units);
    if (m->early) go(m, m->to);
    if (m->early && step == BLOCKING) usleep(100);
    if (step == BLOCKING) {
      switch (m->way) {
      case 1: good(m, CALL(ours, Ssend, b, n, t, to, 7, MPI_COMM_WORLD)); break;
      case 2: good(m, CALL(ours, Bsend, b, n, t, to, 7, MPI_COMM_WORLD)); break;
      case 3: good(m, CALL(ours, Sendrecv, b, n, t, to, 7, NULL, 0, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &status)); break;
      default: good(m, CALL(ours, Send, b, n, t, to, 7, MPI_COMM_WORLD));
      }
    } else {
      if (step == NONBLOCKING) good(m, m->way == 1 ? CALL(ours, Issend, b, n, t, to, 7, MPI_COMM_WORLD, &request)
                                     : m->way == 2 && m->early ? CALL(ours, Irsend, b, n, t, to, 7, MPI_COMM_WORLD, &request)
                                                               : CALL(ours, Isend, b, n, t, to, 7, MPI_COMM_WORLD, &request));
      else good(m, MPI_Start(&request));
      if (!m->early) go(m, m->from);
      good(m, complete(m->completion, &request, &status));
    }
  }
  if (step == PERSISTENT) MPI_Request_free(&request);
  look(0, &m->sent, m->seed + m->starts - 1, m->sent.units, 1, "a send changes its buffer");
}

static void receive(struct message *m) {
  int ours = m->mode == RECEIVER || m->mode == BOTH, n = m->received.count, from = m->from, seed = m->seed;
  MPI_Datatype t = m->received.type;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  MPI_Message matched;
  char *b = blank(1, &m->received);
  if (step == PERSISTENT) good(m, CALL(ours, Recv_init, b, n, t, from, 7, MPI_COMM_WORLD, &request));
  for (int start = 0; start < m->starts; start++) {
    int code = MPI_SUCCESS;
    memset(&status, 0, sizeof status);
    blank(1, &m->received);
    if (step != BLOCKING && !m->early) {
      go(m, m->from);
      usleep(100);
    }
    if (step == BLOCKING) {
      if (m->early) go(m, m->to);
      else usleep(100);
      switch (m->completion % 3) {
      case 1:
        good(m, MPI_Mprobe(from, 7, MPI_COMM_WORLD, &matched, &status));
        code = CALL(ours, Mrecv, b, n, t, &matched, &status);
        break;
      case 2: code = CALL(ours, Sendrecv, NULL, 0, MPI_INT, MPI_PROC_NULL, 7, b, n, t, from, 7, MPI_COMM_WORLD, &status); break;
      default: code = CALL(ours, Recv, b, n, t, from, 7, MPI_COMM_WORLD, &status);
      }
    } else {
      if (step == NONBLOCKING && m->way == 3 && !m->early) {
        good(m, MPI_Mprobe(from, 7, MPI_COMM_WORLD, &matched, &status));
        good(m, CALL(ours, Imrecv, b, n, t, &matched, &request));
      } else if (step == NONBLOCKING) good(m, CALL(ours, Irecv, b, n, t, from, 7, MPI_COMM_WORLD, &request));
      else good(m, MPI_Start(&request));
      if (m->early) go(m, m->to);
      code = complete(m->completion, &request, &status);
    }
    m->seed = seed + start;
    judge(m, code, &status);
  }
  if (step == PERSISTENT && request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

/* Exchanges a message in each direction by one call. The receive buffer is either the send buffer
 * or a separate buffer. */
static void both_ways(const struct message *m) {
  int sends = rank == m->from, ours = m->mode == BOTH || m->mode == (sends ? SENDER : RECEIVER), partner = sends ? m->to : m->from;
  const struct side *s = sends ? &m->sent : &m->received;
  char *b = filled(0, s, m->seed + !sends), *other = blank(1, s);
  MPI_Status status;
  int replaces = m->way % 2, n = s->count, mine = m->seed + sends, code, elements;
  code = replaces ? CALL(ours, Sendrecv_replace, b, n, s->type, partner, 7, partner, 7, MPI_COMM_WORLD, &status)
                  : CALL(ours, Sendrecv, b, n, s->type, partner, 7, other, n, s->type, partner, 7, MPI_COMM_WORLD, &status);
  if (code != MPI_SUCCESS) refuse("an exchange gives class %d: %s", class_of(code), m->what);
  MPI_Get_elements(&status, s->type, &elements);
  if (status.MPI_SOURCE != partner || status.MPI_TAG != 7 || elements != s->units * (s->signature == PAIRS ? 3 : 1))
    refuse("a wrong status: %s", m->what);
  look(0, s, replaces ? mine : m->seed + !sends, s->units, 1, m->what);
  if (!replaces) look(1, s, mine, s->units, 1, m->what);
}

/* Sends one message between this rank and its partner, or one message in each direction. */
static void exchange(int round) {
  struct message m;
  memset(&m, 0, sizeof m);
  int partner = rank ^ 1, lower = rank & ~1, signature = below(SIGNATURES), turn = below(2);
  m.mode = below(MODES);
  m.from = turn ? lower : lower + 1;
  m.to = turn ? lower + 1 : lower;
  m.early = below(2), m.way = below(4), m.completion = below(COMPLETIONS), m.seed = round * 4;
  m.starts = step == PERSISTENT ? 2 : 1;
  /* Longer messages are rarer, because they take longer. */
  int length = below(8) ? below(3 * 7) : below(8) ? below(3 * 9) : below(LENGTHS), other = length;
  int layouts[2] = {below(LAYOUTS), below(LAYOUTS)}, relation = below(6), ours[2];
  ours[0] = m.mode == SENDER || m.mode == BOTH;
  ours[1] = m.mode == RECEIVER || m.mode == BOTH;
  for (int k = 0; k < 2; k++)
    if (ours[k] && layouts[k] == DENSE) layouts[k] = 1 + below(LAYOUTS - 1);
  int exchanges = step == BLOCKING && relation == 2;
  if (relation == 0 && length + 1 < LENGTHS) other = length + 1 + below(LENGTHS - 1 - length) % 4;
  if (relation == 1 && length > 0) other = length - 1 - below(length) % 4;
  m.sent = side(signature, layouts[0], length);
  m.received = side(signature, layouts[1], other);
  m.fits = m.received.units >= m.sent.units;
  /* Do not start a request again after it has failed. Complete requests that will fail only by
   * MPI_Wait, MPI_Test and MPI_Waitall: the unmodified MPICH 4.2.3 does not report the error of a
   * persistent request in MPI_Waitsome. */
  if (!m.fits) m.starts = 1, m.completion %= 3;
  /* A buffered send fails if the message does not fit into the attached buffer, so long messages
   * are sent by other calls. */
  if (step == BLOCKING && m.way == 2 && sizes[length / 3] > 65536) m.way = 0;
  snprintf(m.what, sizeof m.what, "%s%s converts, %ld to %ld units of %d B, layouts %d and %d, way %d, completion %d, %s", exchanges ? "both ways, " : "", modes[m.mode],
           m.sent.units, m.received.units, unit[signature], layouts[0], layouts[1], m.way, m.completion,
           m.early ? "posted early" : "posted late");
  if (partner >= ranks) return;
  alarm(seconds);
  int sends = rank == m.from, counted = !sends && !exchanges;
  long before = conversions(counted);
  if (exchanges) both_ways(&m);
  else if (sends) send(&m);
  else receive(&m);
  messages[m.mode]++;
  long now = conversions(counted) - before;
  /* A converted receive does not always unpack a message that did not fit, so such a receive is not
   * counted. */
  if (ours[!sends] && (sends || m.fits)) asked[m.mode]++, converted[m.mode] += now > 0;
  if (!ours[!sends] && now > 0) refuse("a message was converted that was not to be: %s", m.what);
}

enum { BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, GATHERV, SCATTERV, ALLTOALLV, ALLTOALLW, CALLS };
static const char *const calls[CALLS] = {"Bcast",   "Gather",   "Scatter",   "Allgather", "Alltoall",
                                         "Gatherv", "Scatterv", "Alltoallv", "Alltoallw"};

/* A buffer of `n` blocks in a region. Each block has the layout of `side`, and begins `step` bytes
 * after the block before it. `seeds` has the seed of each block's contents, or -1 for a block that
 * is blank. */
struct blocks {
  struct side side;
  int region, n;
  long step;
  int *seeds;
  char *at;
};

static long length_of(const struct blocks *b) { return region(b->region) + REGION - (b->at - AROUND); }

static void image(const struct blocks *b, char *to) {
  memset(to, BLANK, length_of(b));
  for (int i = 0; i < b->n; i++)
    if (b->seeds[i] >= 0) put(&b->side, to + AROUND + i * b->step, b->seeds[i], b->side.units);
}

static struct blocks blocks(int k, struct side s, int n) {
  struct blocks b = {s, k, n, 0, malloc(n * sizeof(int)), NULL};
  MPI_Aint lb, extent;
  MPI_Type_get_extent(s.type, &lb, &extent);
  b.step = s.count * extent;
  b.at = region(k) + REGION - ((n - 1) * b.step + span(&s) + 15) / 16 * 16;
  for (int i = 0; i < n; i++) b.seeds[i] = -1;
  return b;
}

static void look_at(const struct blocks *b, const char *what) {
  static char *wanted;
  if (!wanted) wanted = malloc(REGION + AROUND);
  image(b, wanted);
  if (memcmp(wanted, b->at - AROUND, length_of(b))) refuse("wrong bytes: %s", what);
}

#define START(name, i_name, ...) \
  code = now ? CALL(ours, name, __VA_ARGS__, MPI_COMM_WORLD) : CALL(ours, i_name, __VA_ARGS__, MPI_COMM_WORLD, &request)

/* Makes one collective call on all ranks. The modes are: no rank converts, the even ranks convert,
 * the odd ranks convert, all ranks convert. */
static void collective(int round) {
  static const char *const who[MODES] = {"no rank", "even ranks", "odd ranks", "all ranks"};
  int call = below(CALLS), now = below(2), in_place = !below(3), root = below(ranks), mode = below(MODES);
  int signature = below(SIGNATURES), length = below(4) ? below(3 * 5) : below(3 * 7), code = MPI_SUCCESS;
  struct side sent = side(signature, 1 + below(LAYOUTS - 1), length), received = side(signature, 1 + below(LAYOUTS - 1), length);
  int ours = mode == BOTH || (mode == SENDER && rank % 2 == 0) || (mode == RECEIVER && rank % 2), is_root = rank == root;
  int base = round * ranks * ranks, all = call == ALLTOALL || call == ALLTOALLV || call == ALLTOALLW;
  int scatters = call == SCATTER || call == SCATTERV, gathers = call == GATHER || call == GATHERV;
  struct blocks s = blocks(2, sent, all || scatters ? ranks : 1), r = blocks(3, received, all || gathers || call == ALLGATHER ? ranks : 1);
  MPI_Request request = MPI_REQUEST_NULL;
  char what[160];
  snprintf(what, sizeof what, "%s%s, %ld units of %d B, layouts %d and %d, %s convert%s", now ? "MPI_" : "MPI_I", calls[call], sent.units,
           unit[signature], sent.layout, received.layout, who[mode], in_place ? ", in place" : "");
  if (call == BCAST) in_place = 0;
  if ((scatters || gathers) && !is_root) in_place = 0;
  /* Fill the send buffer and, for a call in place, the receive buffer. */
  int sends = !in_place && (call != BCAST || is_root) && (!scatters || is_root);
  int receives = (call != BCAST || !is_root) && (!gathers || is_root) && !(scatters && in_place);
  for (int i = 0; i < s.n; i++) s.seeds[i] = call == BCAST ? base : scatters ? base + i : base + rank * ranks + (all ? i : 0);
  if (scatters && in_place) sends = 1;
  image(&s, s.at - AROUND);
  if (in_place && receives)
    for (int i = 0; i < r.n; i++) r.seeds[i] = all ? base + rank * ranks + i : i == rank ? base + rank * ranks : -1;
  image(&r, r.at - AROUND);
  /* From here on, the seeds of the receive buffer say what it must contain after the call. */
  if (receives) for (int i = 0; i < r.n; i++) r.seeds[i] = call == BCAST ? base : scatters ? base + rank : base + i * ranks + (all ? rank : 0);
  int *n = malloc(4 * ranks * sizeof *n), *m = n + ranks, *at = m + ranks, *to = at + ranks;
  MPI_Datatype *types = malloc(2 * ranks * sizeof *types);
  for (int i = 0; i < ranks; i++) {
    n[i] = sent.count, m[i] = received.count, types[i] = sent.type, types[ranks + i] = received.type;
    at[i] = i * (int)(call == ALLTOALLW ? s.step : sent.count), to[i] = i * (int)(call == ALLTOALLW ? r.step : received.count);
  }
  const void *in = in_place && !scatters ? MPI_IN_PLACE : s.at;
  void *out = in_place && scatters ? MPI_IN_PLACE : r.at;
  alarm(seconds);
  long before = conversions(2);
  switch (call) {
  case BCAST: START(Bcast, Ibcast, is_root ? s.at : r.at, is_root ? sent.count : received.count, is_root ? sent.type : received.type, root); break;
  case GATHER: START(Gather, Igather, in, sent.count, sent.type, out, received.count, received.type, root); break;
  case SCATTER: START(Scatter, Iscatter, in, sent.count, sent.type, out, received.count, received.type, root); break;
  case ALLGATHER: START(Allgather, Iallgather, in, sent.count, sent.type, out, received.count, received.type); break;
  case ALLTOALL: START(Alltoall, Ialltoall, in, sent.count, sent.type, out, received.count, received.type); break;
  case GATHERV: START(Gatherv, Igatherv, in, sent.count, sent.type, out, m, to, received.type, root); break;
  case SCATTERV: START(Scatterv, Iscatterv, in, n, at, sent.type, out, received.count, received.type, root); break;
  case ALLTOALLV: START(Alltoallv, Ialltoallv, in, n, at, sent.type, out, m, to, received.type); break;
  default: START(Alltoallw, Ialltoallw, in, n, at, types, out, m, to, types + ranks);
  }
  if (code == MPI_SUCCESS && !now) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) refuse("class %d: %s", class_of(code), what);
  look_at(&s, what);
  look_at(&r, what);
  long made = conversions(2) - before;
  messages[mode]++;
  if (ours && (sends || receives)) asked[mode]++, converted[mode] += made > 0;
  if (!ours && made > 0) refuse("a call was converted that was not to be: %s", what);
  free(n), free(types), free(s.seeds), free(r.seeds);
}

static void try(int rounds) {
  for (int round = 0; round < rounds; round++) {
    if (step == COLLECTIVES) collective(round);
    else exchange(round);
    /* Some pairs of ranks are faster than others. A barrier after every 32 rounds keeps the fast
     * pairs from waiting so long for the slow ones that the deadline passes. */
    alarm(seconds);
    if (round % 32 == 31) PMPI_Barrier(MPI_COMM_WORLD);
  }
  long sums[3 * MODES], mine[3 * MODES];
  for (int mode = 0; mode < MODES; mode++)
    mine[3 * mode] = messages[mode], mine[3 * mode + 1] = asked[mode], mine[3 * mode + 2] = converted[mode];
  alarm(seconds);
  PMPI_Allreduce(mine, sums, 3 * MODES, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (int mode = 0; mode < MODES; mode++) {
    if (!sums[3 * mode]) refuse("no message in which %s converts", modes[mode]);
    if (mode != NEITHER && (!sums[3 * mode + 1] || sums[3 * mode + 2] * 10 < sums[3 * mode + 1] * 9))
      refuse("only %ld of %ld messages were converted where %s converts", sums[3 * mode + 2], sums[3 * mode + 1], modes[mode]);
  }
}

/* Returns the number of different texts among the ranks. Each rank passes a text, in an array of
 * `room` bytes. */
static int different(const char *text, int room) {
  char *all = calloc(ranks, room);
  int n = 0;
  PMPI_Allgather(text, room, MPI_CHAR, all, room, MPI_CHAR, MPI_COMM_WORLD);
  for (int i = 0; i < ranks; i++) {
    int k = 0;
    while (strcmp(all + (long)k * room, all + (long)i * room)) k++;
    n += k == i;
  }
  free(all);
  return n;
}

/* Returns the number of nodes. Two ranks are on the same node if both their host names and the boot
 * ids of their machines are equal. Different machines may have the same name, and containers on one
 * machine have the same boot id. */
static int nodes(void) {
  char text[512] = "";
  gethostname(text, 255);
  FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (boot) {
    if (!fgets(text + strlen(text), 200, boot)) text[255] = 0;
    fclose(boot);
  }
  return different(text, sizeof text);
}

int main(int argc, char **argv) {
  static char key[65536];
  seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 20;
  signal(SIGALRM, too_late);
  alarm(60 + seconds);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int (*keys)(char *, int) = (int (*)(char *, int))dlsym(RTLD_DEFAULT, "ddtc_proof_key");
  conversions = (long (*)(int))dlsym(RTLD_DEFAULT, "ddtc_conversions");
  if (!keys || !conversions || ranks < 2) {
    fprintf(stderr, "prove: %s\n", ranks < 2 ? "needs at least 2 ranks" : "the preload library is not loaded");
    return 2;
  }
  /* Communicate once before asking for the key, because the MPI library may load its network
   * libraries only at the first message. */
  int token = 0;
  PMPI_Allreduce(MPI_IN_PLACE, &token, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (!keys(key, sizeof key)) { fprintf(stderr, "prove: no MPI library with a known ABI\n"); return 2; }
  if (different(key, sizeof key) != 1) { fprintf(stderr, "prove: the ranks use different MPI libraries or transports\n"); return 2; }
  for (char *line = strtok(key, "\n"); line; line = strtok(NULL, "\n")) say("key %s", line);
  say("nodes %d", nodes());
  say("ranks %d", ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Buffer_attach(malloc(1 << 20), 1 << 20);
  for (int i = 2; i < argc; i++)
    for (step = 0; step < STEPS; step++) {
      if (strcmp(argv[i], steps[step])) continue;
      snprintf(late, sizeof late, "ddtc-prove refused %s no answer for %u seconds\n", steps[step], seconds);
      say("begun %s", steps[step]);
      state = 88172645463325252u + (uint64_t)step;
      memset(messages, 0, sizeof messages), memset(asked, 0, sizeof asked), memset(converted, 0, sizeof converted);
      try(1000);
      alarm(0);
      say("proven %s", steps[step]);
    }
  say("done");
  late[0] = 0;
  alarm(seconds);
  MPI_Finalize();
  return 0;
}
