/* Tests whether MPI calls give right results under an MPI library if the preload library of ddtc
 * converts them, that is, if compiled code packs and unpacks their buffers. `ddtc tune` compiles
 * and launches this program under MPI libraries that the developers of ddtc have not tried.
 *
 * MPI_ names call the preload library, which converts every message of a type with gaps
 * (DDTC_POLICY=all). PMPI_ names call the unmodified MPI library. The sender and the receiver of a
 * message may use different names. So the message is converted by no rank, by its sender, by its
 * receiver or by both.
 *
 * For each message, the program chooses who converts, the type, the layouts at the sender and at
 * the receiver, the length, whether the receive is posted before the send, and the calls that start
 * and complete the message. Both ranks choose from the same fixed seeds, so they agree without
 * communication, and the receiver knows what each byte must be, also in gaps and around the buffer.
 * The first rounds try each length with each choice of who converts and whether the receive is
 * posted first. The other rounds are random.
 *
 * The tests are divided into steps: blocking, nonblocking and persistent messages, and collective
 * calls. Rank 0 prints lines that begin with "ddtc-prove ":
 *
 * - the key of the proof, which names the MPI library and the transport,
 * - the file of the MPI library,
 * - the number of nodes and ranks,
 * - 1 if the preload library may convert messages in every rank, else 0,
 * - the number of the ABI that the preload library has found, and constants of mpi.h (abi.h),
 * - for each step "begun STEP", and "proven STEP" if all results were right.
 *
 * If too few messages were converted to prove a step, rank 0 prints "unproven STEP WHY" instead. A
 * rank that finds a wrong result prints "refused STEP WHY". The program ends after either line.
 * After a wrong result, further results would say nothing. Every wait has a deadline.
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

#define WORLD MPI_COMM_WORLD
enum { PAGE = 4096, BLANK = 0x5a, AROUND = 64, LONGEST = 4 << 20, REGION = 4 * LONGEST, MAX_RANKS = 4096 };
enum { BLOCKING, NONBLOCKING, PERSISTENT, COLLECTIVES, STEPS };
static const char *const steps[STEPS] = {"blocking", "nonblocking", "persistent", "collectives"};
/* Who converts a message: bit 0 stands for its sender, bit 1 for its receiver. */
enum { NEITHER, SENDER, RECEIVER, BOTH, MODES };
static const char *const modes[MODES] = {"nobody", "the sender", "the receiver", "everybody"};

static int step, rank, ranks;
static unsigned seconds;
static long (*conversions)(int of);
/* Communicator for this program's own tokens, so that tests with MPI_ANY_SOURCE or MPI_ANY_TAG on
 * MPI_COMM_WORLD do not receive them. */
static MPI_Comm aside;
/* Intercommunicator between the even and the odd ranks, for collective calls. */
static MPI_Comm between;

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

/* Prints a line which says that a call of the current step (a kind of calls, such as blocking
 * messages) gave a wrong result, and ends the job. Any rank may call this function. */
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

/* Prints a line which says that the current step is not proven, and ends the job. All results were
 * right, but `asked` messages of kind `kind` should have been converted, and only `converted` of
 * them were. */
static void too_few(long asked, long converted, int kind, int mode) {
  say("unproven %s %ld of %ld messages of kind %d were converted where %s converts", steps[step], converted, asked, kind, modes[mode]);
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

#include "abi.h"

static uint64_t state;
static uint64_t next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state >> 11; }
static int below(int n) { return (int)(next() % (uint64_t)n); }

/* A message consists of equal units. A unit is an int, a structure of int, double and int, or a
 * complex number of 16 bytes. `unit` has the number of packed bytes of each. */
enum { INTS, PAIRS, WIDES, SIGNATURES };
static const int unit[SIGNATURES] = {4, 16, 16};
enum { DENSE, STRIDED, STRUCTURES, INDEXED, LAYOUTS };

static const int sizes[] = {64, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1048576, 4194304};
enum { SIZES = 11, LENGTHS = 3 * SIZES, FLIGHT = 12 };
static long units_of(int signature, int length) { return sizes[length / 3] / unit[signature] + length % 3 - 1; }

/* The data of a message at its sender or at its receiver: `count` elements of `type`, which
 * together consist of `units` units. A unit is, for example, an int. */
struct side {
  int signature, layout, count;
  long units;
  MPI_Datatype type;
};

/* Returns where a byte of a message lies in the buffer of the sender or receiver, as an offset in
 * bytes. The message consists of equal units, such as an int. The byte is number `at` of unit `i`;
 * bytes of padding inside the unit have no numbers. */
static long place(const struct side *s, long i, int at) {
  int u = unit[s->signature];
  if (s->signature == PAIRS && s->layout != DENSE) at += at < 4 ? 0 : 4; /* The double is aligned. */
  if (s->layout == DENSE) return i * u + at;
  u = s->signature == PAIRS ? 24 : u;
  if (s->layout == STRIDED) return i * 2 * u + at;
  if (s->layout == STRUCTURES) return i * (s->signature == PAIRS ? 32 : 2 * u) + at;
  return (i + i / 5 + (i + 2) / 3) * u + at;
}

