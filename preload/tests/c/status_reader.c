/* A second thread asks for the state of a receive while the first one completes it, and uses the
 * buffer as soon as the receive is complete (MPI 5.0, 3.7.6). The modes:
 *   wait    a persistent receive, MPI_Wait
 *   short   as `wait`, and the message is shorter than the receive
 *   test    a persistent receive, MPI_Testall together with a request that is not complete before
 *           the second thread goes on
 *   once    as `test`, with MPI_Irecv
 * A second argument `any`, `all` or `some` asks by that form of MPI_Request_get_status, if the library
 * has it, for the receive together with a null request. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
enum { M = 8192, ROUNDS = 200 };
static double in[4 * M];
static MPI_Request asked;
static volatile int round_of_first;
static int wrong;
typedef int (*any_t)(int, MPI_Request *, int *, int *, MPI_Status *);
typedef int (*all_t)(int, MPI_Request *, int *, MPI_Status *);
typedef int (*some_t)(int, MPI_Request *, int *, int *, MPI_Status *);
static const char *form = "";
static int is_complete(void) {
  MPI_Request two[2] = {MPI_REQUEST_NULL, asked};
  MPI_Status statuses[2];
  int flag = 0, index = -1, count = 0, indices[2] = {-1, -1};
  char name[40];
  snprintf(name, sizeof name, "MPI_Request_get_status_%s", form);
  void *function = *form ? dlsym(RTLD_DEFAULT, name) : NULL;
  if (!function) MPI_Request_get_status(asked, &flag, statuses);
  else if (!strcmp(form, "all")) ((all_t)function)(2, two, &flag, statuses);
  else if (!strcmp(form, "any")) {
    ((any_t)function)(2, two, &index, &flag, statuses);
    if (flag && index != 1) wrong++;
  } else {
    ((some_t)function)(2, two, &count, indices, statuses);
    flag = count == 1 && indices[0] == 1;
    if (!flag && count) wrong++;
  }
  if (two[1] != asked) wrong++;
  return flag;
}
static void *ask(void *unused) {
  for (int k = 1; k <= ROUNDS; k++) {
    while (round_of_first < k) sched_yield();
    while (!is_complete()) {
    }
    for (int i = 0; i < 4 * M; i++)
      if (in[i] != (i % 2 || i >= 2 * M ? -1 : k + i)) {
        wrong++;
        break;
      }
    in[0] = -7;
    MPI_Send(&k, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  }
  return unused;
}
int main(int argc, char **argv) {
  int rank, level;
  int is_short = !strcmp(argv[1], "short"), is_once = !strcmp(argv[1], "once");
  if (argc > 2) form = argv[2];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  if (level < MPI_THREAD_MULTIPLE) return puts("no threads"), MPI_Finalize(), 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype type;
  MPI_Type_vector(M, 1, 2, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  if (rank == 0) {
    pthread_t thread;
    MPI_Request two[2];
    int ok, lost = 0;
    MPI_Recv_init(in, 1 + is_short, type, 1, 1, MPI_COMM_WORLD, &two[0]);
    MPI_Request persistent = two[0];
    pthread_create(&thread, NULL, ask, NULL);
    for (int k = 1; k <= ROUNDS; k++) {
      for (int i = 0; i < 4 * M; i++) in[i] = -1;
      if (is_once) MPI_Irecv(in, 1, type, 1, 1, MPI_COMM_WORLD, &two[0]);
      else MPI_Start(&two[0]);
      MPI_Irecv(&ok, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &two[1]);
      asked = two[0];
      round_of_first = k;
      MPI_Send(&k, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
      if (is_short || !strcmp(argv[1], "wait")) {
        MPI_Wait(&two[0], MPI_STATUS_IGNORE);
        MPI_Wait(&two[1], MPI_STATUS_IGNORE);
      } else {
        for (int flag = 0; !flag; sched_yield()) MPI_Testall(2, two, &flag, MPI_STATUSES_IGNORE);
      }
      lost += in[0] != -7;
    }
    pthread_join(thread, NULL);
    printf("rounds %d wrong %d lost %d\n", ROUNDS, wrong, lost);
    MPI_Request_free(&persistent);
  } else {
    for (int k = 1; k <= ROUNDS; k++) {
      int got, ok = 1;
      for (int i = 0; i < 2 * M; i++) in[i] = k + i;
      MPI_Recv(&got, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(in, 1, type, 0, 1, MPI_COMM_WORLD);
      MPI_Recv(&got, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&ok, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
    }
  }
  MPI_Type_free(&type);
  MPI_Finalize();
  return 0;
}
