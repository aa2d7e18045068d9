/* Two users of MPI in one process, one with MPI_Init and one with sessions, exchange messages of a
 * derived type with the process itself (MPI 5.0, 11.3).
 *
 *     users threads N: a thread opens and closes sessions while the program exchanges N messages on
 *       the world
 *     users world N: the world is finalized between two halves of N messages on a communicator of a
 *       session
 *     users init N: N sessions, one after another, while the world is initialized; a message
 *       follows each session */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 320 };
struct element {
  int i;
  double d[2];
  char c;
};
static struct element from[ELEMENTS], into[ELEMENTS];
static MPI_Datatype type;
static int wrong;
static volatile int stop;

static MPI_Session open_session(void) {
  MPI_Session session;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session)) exit(2);
  return session;
}
static void close_session(MPI_Session session) {
  if (MPI_Session_finalize(&session)) exit(3);
}
static void *sessions(void *count) {
  while (!stop) {
    close_session(open_session());
    ++*(int *)count;
  }
  return NULL;
}
static void make_type(void) {
  int lengths[3] = {1, 2, 1};
  MPI_Aint places[3] = {0, 8, 24};
  MPI_Datatype parts[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, packed;
  MPI_Type_create_struct(3, lengths, places, parts, &packed);
  MPI_Type_create_resized(packed, 0, sizeof(struct element), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&packed);
  for (int i = 0; i < ELEMENTS; i++) from[i] = (struct element){i, {i * 0.5, -i}, (char)i};
}
static void exchange(int round, MPI_Comm comm) {
  MPI_Request requests[2];
  int n = 20 + round % (ELEMENTS - 20), bad = 0;
  memset(into, 0xff, sizeof into);
  MPI_Irecv(into, n, type, 0, 1, comm, &requests[0]);
  MPI_Isend(from, n, type, 0, 1, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < n; i++) {
    struct element *e = &into[i];
    bad |= e->i != i || e->d[0] != i * 0.5 || e->d[1] != -i || e->c != (char)i;
  }
  wrong += bad;
}

int main(int argc, char **argv) {
  int n = argc > 2 ? atoi(argv[2]) : 0, provided, opened = 0;
  const char *mode = n ? argv[1] : "";
  MPI_Session session = MPI_SESSION_NULL;
  if (!strcmp(mode, "world")) session = open_session();
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  make_type();
  if (!strcmp(mode, "threads")) {
    pthread_t thread;
    pthread_create(&thread, NULL, sessions, &opened);
    for (int i = 0; i < n; i++) exchange(i, MPI_COMM_SELF);
    stop = 1;
    pthread_join(thread, NULL);
    wrong += provided != MPI_THREAD_MULTIPLE || !opened;
    MPI_Finalize();
  } else if (!strcmp(mode, "init")) {
    for (int i = 0; i < n; i++) {
      close_session(open_session());
      exchange(i, MPI_COMM_SELF);
    }
    MPI_Finalize();
  } else if (!strcmp(mode, "world")) {
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    MPI_Comm_create_from_group(group, "ddtc.users", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    for (int i = 0; i < n / 2; i++) exchange(i, comm);
    MPI_Finalize();
    for (int i = n / 2; i < n; i++) exchange(i, comm);
    MPI_Comm_free(&comm);
    MPI_Type_free(&type);
    close_session(session);
  }
  printf("wrong %d\n", wrong);
  return 0;
}