/* Types that were created so far. Each type is created at its first use and then kept. In this way
 * the program resembles applications, which commit a type once and use it many times. */
static MPI_Datatype made[SIGNATURES][LAYOUTS][LENGTHS];

static struct side side(int signature, int layout, int length) {
  struct side s = {signature, layout, 1, units_of(signature, length), MPI_DATATYPE_NULL};
  MPI_Datatype b = signature == INTS ? MPI_INT : MPI_C_DOUBLE_COMPLEX, t;
  int lengths[3] = {1, 1, 1}, n = (int)s.units;
  /* In the layouts STRUCTURES and DENSE, each unit of the message is an element of its own, so a
   * message has several elements. In the other layouts the whole message is one element. */
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

/* Regions of memory, each for one buffer. An inaccessible page lies before each region and after
 * it. A buffer lies at the beginning or at the end of its region, so that an access beyond this end
 * of the region faults. */
static char *regions[4 + 2 * FLIGHT];
static char *region(int k) {
  if (!regions[k]) {
    char *all = mmap(NULL, REGION + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + PAGE, REGION, PROT_READ | PROT_WRITE)) abort();
    regions[k] = all + PAGE;
  }
  return regions[k];
}
/* Which buffers of the current round lie at the beginning of their regions: bit 0 stands for the
 * regions with even numbers, and bit 1 for those with odd numbers. */
static int fronts;
static int in_front(int k) { return fronts >> k % 2 & 1; }

/* Returns the address of a buffer of `bytes` bytes in region `k`. */
static char *placed(int k, long bytes) { return region(k) + (in_front(k) ? 0 : REGION - (bytes + 15) / 16 * 16); }
/* Return the first byte that is checked around such a buffer, and the number of these bytes. They
 * are the buffer, the bytes up to the inaccessible page next to it, and AROUND bytes on its other
 * side. */
static char *window(int k, long bytes) { return placed(k, bytes) - (in_front(k) ? 0 : AROUND); }
static long window_length(long bytes) { return (bytes + 15) / 16 * 16 + AROUND; }

static char *buffer(int k, const struct side *s) { return placed(k, span(s)); }

static char *blank(int k, const struct side *s) {
  memset(window(k, span(s)), BLANK, window_length(span(s)));
  return buffer(k, s);
}
static void put(const struct side *s, char *to, int seed, long units) {
  for (long i = 0; i < units; i++) {
    uint64_t bytes[2];
    for (int k = 0; k < 2; k++) {
      bytes[k] = ((uint64_t)seed << 40 ^ (uint64_t)(i * 2 + k) ^ 7) * 0x9e3779b97f4a7c15u;
      bytes[k] ^= bytes[k] >> 33;
    }
    char *at = to + place(s, i, 0); /* Except in DENSE, padding follows the first int of PAIRS. */
    if (s->signature == PAIRS && s->layout != DENSE) memcpy(at, bytes, 4), memcpy(at + 8, (char *)bytes + 4, 12);
    else memcpy(at, bytes, unit[s->signature]);
  }
}
static char *filled(int k, const struct side *s, int seed) {
  char *b = blank(k, s);
  put(s, b, seed, s->units);
  return b;
}

/* Checks a buffer after a call, and calls `refuse` if a byte is wrong. The buffer lies in region
 * `k`. It must hold the first `units` units of a message. All bytes around them and in gaps must
 * still be BLANK, as they were before the call. If the message did not fit into the receive (`fits`
 * is 0), any part of it may have arrived. Then the bytes of the type may have any value, and only
 * the other bytes must be BLANK. */
static void look(int k, const struct side *s, int seed, long units, int fits, const char *what) {
  static char *wanted, *copy;
  if (!wanted) wanted = malloc(REGION + AROUND), copy = malloc(REGION + AROUND);
  char *have = window(k, span(s));
  long length = window_length(span(s)), before = buffer(k, s) - have;
  memset(wanted, BLANK, length);
  put(s, wanted + before, seed, fits ? units : s->units);
  if (!fits) {
    memcpy(copy, have, length);
    put(s, copy + before, seed, s->units);
    have = copy;
  }
  if (memcmp(wanted, have, length)) refuse("%s: %s", fits ? "wrong bytes" : "bytes outside of the receive", what);
}

/* `own_class` is the error class that a message which does not fit gives if it is not converted. */
struct message {
  int mode, from, to, early, way, completion, seed, starts, fits, region, tag, own_class;
  struct side sent, received;
  char what[140];
};

