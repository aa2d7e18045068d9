/* Counts how often the preload library looks up derived datatypes in MPI calls that the program has
 * made before. Builds of the preload library with debug assertions count look-ups in the variable
 * ddtc_type_lookups. Prints the name of a call, the number of distinct derived types that it must
 * look up, and the number of look-ups in one call. The start of a persistent send looks up the type
 * of the send; the start of a persistent receive need not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { BLOCKS = 64, CALLS = 100 };

static uint64_t *lookups;
static int from[2 * BLOCKS], into[2 * BLOCKS];
static MPI_Datatype one, two;
static MPI_Request persistent[2];

static MPI_Datatype blocks(int length) {
  MPI_Datatype t;
  MPI_Type_vector(BLOCKS / length, length, 2 * length, MPI_INT, &t);
  MPI_Type_commit(&t);
  return t;
}

static void exchange(MPI_Datatype sent, MPI_Datatype received) {
  MPI_Sendrecv(from, 1, sent, 0, 1, into, 1, received, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void same(void) { exchange(one, one); }
static void different(void) { exchange(one, two); }
static void half(void) { MPI_Sendrecv(from, 1, one, 0, 1, into, BLOCKS, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE); }
static void named(void) { exchange(MPI_INT, MPI_INT); }

static void nonblocking(void) {
  MPI_Request requests[2];
  MPI_Irecv(into, 1, two, 0, 1, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(from, 1, one, 0, 1, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void start(void) {
  MPI_Startall(2, persistent);
  MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
}

static void pack(void) {
  char packed[4 * BLOCKS];
  int at = 0;
  MPI_Pack(from, 1, one, packed, sizeof packed, &at, MPI_COMM_SELF);
}

int main(int argc, char **argv) {
  static const struct { const char *name; int types; void (*call)(void); } calls[] = {
      {"MPI_Sendrecv", 1, same},     {"MPI_Sendrecv", 2, different},         {"MPI_Sendrecv", 1, half},
      {"MPI_Sendrecv", 0, named},    {"MPI_Irecv, MPI_Isend", 2, nonblocking}, {"MPI_Startall", 1, start},
      {"MPI_Pack", 1, pack},
  };
  MPI_Init(&argc, &argv);
  lookups = dlsym(RTLD_DEFAULT, "ddtc_type_lookups");
  if (!lookups) return puts("look-ups are not counted"), 1;
  one = blocks(1), two = blocks(2);
  MPI_Recv_init(into, 1, two, 0, 1, MPI_COMM_SELF, &persistent[0]);
  MPI_Send_init(from, 1, one, 0, 1, MPI_COMM_SELF, &persistent[1]);
  for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
    for (int i = 0; i < CALLS; i++) calls[k].call();
    uint64_t before = *lookups;
    for (int i = 0; i < CALLS; i++) calls[k].call();
    printf("%s, types %d: %g\n", calls[k].name, calls[k].types, (double)(*lookups - before) / CALLS);
  }
  MPI_Request_free(&persistent[0]);
  MPI_Request_free(&persistent[1]);
  MPI_Finalize();
  return 0;
}
