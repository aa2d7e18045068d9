/* Builds the datatypes that a script describes by plain MPI calls, packs and unpacks with each, and
 * writes the results, one line per test.
 *
 * A line of the script makes a datatype, called a node, or tests one. Nodes are numbered from 0 in
 * their order. Their lines are "CONSTRUCTOR LARGE arguments", where LARGE is 1 for the large-count
 * function, and the arguments name other nodes by their numbers. The lines of tests are "test NAME
 * COUNT NODE TRUE_LB TRUE_UB". The buffer of a test covers the instances where the MPI library
 * places them. A line of the output has
 *
 *     NAME size lb extent code position hash code position hash packed bytes
 *
 * with the results of the pack and then of the unpack. Packed bytes are in hexadecimal digits, and
 * only present if there are at most 256 of them. A test that does not return leaves the line "NAME
 * !SIGNAL", or "NAME !0" if the MPI library ended the process.
 *
 * Usage: driver SCRIPT OUTPUT [messages]. Each rank appends its number to the name OUTPUT of its
 * file. If the environment variable DRIVER_MAX_BYTES is set, tests with more bytes of memory are
 * left out. DRIVER_LEAVE names a file of entries whose tests are left out, and DRIVER_LIMIT is the
 * maximum number of seconds of a test, for tests that hang. */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "named.h"

#ifndef OPEN_MPI
#define LARGE_COUNTS 1
#endif

static MPI_Datatype *nodes;
static int *missing;
static FILE *script;

static long long number(void) {
  long long n;
  if (fscanf(script, "%lld", &n) != 1) { fprintf(stderr, "script: a number is missing\n"); exit(3); }
  return n;
}
static MPI_Datatype node(int *gone) {
  long long i = number();
  *gone |= missing[i];
  return nodes[i];
}
static MPI_Count *numbers(int n) {
  MPI_Count *a = malloc(sizeof *a * (n + 1));
  for (int i = 0; i < n; i++) a[i] = number();
  return a;
}
static int *ints(const MPI_Count *a, int n) {
  int *b = malloc(sizeof *b * (n + 1));
  for (int i = 0; i < n; i++) b[i] = (int)a[i];
  return b;
}
static MPI_Aint *aints(const MPI_Count *a, int n) {
  MPI_Aint *b = malloc(sizeof *b * (n + 1));
  for (int i = 0; i < n; i++) b[i] = (MPI_Aint)a[i];
  return b;
}
static uint64_t hash(const unsigned char *p, size_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; n >= 8; n -= 8, p += 8) { uint64_t w; memcpy(&w, p, 8); h = (h ^ w) * 0x100000001b3u; h ^= h >> 29; }
  for (; n; n--, p++) h = (h ^ *p) * 0x100000001b3u;
  return h;
}

#ifdef LARGE_COUNTS
#define LARGE(call) if (large) { call; } else
#else
#define LARGE(call) if (large) gone = 1; else
#endif