/* Counts of messages, to find out whether the ranks converted the messages that they should have
 * converted. `counts[0]` counts the messages that should have been converted, and `counts[1]` those
 * of them that were. The other indices are:
 *
 * - who converts the message (its mode),
 * - 1 if the rank received the message, 0 if it sent it; for collective calls, 1 if the rank is
 *   odd,
 * - a kind of messages.
 *
 * A message is of several kinds, and each of these counts it. The kinds from 0 on are the
 * combinations of length and order (whether the receive is posted first). Those from WAYS on are
 * the calls that send, and those from COMPLETED on the calls that complete a receive. FLIGHTS has
 * the messages of `flight`, and ALL has all messages. For collective calls, the kinds from 0 on are
 * the calls, each in its blocking and its nonblocking form. */
enum { CELLS = 2 * LENGTHS, WAYS = CELLS, COMPLETED = WAYS + 4, FLIGHTS = COMPLETED + 7, ALL, KINDS };
static long counts[2][MODES][2][KINDS];
static void count(int mode, int receives, int kind, long asked, long converted) {
  counts[0][mode][receives][kind] += asked, counts[1][mode][receives][kind] += converted;
}

static int class_of(int code) {
  int class = code;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  return class;
}

/* Checks the error code, the status and the data of a receive, and calls `refuse` if one of them is
 * wrong. If the message does not fit, its error class must be MPI_ERR_TRUNCATE, or the class of the
 * same message if nothing is converted. */
static void judge(struct message *m, int code, const MPI_Status *status) {
  if (!m->fits) {
    int class = class_of(code);
    if (class == MPI_ERR_IN_STATUS) class = class_of(status->MPI_ERROR);
    if (m->mode == NEITHER) m->own_class = class;
    if (class != MPI_ERR_TRUNCATE && class != m->own_class) refuse("a message that is too long gives class %d: %s", class, m->what);
  } else {
    if (code != MPI_SUCCESS) refuse("a receive gives class %d: %s", class_of(code), m->what);
    int elements, count, each = m->received.signature == PAIRS ? 3 : 1;
    MPI_Get_elements(status, m->received.type, &elements);
    MPI_Get_count(status, m->received.type, &count);
    long units = m->sent.units;
    int whole = m->received.count == 1 ? (units == m->received.units ? 1 : MPI_UNDEFINED) : (int)units;
    if (status->MPI_SOURCE != m->from || status->MPI_TAG != m->tag || elements != units * each || count != whole)
      refuse("a wrong status: %s", m->what);
  }
  look(m->region, &m->received, m->seed, m->sent.units, m->fits, m->what);
}

/* Completes a request with one of seven MPI functions, such as MPI_Wait. `how` selects the
 * function. MPI_Test, MPI_Testall and MPI_Testany do not wait, so they are called repeatedly, until
 * the request is complete or a call fails. */
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
  if (rank == first) PMPI_Send(&byte, 1, MPI_CHAR, rank == m->from ? m->to : m->from, 9, aside);
  else PMPI_Recv(&byte, 1, MPI_CHAR, first, 9, aside, MPI_STATUS_IGNORE);
}

static void good(const struct message *m, int code) {
  if (code != MPI_SUCCESS) refuse("a send gives class %d: %s", class_of(code), m->what);
}

#define SEND(name) CALL(ours, name, b, n, t, to, 7, WORLD, &request)

/* Sends a message. If the receive is to be posted before the send (`early`), the receiver sends a
 * token as soon as the receive is posted, and this function waits for the token. For a blocking
 * receive, the receiver sends the token just before the call, and the sender then waits for a
 * moment. */
static void send(const struct message *m) {
  int ours = m->mode & SENDER, n = m->sent.count, to = m->to;
  MPI_Datatype t = m->sent.type;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  char *b = filled(0, &m->sent, m->seed);
  if (step == PERSISTENT) good(m, m->way ? SEND(Ssend_init) : SEND(Send_init));
  for (int start = 0; start < m->starts; start++) {
    if (start) put(&m->sent, b, m->seed + start, m->sent.units);
    if (m->early) go(m, m->to);
    if (m->early && step == BLOCKING) usleep(100);
    if (step == BLOCKING) {
      switch (m->way) {
      case 1: good(m, CALL(ours, Ssend, b, n, t, to, 7, WORLD)); break;
      case 2: good(m, CALL(ours, Bsend, b, n, t, to, 7, WORLD)); break;
      case 3: good(m, CALL(ours, Sendrecv, b, n, t, to, 7, NULL, 0, MPI_INT, MPI_PROC_NULL, 7, WORLD, &status)); break;
      default: good(m, CALL(ours, Send, b, n, t, to, 7, WORLD));
      }
    } else {
      if (step == NONBLOCKING) good(m, m->way == 1 ? SEND(Issend) : m->way == 2 ? SEND(Irsend) : SEND(Isend));
      else good(m, MPI_Start(&request));
      if (!m->early) go(m, m->from);
      good(m, complete(m->completion, &request, &status));
    }
  }
  if (step == PERSISTENT) MPI_Request_free(&request);
  look(0, &m->sent, m->seed + m->starts - 1, m->sent.units, 1, "a send changes its buffer");
}

