/* Loads a Fortran binding by dlopen while requests are active.
 *
 *     late LIBRARY HOW [FIRST]
 *
 * LIBRARY is the path of the binding. HOW is a string of letters, which may be empty:
 *
 *     f  The preload library can follow the calls of the binding. Half of the requests from before
 *        the load are then completed by the binding, and the other half by C functions. Without f,
 *        C functions complete all of these requests.
 *     g  The names of the library are global, otherwise local.
 *
 * Receives that are made after the load are always completed by the binding. The first of them is
 * started in the same tick of the coarse clock as the load.
 *
 * FIRST is the path of a plugin. If it is given, the program first loads and closes the plugin, and
 * then moves LIBRARY to the path of the plugin. The next dlopen of this path must load LIBRARY and
 * not the plugin. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N = 8, INTS = 300 };
static int from[N][INTS], into[N][INTS], wrong;
static MPI_Datatype type;
static void (*complete)(int *, int *, int *), (*begin)(int *, int *), (*release)(int *, int *);

static void fill(int round) {
  for (int i = 0; i < N; i++)
    for (int k = 0; k < INTS; k++) from[i][k] = round * 10000 + i * 1000 + k, into[i][k] = -1;
}
static void check(const char *what) {
  for (int i = 0; i < N; i++)
    for (int k = 0; k < INTS; k++)
      if (into[i][k] != (k % 3 ? -1 : from[i][k])) {
        printf("%s: message %d, element %d: %d\n", what, i, k, into[i][k]);
        wrong++;
        break;
      }
}
static void by_binding(MPI_Request *r) {
  int request = MPI_Request_c2f(*r), status[20], error;
  complete(&request, status, &error);
  *r = MPI_Request_f2c(request);
}
static void send_all(void) {
  for (int i = 0; i < N; i++) MPI_Send(from[i], 1, type, 0, i, MPI_COMM_SELF);
}
/* Waits for the next tick of the coarse clock, so that the calls that follow are in one tick. */
static void tick(void) {
  struct timespec first, now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &first);
  do clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  while (now.tv_nsec == first.tv_nsec);
}

int main(int argc, char **argv) {
  const char *file = argv[1], *how = argv[2];
  int followed = !!strchr(how, 'f'), mode = RTLD_NOW | (strchr(how, 'g') ? RTLD_GLOBAL : RTLD_LOCAL);
  MPI_Request r[N], p[N];
  MPI_Init(&argc, &argv);
  MPI_Type_vector(100, 1, 3, MPI_INT, &type);
  MPI_Type_commit(&type);
  fill(1);
  for (int i = 0; i < N; i++) MPI_Recv_init(into[i], 1, type, 0, i, MPI_COMM_SELF, &p[i]);
  MPI_Startall(N, p);
  send_all();
  MPI_Waitall(N, p, MPI_STATUSES_IGNORE);
  check("persistent, before");
  fill(2);
  for (int i = 0; i < N; i++) MPI_Irecv(into[i], 1, type, 0, i, MPI_COMM_SELF, &r[i]);
  if (argc > 3) {
    const char *plugin = argv[3];
    void *first = dlopen(plugin, mode);
    if (!first || dlsym(first, "mpi_wait_")) return printf("%s: %s\n", plugin, dlerror()), 1;
    /* The preload library examines the newly loaded objects in one of the following calls, while
     * the plugin is loaded. */
    tick();
    MPI_Send(from[0], 1, type, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Irecv(into[0], 1, type, 0, 0, MPI_COMM_SELF, &r[0]);
    dlclose(first);
    if (dlopen(plugin, mode | RTLD_NOLOAD)) wrong++, printf("%s: kept\n", plugin);
    if (rename(file, plugin)) return perror(file), 1;
    file = plugin;
  }
  tick();
  send_all();
  void *library = dlopen(file, mode);
  if (!library) return printf("%s\n", dlerror()), 1;
  *(void **)&complete = dlsym(library, "mpi_wait_");
  *(void **)&begin = dlsym(library, "mpi_start_");
  *(void **)&release = dlsym(library, "mpi_request_free_");
  if (!complete || !begin || !release) return printf("%s: no binding\n", file), 1;
  /* Start a receive in the tick of the load and complete it by the binding, which calls C functions
   * or bypasses them. */
  int late[INTS], sent[INTS];
  for (int k = 0; k < INTS; k++) late[k] = -1, sent[k] = 7 * k;
  MPI_Request q;
  MPI_Irecv(late, 1, type, 0, N, MPI_COMM_SELF, &q);
  MPI_Send(sent, 1, type, 0, N, MPI_COMM_SELF);
  by_binding(&q);
  for (int k = 0; k < INTS; k++)
    if (late[k] != (k % 3 ? -1 : sent[k])) {
      wrong++, printf("in the same tick, element %d: %d\n", k, late[k]);
      break;
    }
  for (int i = 0; i < N; i++)
    if (followed && i % 2) by_binding(&r[i]);
    else MPI_Wait(&r[i], MPI_STATUS_IGNORE);
  check("started before");
  fill(3);
  for (int i = 0; i < N; i++)
    if (followed && i % 2) {
      int request = MPI_Request_c2f(p[i]), error;
      begin(&request, &error);
    } else MPI_Start(&p[i]);
  send_all();
  for (int i = 0; i < N; i++)
    if (followed && i % 2) by_binding(&p[i]);
    else MPI_Wait(&p[i], MPI_STATUS_IGNORE);
  check("made before");
  for (int i = 0; i < N; i++) {
    if (followed && i % 2) {
      int request = MPI_Request_c2f(p[i]), error;
      release(&request, &error);
      p[i] = MPI_Request_f2c(request);
    } else MPI_Request_free(&p[i]);
    wrong += p[i] != MPI_REQUEST_NULL;
  }
  for (int round = 4; round < 8; round++) {
    fill(round);
    for (int i = 0; i < N; i++) MPI_Irecv(into[i], 1, type, 0, i, MPI_COMM_SELF, &r[i]);
    send_all();
    for (int i = 0; i < N; i++) by_binding(&r[i]);
    check("started afterwards");
  }
  MPI_Finalize();
  printf("wrong %d\n", wrong);
  return 0;
}