static void build(const char *what, int at) {
  /* Read the arguments of one constructor from the script and call the constructor. `gone` is set
   * if the MPI library lacks the type, one of its children, or the large-count function. */
  int large = (int)number(), gone = 0;
  MPI_Datatype t = MPI_DATATYPE_NULL, old;
  if (!strcmp(what, "named")) {
    char name[64];
    if (fscanf(script, "%63s", name) != 1) exit(3);
    gone = !named(name, &t) || t == MPI_DATATYPE_NULL;
    int size = 0;
    if (!gone) gone = MPI_Type_size(t, &size) != MPI_SUCCESS || size <= 0;
  } else if (!strcmp(what, "contiguous")) {
    MPI_Count n = number(); old = node(&gone);
    if (!gone) LARGE(MPI_Type_contiguous_c(n, old, &t)) MPI_Type_contiguous((int)n, old, &t);
  } else if (!strcmp(what, "dup")) {
    old = node(&gone);
    if (!gone) MPI_Type_dup(old, &t);
  } else if (!strcmp(what, "vector")) {
    MPI_Count n = number(), b = number(), s = number(); old = node(&gone);
    if (!gone) LARGE(MPI_Type_vector_c(n, b, s, old, &t)) MPI_Type_vector((int)n, (int)b, (int)s, old, &t);
  } else if (!strcmp(what, "hvector")) {
    MPI_Count n = number(), b = number(), s = number(); old = node(&gone);
    if (!gone) LARGE(MPI_Type_create_hvector_c(n, b, s, old, &t)) MPI_Type_create_hvector((int)n, (int)b, s, old, &t);
  } else if (!strcmp(what, "indexed") || !strcmp(what, "hindexed")) {
    int n = (int)number();
    MPI_Count *b = numbers(n), *d = numbers(n);
    old = node(&gone);
    if (gone) return (void)(missing[at] = 1);
    if (*what == 'i') { LARGE(MPI_Type_indexed_c(n, b, d, old, &t)) MPI_Type_indexed(n, ints(b, n), ints(d, n), old, &t); }
    else { LARGE(MPI_Type_create_hindexed_c(n, b, d, old, &t)) MPI_Type_create_hindexed(n, ints(b, n), aints(d, n), old, &t); }
  } else if (!strcmp(what, "indexed_block") || !strcmp(what, "hindexed_block")) {
    int n = (int)number();
    MPI_Count b = number(), *d = numbers(n);
    old = node(&gone);
    if (gone) return (void)(missing[at] = 1);
    if (*what == 'i') { LARGE(MPI_Type_create_indexed_block_c(n, b, d, old, &t)) MPI_Type_create_indexed_block(n, (int)b, ints(d, n), old, &t); }
    else { LARGE(MPI_Type_create_hindexed_block_c(n, b, d, old, &t)) MPI_Type_create_hindexed_block(n, (int)b, aints(d, n), old, &t); }
  } else if (!strcmp(what, "struct")) {
    int n = (int)number();
    MPI_Count *b = numbers(n), *d = numbers(n);
    MPI_Datatype *types = malloc(sizeof *types * (n + 1));
    for (int i = 0; i < n; i++) types[i] = node(&gone);
    if (!gone) LARGE(MPI_Type_create_struct_c(n, b, d, types, &t)) MPI_Type_create_struct(n, ints(b, n), aints(d, n), types, &t);
  } else if (!strcmp(what, "subarray")) {
    int n = (int)number();
    MPI_Count *sizes = numbers(n), *subsizes = numbers(n), *starts = numbers(n);
    int order = number() ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    old = node(&gone);
    if (!gone) LARGE(MPI_Type_create_subarray_c(n, sizes, subsizes, starts, order, old, &t))
      MPI_Type_create_subarray(n, ints(sizes, n), ints(subsizes, n), ints(starts, n), order, old, &t);
  } else if (!strcmp(what, "darray")) {
    int size = (int)number(), rank = (int)number(), n = (int)number();
    MPI_Count *gsizes = numbers(n);
    int *distribs = ints(numbers(n), n), *dargs = ints(numbers(n), n), *psizes = ints(numbers(n), n);
    int order = number() ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    for (int i = 0; i < n; i++) {
      distribs[i] = distribs[i] == 0 ? MPI_DISTRIBUTE_BLOCK : distribs[i] == 1 ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_NONE;
      if (dargs[i] < 0) dargs[i] = MPI_DISTRIBUTE_DFLT_DARG;
    }
    old = node(&gone);
    if (!gone) LARGE(MPI_Type_create_darray_c(size, rank, n, gsizes, distribs, dargs, psizes, order, old, &t))
      MPI_Type_create_darray(size, rank, n, ints(gsizes, n), distribs, dargs, psizes, order, old, &t);
  } else if (!strcmp(what, "resized")) {
    MPI_Count lb = number(), extent = number(); old = node(&gone);
    if (!gone) LARGE(MPI_Type_create_resized_c(old, lb, extent, &t)) MPI_Type_create_resized(old, lb, extent, &t);
  } else if (!strcmp(what, "f90_real")) {
    int p = (int)number(), r = (int)number();
    gone = MPI_Type_create_f90_real(p, r, &t) != MPI_SUCCESS;
  } else if (!strcmp(what, "f90_complex")) {
    int p = (int)number(), r = (int)number();
    gone = MPI_Type_create_f90_complex(p, r, &t) != MPI_SUCCESS;
  } else if (!strcmp(what, "f90_integer")) {
    gone = MPI_Type_create_f90_integer((int)number(), &t) != MPI_SUCCESS;
#ifdef LARGE_COUNTS
  } else if (!strcmp(what, "value_index")) {
    MPI_Datatype value = node(&gone), index = node(&gone);
    if (!gone) gone = MPI_Type_get_value_index(value, index, &t) != MPI_SUCCESS;
#endif
  } else if (!strcmp(what, "unknown") || !strcmp(what, "value_index")) {
    while (fgetc(script) != '\n') {}
    gone = 1;
  } else {
    fprintf(stderr, "script: '%s'?\n", what);
    exit(3);
  }
  nodes[at] = t;
  missing[at] = gone || t == MPI_DATATYPE_NULL;
}