static void receive(struct message *m) {
  int ours = m->mode & RECEIVER, n = m->received.count, from = m->from, seed = m->seed;
  MPI_Datatype t = m->received.type;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  MPI_Message matched;
  char *b = blank(1, &m->received);
  if (step == PERSISTENT) good(m, CALL(ours, Recv_init, b, n, t, from, 7, WORLD, &request));
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
        good(m, MPI_Mprobe(from, 7, WORLD, &matched, &status));
        code = CALL(ours, Mrecv, b, n, t, &matched, &status);
        break;
      case 2: code = CALL(ours, Sendrecv, NULL, 0, MPI_INT, MPI_PROC_NULL, 7, b, n, t, from, 7, WORLD, &status); break;
      default: code = CALL(ours, Recv, b, n, t, from, 7, WORLD, &status);
      }
    } else {
      if (step == NONBLOCKING && m->way == 3) {
        good(m, MPI_Mprobe(from, 7, WORLD, &matched, &status));
        good(m, CALL(ours, Imrecv, b, n, t, &matched, &request));
      } else if (step == NONBLOCKING) good(m, CALL(ours, Irecv, b, n, t, from, 7, WORLD, &request));
      else good(m, MPI_Start(&request));
      if (m->early) go(m, m->to);
      code = complete(m->completion, &request, &status);
    }
    m->seed = seed + start;
    judge(m, code, &status);
  }
  if (step == PERSISTENT && request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

/* Exchanges a message in each direction by one call. The call is either MPI_Sendrecv, with separate
 * buffers, or MPI_Sendrecv_replace, which receives into the send buffer. */
static void both_ways(const struct message *m) {
  int sends = rank == m->from, ours = m->mode >> !sends & 1, partner = sends ? m->to : m->from;
  const struct side *s = sends ? &m->sent : &m->received;
  char *b = filled(0, s, m->seed + !sends), *other = blank(1, s);
  MPI_Status status;
  int replaces = m->way % 2, n = s->count, mine = m->seed + sends, code, elements;
  code = replaces ? CALL(ours, Sendrecv_replace, b, n, s->type, partner, 7, partner, 7, WORLD, &status)
                  : CALL(ours, Sendrecv, b, n, s->type, partner, 7, other, n, s->type, partner, 7, WORLD, &status);
  if (code != MPI_SUCCESS) refuse("an exchange gives class %d: %s", class_of(code), m->what);
  MPI_Get_elements(&status, s->type, &elements);
  if (status.MPI_SOURCE != partner || status.MPI_TAG != 7 || elements != s->units * (s->signature == PAIRS ? 3 : 1))
    refuse("a wrong status: %s", m->what);
  look(0, s, replaces ? mine : m->seed + !sends, s->units, 1, m->what);
  if (!replaces) look(1, s, mine, s->units, 1, m->what);
}

/* Returns the rank with which this rank exchanges messages in the current round, or -1 if there is
 * none. It is the neighbour, or the rank at the same place in the other half of the ranks. If the
 * job runs on several nodes, one of the two is on another node in the usual orders of ranks. */
static int choose_partner(void) {
  int half = ranks / 2, partner = below(2) ? rank ^ 1 : (rank + half) % (2 * half);
  return partner < ranks && rank < 2 * half ? partner : -1;
}

/* Sends one message between this rank and its partner, or one message in each direction. The number
 * of the round and pseudorandom numbers determine what is sent and how. */
static void exchange(int round) {
  struct message m;
  memset(&m, 0, sizeof m);
  int partner = choose_partner(), signature = below(SIGNATURES), turn = below(2), sends_first = turn == (rank < partner);
  m.mode = below(MODES);
  m.from = sends_first ? rank : partner;
  m.to = sends_first ? partner : rank;
  m.early = below(2), m.way = below(4), m.completion = below(COMPLETIONS), m.seed = round * 4;
  m.starts = step == PERSISTENT ? 2 : 1, m.region = 1, m.tag = 7;
  /* Choose a length. Longer messages are rarer, because they take longer. */
  int length = below(8) ? below(3 * 7) : below(8) ? below(3 * 9) : below(LENGTHS);
  int layouts[2] = {below(LAYOUTS), below(LAYOUTS)}, relation = below(6), ours[2];
  /* The first rounds go through all combinations of who converts (the mode), the length, and
   * whether the receive is posted before the send. They do so twice: first with messages that fit
   * into the receive, then with messages that do not fit. (Messages of the minimum length always
   * fit.) These rounds do not send structures of int, double and int (PAIRS), because the preload
   * library does not convert all messages of them. */
  if (round < 2 * MODES * CELLS) {
    int cell = round / MODES % CELLS;
    if (signature == PAIRS) signature = WIDES;
    m.mode = round % MODES, m.early = cell % 2, length = cell / 2, relation = round < MODES * CELLS ? 3 : 1;
  }
  for (int k = 0; k < 2; k++) {
    ours[k] = m.mode >> k & 1;
    if (ours[k] && layouts[k] == DENSE) layouts[k] = 1 + below(LAYOUTS - 1);
  }
  int exchanges = step == BLOCKING && relation == 2, other = length;
  if (relation == 0 && length + 1 < LENGTHS) other = length + 1 + below(LENGTHS - 1 - length) % 4;
  if (relation == 1 && length > 0) other = length - 1 - below(length) % (round % 5 ? 4 : LENGTHS);
  m.sent = side(signature, layouts[0], length);
  m.received = side(signature, layouts[1], other);
  m.fits = m.received.units >= m.sent.units;
  /* A receive that is too short for its message fails. If it is persistent, start it only once.
   * Complete it, persistent or not, only by MPI_Wait, MPI_Test or MPI_Waitall, because MPI_Waitsome
   * of the unmodified MPICH 4.2.3 does not report the error of a persistent request. */
  if (!m.fits) m.starts = 1, m.completion %= 3;
  /* A buffered send fails if the message does not fit into the attached buffer, so long messages
   * are sent by other calls. */
  if (step == BLOCKING && m.way == 2 && sizes[length / 3] > 65536) m.way = 0;
  /* MPI_Irsend (way 2) needs a receive that is posted before the send. MPI_Mprobe (way 3) waits for
   * the message, so its receive can only be posted after the send. */
  if (step == NONBLOCKING && m.way == (m.early ? 3 : 2)) m.way = 0;
  if (step == BLOCKING && !exchanges) m.completion %= 3;
  if (step == PERSISTENT) m.way %= 2;
  snprintf(m.what, sizeof m.what, "%s%s converts, %ld to %ld units of %d B, layouts %d and %d, way %d, completion %d, %s", exchanges ? "both ways, " : "", modes[m.mode],
           m.sent.units, m.received.units, unit[signature], layouts[0], layouts[1], m.way, m.completion,
           m.early ? "posted early" : "posted late");
  if (partner < 0) return;
  alarm(seconds);
  int sends = rank == m.from, counted = !sends && !exchanges, mode = m.mode;
  /* Find out what the unmodified library does with a message that does not fit. */
  if (!m.fits && mode != NEITHER) {
    m.mode = NEITHER;
    if (sends) send(&m);
    else receive(&m);
    m.mode = mode;
  }
  long before = conversions(counted);
  if (exchanges) both_ways(&m);
  else if (sends) send(&m);
  else receive(&m);
  long now = conversions(counted) - before;
  /* Count the message if this rank should have converted it, that is, if this rank has called the
   * preload library. Do not count a receive whose message did not fit: after such an error, the
   * preload library does not always unpack the received bytes. */
  if (ours[!sends] && (sends || m.fits)) {
    count(m.mode, !sends, ALL, 1, now > 0);
    if (!exchanges) count(m.mode, !sends, sends ? WAYS + m.way : COMPLETED + m.completion, 1, now > 0);
    if (!exchanges && m.fits) count(m.mode, !sends, length * 2 + m.early, 1, now > 0);
  }
  if (!ours[!sends] && now > 0) refuse("a message was converted that was not to be: %s", m.what);
}

/* Tests several messages that are under way at once. This rank and its partner each send FLIGHT
 * messages of mixed lengths, to the other rank or to itself. */
static void flight(int round) {
  /* The data of each message. The first index is 1 if the sender has the higher rank of the two,
   * and else 0. The second index is 0 for the data as sent and 1 for the data as received. */
  static struct side sides[2][2][FLIGHT];
  int own[FLIGHT], any[FLIGHT], ways[FLIGHT], at[2 * FLIGHT];
  int mode = below(MODES), early = below(2), how = below(3), partner = choose_partner(), upper = rank > partner;
  for (int i = 0; i < FLIGHT; i++) {
    own[i] = !below(4), any[i] = below(6), ways[i] = below(3);
    for (int k = 0; k < 2; k++) {
      int signature = below(SIGNATURES), length = below(16) ? below(3 * 7) : below(LENGTHS - 1);
      for (int end = 0, ours; end < 2; end++) {
        ours = mode >> end & 1;
        sides[k][end][i] = side(signature, ours + below(LAYOUTS - ours), length + end * below(2));
      }
    }
  }
  if (partner < 0) return;
  struct message m = {.mode = mode, .fits = 1};
  snprintf(m.what, sizeof m.what, "many at once, %s converts, completion %d, posted %s", modes[mode], how, early ? "early" : "late");
  MPI_Request requests[2 * FLIGHT];
  MPI_Status statuses[2 * FLIGHT], some[2 * FLIGHT];
  long before[2] = {conversions(0), conversions(1)};
  int starts = step == PERSISTENT ? 2 : 1;
  for (int start = 0; start < starts; start++) {
    int seed = (round * 2 + start) * 2 * FLIGHT, bytes[2] = {0}, n, code;
    alarm(seconds);
    for (int i = 0; i < FLIGHT; i++) {
      filled(4 + FLIGHT + i, &sides[upper][0][i], seed + upper * FLIGHT + i);
      blank(4 + i, &sides[own[i] ? upper : !upper][1][i]);
    }
    for (int phase = 0; phase < 2; phase++) {
      int receives = phase ^ early;
      MPI_Request *all = requests + (receives ? 0 : FLIGHT);
      if (phase) PMPI_Sendrecv(bytes, 1, MPI_INT, partner, 9, bytes + 1, 1, MPI_INT, partner, 9, aside, some);
      for (int i = 0; i < FLIGHT && !(step == PERSISTENT && start); i++) {
        int ours = mode >> receives & 1, peer = own[i] ? rank : partner, way = ways[i] == 2 && !early ? 0 : ways[i];
        struct side *s = &sides[receives && !own[i] ? !upper : upper][receives][i];
        char *b = buffer(receives ? 4 + i : 4 + FLIGHT + i, s);
        int n = s->count;
        MPI_Datatype t = s->type;
        if (receives) {
          /* MPI_Startall starts requests in no particular order. So a persistent receive with
           * MPI_ANY_TAG could match a message that is meant for another receive. */
          int from = any[i] == 0 ? MPI_ANY_SOURCE : peer, tag = any[i] == 1 && step == NONBLOCKING ? MPI_ANY_TAG : i;
          code = step == PERSISTENT ? CALL(ours, Recv_init, b, n, t, from, tag, WORLD, all + i)
                                    : CALL(ours, Irecv, b, n, t, from, tag, WORLD, all + i);
        }
#undef SEND
#define SEND(name) CALL(ours, name, b, n, t, peer, i, WORLD, all + i)
        else if (step == PERSISTENT) code = way == 2 ? SEND(Rsend_init) : way ? SEND(Ssend_init) : SEND(Send_init);
        else code = way == 2 ? SEND(Irsend) : way ? SEND(Issend) : SEND(Isend);
        good(&m, code);
      }
      if (step == PERSISTENT) good(&m, MPI_Startall(FLIGHT, all));
    }
    if (!how) good(&m, MPI_Waitall(2 * FLIGHT, requests, statuses));
    for (int open = how ? 2 * FLIGHT : 0; open; open -= n) {
      good(&m, how == 1 ? MPI_Waitsome(2 * FLIGHT, requests, &n, at, some) : MPI_Testsome(2 * FLIGHT, requests, &n, at, some));
      if (n < 0 || n > open) refuse("a wrong number of completions: %s", m.what);
      for (int k = 0; k < n; k++) statuses[at[k]] = some[k];
    }
    for (int i = 0; i < FLIGHT; i++) {
      int from = own[i] ? upper : !upper;
      m.from = own[i] ? rank : partner, m.region = 4 + i, m.tag = i, m.seed = seed + from * FLIGHT + i;
      m.sent = sides[from][0][i], m.received = sides[from][1][i];
      judge(&m, MPI_SUCCESS, &statuses[i]);
      const struct side *s = &sides[upper][0][i];
      look(4 + FLIGHT + i, s, seed + upper * FLIGHT + i, s->units, 1, "a send changes its buffer");
    }
  }
  for (int i = 0; step == PERSISTENT && i < 2 * FLIGHT; i++) MPI_Request_free(requests + i);
  for (int end = 0; end < 2; end++) {
    long made = conversions(end) - before[end];
    if (mode >> end & 1) count(mode, end, ALL, starts * FLIGHT, made), count(mode, end, FLIGHTS, starts * FLIGHT, made);
    else if (made) refuse("a message was converted that was not to be: %s", m.what);
  }
}

enum { BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, GATHERV, SCATTERV, ALLTOALLV, ALLTOALLW, CALLS };
static const char *const calls[CALLS] = {"Bcast",   "Gather",   "Scatter",   "Allgather", "Alltoall",
                                         "Gatherv", "Scatterv", "Alltoallv", "Alltoallw"};

/* The buffer of a collective call on this rank. It has `n` blocks, each with the layout of `side`.
 * A block begins `step` bytes after the block before it. `seeds` has the seed of each block's
 * contents, or -1 for a block whose bytes are all BLANK. */
struct blocks {
  struct side side;
  int region, n;
  long step;
  int *seeds;
  char *at;
};

static long span_of(const struct blocks *b) { return (b->n - 1) * b->step + span(&b->side); }

/* Writes to `to` what the checked bytes around the buffer must be, and the buffer's blocks. */
static void image(const struct blocks *b, char *to) {
  long bytes = span_of(b), before = b->at - window(b->region, bytes);
  memset(to, BLANK, window_length(bytes));
  for (int i = 0; i < b->n; i++)
    if (b->seeds[i] >= 0) put(&b->side, to + before + i * b->step, b->seeds[i], b->side.units);
}

static struct blocks blocks(int k, struct side s, int n) {
  struct blocks b = {s, k, n, 0, malloc(n * sizeof(int)), NULL};
  MPI_Aint lb, extent;
  MPI_Type_get_extent(s.type, &lb, &extent);
  b.step = s.count * extent;
  b.at = placed(k, span_of(&b));
  for (int i = 0; i < n; i++) b.seeds[i] = -1;
  return b;
}

static void look_at(const struct blocks *b, const char *what) {
  static char *wanted;
  if (!wanted) wanted = malloc(REGION + AROUND);
  image(b, wanted);
  if (memcmp(wanted, window(b->region, span_of(b)), window_length(span_of(b)))) refuse("wrong bytes: %s", what);
}

#define START(name, i_name, ...) \
  code = now ? CALL(ours, name, __VA_ARGS__, comm) : CALL(ours, i_name, __VA_ARGS__, comm, &request)

/* Makes one collective call on all ranks, and checks the results. The mode determines which ranks
 * convert the call: none, the even ranks, the odd ranks, or all. Some of the calls without a root
 * are made on the intercommunicator. */
static void collective(int round) {
  static const char *const who[MODES] = {"no rank", "even ranks", "odd ranks", "all ranks"};
  int call = below(CALLS), now = below(2), in_place = !below(3), root = below(ranks), mode = below(MODES);
  int signature = below(SIGNATURES), length = below(4) ? below(3 * 5) : below(24) ? below(3 * 7) : below(3 * 10), code = MPI_SUCCESS;
  while (length > 2 && ranks * sizes[length / 3] > LONGEST) length -= 3; /* All blocks fit into a region. */
  struct side sent = side(signature, 1 + below(LAYOUTS - 1), length), received = side(signature, 1 + below(LAYOUTS - 1), length);
  int ours = mode >> rank % 2 & 1, is_root = rank == root;
  int base = round % 64 * ranks * ranks, all = call == ALLTOALL || call == ALLTOALLV || call == ALLTOALLW;
  int scatters = call == SCATTER || call == SCATTERV, gathers = call == GATHER || call == GATHERV;
  /* This rank exchanges blocks with `peers` ranks, of which number i has rank first + i * distance. */
  int inter = !below(4) && (all || call == ALLGATHER), peers = inter ? (ranks + rank % 2) / 2 : ranks;
  int first = inter && rank % 2 == 0, distance = inter ? 2 : 1;
  MPI_Comm comm = inter ? between : WORLD;
  struct blocks s = blocks(2, sent, all || scatters ? peers : 1), r = blocks(3, received, all || gathers || call == ALLGATHER ? peers : 1);
  MPI_Request request = MPI_REQUEST_NULL;
  char what[160];
  snprintf(what, sizeof what, "%s%s, %ld units of %d B, layouts %d and %d, %s convert%s", now ? "MPI_" : "MPI_I", calls[call], sent.units,
           unit[signature], sent.layout, received.layout, who[mode], inter ? ", on an intercommunicator" : in_place ? ", in place" : "");
  if (call == BCAST || inter) in_place = 0;
  if ((scatters || gathers) && !is_root) in_place = 0;
  /* Fill the send buffer and, for a call in place, the blocks of the receive buffer that the call
   * reads. */
  int sends = !in_place && (call != BCAST || is_root) && (!scatters || is_root);
  int receives = (call != BCAST || !is_root) && (!gathers || is_root) && !(scatters && in_place);
  for (int i = 0; i < s.n; i++) s.seeds[i] = call == BCAST ? base : scatters ? base + i : base + rank * ranks + (all ? first + i * distance : 0);
  if (scatters && in_place) sends = 1;
  image(&s, window(s.region, span_of(&s)));
  if (in_place && receives)
    for (int i = 0; i < r.n; i++) r.seeds[i] = all ? base + rank * ranks + i : i == rank ? base + rank * ranks : -1;
  image(&r, window(r.region, span_of(&r)));
  /* A seed determines the contents of a block. The seeds of the receive buffer are those of its
   * contents before the call. Replace them by the seeds of the contents that it must have after the
   * call. */
  if (receives) for (int i = 0; i < r.n; i++) r.seeds[i] = call == BCAST ? base : scatters ? base + rank : base + (first + i * distance) * ranks + (all ? rank : 0);
  int *n = malloc(4 * ranks * sizeof *n), *m = n + ranks, *at = m + ranks, *to = at + ranks;
  MPI_Datatype *types = malloc(2 * ranks * sizeof *types);
  for (int i = 0; i < peers; i++) {
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
  if (ours && (sends || receives))
    count(mode, rank % 2, ALL, 1, made > 0), count(mode, rank % 2, call * 2 + now, 1, made > 0);
  if (!ours && made > 0) refuse("a call was converted that was not to be: %s", what);
  free(n), free(types), free(s.seeds), free(r.seeds);
}

static void try(int rounds) {
  for (int round = 0; round < rounds; round++) {
    fronts = below(4);
    if (step == COLLECTIVES) collective(round);
    else if (step != BLOCKING && round >= 2 * MODES * CELLS && round % 8 == 0) {
      flight(round);
      /* Some receives of `flight` take a message from any rank. Without this barrier, they could take
       * a message of the next round from another partner. */
      alarm(seconds);
      PMPI_Barrier(WORLD);
    } else exchange(round);
    /* Some pairs of ranks are faster than others. A barrier after every 32 rounds keeps the fast
     * pairs from waiting so long for the slow ones that the deadline passes. */
    alarm(seconds);
    if (round % 32 == 31) PMPI_Barrier(WORLD);
  }
  PMPI_Allreduce(MPI_IN_PLACE, counts, sizeof counts / sizeof(long), MPI_LONG, MPI_SUM, WORLD);
  for (int of = 0; of < MODES * 2 * KINDS; of++) {
    int mode = of / KINDS / 2, end = of / KINDS % 2, kind = of % KINDS;
    long asked = counts[0][mode][end][kind], converted = counts[1][mode][end][kind];
    if (!(mode >> end & 1)) continue;
    if ((asked || kind == ALL || (kind < CELLS && step != COLLECTIVES)) && (!converted || (kind == ALL && converted * 10 < asked * 9)))
      too_few(asked, converted, kind, mode);
  }
}

/* Returns how many different texts the ranks have. Each rank passes its text, in an array of `room`
 * bytes. */
static int different(const char *text, int room) {
  char *all = calloc(ranks, room);
  int n = 0;
  PMPI_Allgather(text, room, MPI_CHAR, all, room, MPI_CHAR, WORLD);
  for (int i = 0; i < ranks; i++) {
    int k = 0;
    while (strcmp(all + (long)k * room, all + (long)i * room)) k++;
    n += k == i;
  }
  free(all);
  return n;
}

/* Returns the number of nodes. Two ranks are on the same node if their host names are equal, and
 * the boot ids of their machines are equal too. The host name alone does not suffice, because
 * different machines may have the same name. The boot id alone does not suffice, because all
 * containers on one machine have the same boot id. */
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
  static char key[1 << 16], first[1 << 16];
  seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 20;
  signal(SIGALRM, too_late);
  alarm(60 + seconds);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &ranks);
  int (*keys)(char *, int) = (int (*)(char *, int))dlsym(RTLD_DEFAULT, "ddtc_proof_key");
  conversions = (long (*)(int))dlsym(RTLD_DEFAULT, "ddtc_conversions");
  if (!keys || !conversions || ranks < 2 || ranks > MAX_RANKS) {
    fprintf(stderr, "prove: %s\n", ranks < 2 ? "needs at least 2 ranks" : ranks > MAX_RANKS ? "needs at most 4096 ranks" : "the preload library is not loaded");
    return 2;
  }
  /* Communicate once before asking for the key of the proof, which names the transport: the MPI
   * library may load its network libraries only at the first message. */
  int token = 0;
  PMPI_Allreduce(MPI_IN_PLACE, &token, 1, MPI_INT, MPI_SUM, WORLD);
  if (!keys(key, sizeof key)) { fprintf(stderr, "prove: no MPI library with a known ABI\n"); return 2; }
  memcpy(first, key, sizeof key);
  PMPI_Bcast(first, sizeof first, MPI_CHAR, 0, WORLD);
  int is_same = !strcmp(first, key);
  PMPI_Allreduce(MPI_IN_PLACE, &is_same, 1, MPI_INT, MPI_MIN, WORLD);
  if (!is_same) { fprintf(stderr, "prove: the ranks use different MPI libraries or transports\n"); return 2; }
  for (char *line = strtok(key, "\n"); line; line = strtok(NULL, "\n")) say("key %s", line);
  Dl_info object;
  if (dladdr(dlsym(RTLD_DEFAULT, "PMPI_Type_commit"), &object)) say("file %s", object.dli_fname);
  say("nodes %d", nodes());
  say("ranks %d", ranks);
  int converts = conversions(3) != 0;
  PMPI_Allreduce(MPI_IN_PLACE, &converts, 1, MPI_INT, MPI_MIN, WORLD);
  say("converts %d", converts);
  say("flavour %ld", conversions(4));
  say_abi();
  MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
  PMPI_Comm_dup(WORLD, &aside);
  MPI_Comm half;
  MPI_Comm_split(WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, WORLD, rank % 2 == 0, 9, &between);
  MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
  MPI_Buffer_attach(malloc(1 << 20), 1 << 20);
  for (int i = 2; i < argc; i++)
    for (step = 0; step < STEPS; step++) {
      if (strcmp(argv[i], steps[step])) continue;
      snprintf(late, sizeof late, "ddtc-prove refused %s no answer for %u seconds\n", steps[step], seconds);
      say("begun %s", steps[step]);
      state = 88172645463325252u + (uint64_t)step;
      memset(counts, 0, sizeof counts);
      try(step == COLLECTIVES ? 2000 : 2200);
      alarm(0);
      say("proven %s", steps[step]);
    }
  say("done");
  late[0] = 0;
  alarm(seconds);
  MPI_Finalize();
  return 0;
}
