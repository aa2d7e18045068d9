/* Makes calls of which the preload library converts nothing. The script benches/instructions.py
 * counts their instructions, and benches/builds.py measures their times.
 *
 *     passed CALL ROUNDS   makes ROUNDS calls of one kind, all within this process, and prints the
 *                          nanoseconds of one call
 *
 * Every call has named types only, or a derived type that is not used often enough to be
 * decoded. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Replaces clock_gettime of the C library in the whole process: since the program is linked with
 * -rdynamic, calls in the preload library reach this function too. The preload library searches for
 * newly loaded objects when the coarse clock has ticked. Under valgrind, where calls are slow, the
 * clock would tick every few calls. So while calls are counted, the time that this function returns
 * stands still. */
static int stands_still;
static struct timespec then;
int clock_gettime(clockid_t clock, struct timespec *now) {
  if (stands_still) return *now = then, 0;
  return syscall(SYS_clock_gettime, clock, now);
}

static char in[4096], out[4096];
static MPI_Request request[2];
static MPI_Datatype derived;
static int at, flag, zero[2], one[2] = {1, 1};

static void sends(void) {
  MPI_Irecv(out, 60, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, request);
  MPI_Send(in, 60, MPI_DOUBLE, 0, 1, MPI_COMM_SELF);
  MPI_Wait(request, MPI_STATUS_IGNORE);
}
static void waits_for_all(void) {
  MPI_Irecv(out, 60, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, request);
  MPI_Isend(in, 60, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, request + 1);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
}
static void exchanges(void) {
  MPI_Sendrecv(in, 60, MPI_DOUBLE, 0, 1, out, 60, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}
static void packs(void) {
  at = 0;
  MPI_Pack(in, 60, MPI_DOUBLE, out, sizeof out, &at, MPI_COMM_SELF);
}
static void unpacks(void) {
  at = 0;
  MPI_Unpack(in, sizeof in, &at, out, 60, MPI_DOUBLE, MPI_COMM_SELF);
}
static void broadcasts(void) { MPI_Bcast(in, 60, MPI_DOUBLE, 0, MPI_COMM_SELF); }
static void gathers(void) { MPI_Alltoall(in, 60, MPI_DOUBLE, out, 60, MPI_DOUBLE, MPI_COMM_SELF); }
static void scatters_to_each(void) {
  MPI_Datatype types[1] = {MPI_DOUBLE};
  MPI_Alltoallw(in, one, zero, types, out, one, zero, types, MPI_COMM_SELF);
}
static void tests_nothing(void) {
  request[0] = MPI_REQUEST_NULL;
  MPI_Test(request, &flag, MPI_STATUS_IGNORE);
}
static void starts(void) {
  MPI_Startall(2, request);
  MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
}
static void makes_types(void) {
  MPI_Datatype type;
  MPI_Type_vector(10, 1, 2, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&type);
}
static void sends_derived(void) {
  MPI_Sendrecv(in, 1, derived, 0, 1, out, 1, derived, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static const struct { const char *name; void (*run)(void); } calls[] = {
  {"send-receive-wait", sends}, {"nonblocking-waitall", waits_for_all}, {"sendrecv", exchanges},
  {"pack", packs}, {"unpack", unpacks}, {"bcast", broadcasts}, {"alltoall", gathers}, {"alltoallw", scatters_to_each},
  {"test-null", tests_nothing}, {"persistent", starts}, {"create-commit-free", makes_types},
  {"sendrecv-derived", sends_derived},
};

/* Makes the calls that are counted: callgrind counts the instructions inside this function, whose
 * name benches/instructions.py knows. */
__attribute__((noinline)) void counted_calls(void (*run)(void), long rounds) {
  for (long k = 0; k < rounds; k++) run();
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (argc < 3) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) puts(calls[i].name);
    MPI_Finalize();
    return 0;
  }
  int persistent = !strcmp(argv[1], "persistent"), found = 0;
  MPI_Type_vector(10, 1, 2, MPI_DOUBLE, &derived);
  MPI_Type_commit(&derived);
  if (persistent) {
    MPI_Recv_init(out, 60, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, request);
    MPI_Send_init(in, 60, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, request + 1);
  }
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (!strcmp(calls[i].name, argv[1])) {
      found = 1;
      for (int k = 0; k < 50; k++) calls[i].run();
      clock_gettime(CLOCK_MONOTONIC_COARSE, &then);
      stands_still = 1;
      calls[i].run();
      struct timespec begin, end;
      syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begin);
      counted_calls(calls[i].run, atol(argv[2]));
      syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &end);
      stands_still = 0;
      printf("%.1f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / atof(argv[2]));
    }
  if (persistent) {
    MPI_Request_free(request);
    MPI_Request_free(request + 1);
  }
  MPI_Type_free(&derived);
  MPI_Finalize();
  return !found;
}