/* `peer` is the rank with which this rank exchanges messages, or -1 without the argument
 * `messages`. With this argument, the driver calls `exchange` in place of MPI_Pack and MPI_Unpack.
 * In place of a pack, a message of the type is received as packed bytes. In place of an unpack, a
 * message of packed bytes is received as the type. In the first round `exchange` makes a blocking
 * call, and in the second round nonblocking calls. */
static int peer;
static int exchange(int round, void *out, int outcount, MPI_Datatype outtype, void *in, int incount, MPI_Datatype intype, int *bytes) {
  MPI_Status status[2];
  int code;
  if (round) {
    MPI_Request r[2];
    MPI_Irecv(in, incount, intype, peer, 5, MPI_COMM_WORLD, &r[0]);
    MPI_Isend(out, outcount, outtype, peer, 5, MPI_COMM_WORLD, &r[1]);
    code = MPI_Waitall(2, r, status);
  } else {
    code = MPI_Sendrecv(out, outcount, outtype, peer, 5, in, incount, intype, peer, 5, MPI_COMM_WORLD, status);
  }
  MPI_Get_count(status, MPI_PACKED, bytes);
  return code;
}

static void tried(FILE *out, const char *name, long long count, long long n, long long low, long long high) {
  fprintf(out, "%s ", name);
  if (missing[n]) { fprintf(out, "unavailable\n"); return; }
  MPI_Datatype t = nodes[n];
  MPI_Type_commit(&t);
  MPI_Count size_x; MPI_Aint lb, extent;
  MPI_Type_size_x(t, &size_x);
  MPI_Type_get_extent(t, &lb, &extent);
  fprintf(out, "%lld %lld %lld ", (long long)size_x, (long long)lb, (long long)extent);
  long long last = (count - 1) * (long long)extent;
  if (size_x == 0 || count == 0) low = high = last = 0;
  low += last < 0 ? last : 0;
  high += last > 0 ? last : 0;
  if (low > 0) low = 0;
  if (high < 0) high = 0;
  size_t size = (size_t)size_x * count, span = high - low;
  unsigned char *user = malloc(span + 1), *packed = malloc(size + 64), *stream = malloc(size + 1);
  for (size_t i = 0; i < span; i++) user[i] = ((long long)(i + low) % 251 + 251) % 251;
  /* Pack twice and write the results of the second time, since the preload library may compile a
   * type at its first use. */
  for (int round = 0; round < 2; round++) {
    memset(packed, 0xEE, size + 64);
    int position = 7, code;
    if (peer < 0) code = MPI_Pack(user - low, (int)count, t, packed, (int)size + 64, &position, MPI_COMM_WORLD);
    else { code = exchange(round, user - low, (int)count, t, packed + 7, (int)size + 57, MPI_PACKED, &position); position += 7; }
    if (round) fprintf(out, "%d %d %016llx ", code, position, (unsigned long long)hash(packed, size + 64));
  }
  for (size_t i = 0; i < size; i++) stream[i] = i % 253;
  for (int round = 0; round < 2; round++) {
    memset(user, 0xDD, span);
    int position = 0, code;
    if (peer < 0) code = MPI_Unpack(stream, (int)size, &position, user - low, (int)count, t, MPI_COMM_WORLD);
    else code = exchange(round, stream, (int)size, MPI_PACKED, user - low, (int)count, t, &position);
    if (round) fprintf(out, "%d %d %016llx ", code, position, (unsigned long long)hash(user, span));
  }
  for (size_t i = 0; size <= 256 && i < size; i++) fprintf(out, "%02x", packed[7 + i]);
  fprintf(out, "\n");
  free(user); free(packed); free(stream);
}

/* Name of the test that is running, or an empty string between tests. If the process dies in a
 * test, `mark` writes a line with this name. */
static char at_work[256];
static int out_fd;
static void mark(int sig) {
  char line[300];
  int n = 0;
  for (const char *p = at_work; *p; p++) line[n++] = *p;
  line[n++] = ' ';
  line[n++] = '!';
  if (sig >= 10) line[n++] = '0' + sig / 10;
  line[n++] = '0' + sig % 10;
  line[n++] = '\n';
  if (*at_work && write(out_fd, line, n) != n) _exit(4);
  *at_work = 0;
}
static void died(int sig) {
  mark(sig);
  signal(sig, SIG_DFL);
  raise(sig);
}
static void ended(void) { mark(0); }

/* Names of the entries whose tests are left out, one on each line. The name of a test is
 * ENTRY:COUNT. */
static char *leave;
static int is_excluded(const char *name) {
  size_t n = strrchr(name, ':') ? (size_t)(strrchr(name, ':') - name) : strlen(name);
  for (char *line = leave; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
    if (strcspn(line, "\n") == n && !memcmp(line, name, n)) return 1;
  return 0;
}

static void test(FILE *out) {
  char name[256];
  if (fscanf(script, "%255s", name) != 1) exit(3);
  long long count = number(), n = number(), low = number(), high = number();
  if (getenv("DRIVER_MAX_BYTES") && count * (high - low) > atoll(getenv("DRIVER_MAX_BYTES"))) return;
  if (is_excluded(name)) return;
  fflush(out);
  strcpy(at_work, name);
  alarm(getenv("DRIVER_LIMIT") ? (unsigned)atoi(getenv("DRIVER_LIMIT")) : 0);
  tried(out, name, count, n, low, high);
  alarm(0);
  *at_work = 0;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = argc > 3 ? rank ^ 1 : -1;
  char path[4096], what[64];
  snprintf(path, sizeof path, "%s.%d", argv[2], rank);
  script = fopen(argv[1], "r");
  FILE *out = fopen(path, "w");
  if (!script || !out) return 2;
  out_fd = fileno(out);
  int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
  for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], died);
  atexit(ended);
  if (getenv("DRIVER_LEAVE")) {
    FILE *list = fopen(getenv("DRIVER_LEAVE"), "r");
    if (!list) return 2;
    leave = calloc(1, 1 << 16);
    if (fread(leave, 1, (1 << 16) - 1, list) == 0 && ferror(list)) return 2;
    fclose(list);
  }
  int max = 1 << 20, n = 0;
  nodes = malloc(sizeof *nodes * max);
  missing = calloc(max, sizeof *missing);
  while (fscanf(script, "%63s", what) == 1) {
    if (!strcmp(what, "test")) { test(out); fflush(out); }
    else { nodes[n] = MPI_DATATYPE_NULL; build(what, n++); }
  }
  fclose(out);
  MPI_Finalize();
  return 0;
}
