/* Tests a receive under user-level failure mitigation, as its specification defines it. Rank 2 dies
 * while rank 1 waits for a message from any source. The wait ends with MPI_ERR_PROC_FAILED_PENDING,
 * and the request is still pending. After MPIX_Comm_failure_ack, rank 1 waits for the request
 * again, and rank 0 sends the message.
 *
 * Argument: 0 to wait by MPI_Waitall, 1 by MPI_Wait, 2 by MPI_Waitsome, 3 by MPI_Test until the
 * request is complete, 4 if the receive is persistent and rank 1 frees its request while it is
 * active. With 4, nothing that arrives for the receive may change the message that rank 1 sends
 * meanwhile. */
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 300 };
/* An element of the messages, {int, double[2], char}: 21 of its 32 bytes are part of the type. */
typedef struct { int i; double d[2]; char c; } Item;

static MPI_Datatype items(void) {
  int lengths[3] = {1, 2, 1};
  MPI_Aint places[3] = {0, 8, 24};
  MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, s, t;
  MPI_Type_create_struct(3, lengths, places, types, &s);
  MPI_Type_create_resized(s, 0, sizeof(Item), &t);
  MPI_Type_commit(&t);
  return t;
}

static int wait_by(int call, MPI_Request *r, MPI_Status *s) {
  int flag = 0, code = 0, out, index;
  switch (call) {
  case 0: return MPI_Waitall(1, r, s);
  case 1: return MPI_Wait(r, s);
  case 2: return MPI_Waitsome(1, r, &out, &index, s);
  default: while (!flag && !code) code = MPI_Test(r, &flag, s); return code;
  }
}

static pid_t launcher;

/* Waits until the launcher of the job has ended, as it does when another rank calls MPI_Abort, and
 * then ends this process. */
static void wait_for_the_end(void) {
  while (getppid() == launcher) usleep(10000);
  _exit(0);
}

static int count_wrong(const Item *items) {
  int wrong = 0;
  for (int i = 0; i < N; i++)
    wrong += items[i].i != i || items[i].d[0] != i || items[i].d[1] != -i || items[i].c != 1;
  return wrong;
}

/* Frees the request of an active persistent receive from any source on rank 1. After rank 2 has
 * died, rank 0 sends a message for that receive, which arrives while rank 1 sends another
 * message. */
static void freed(int rank, Item *out, Item *in, MPI_Datatype t) {
  int go = 1, flag;
  MPI_Request r, sent;
  if (rank == 0) {
    MPI_Recv(&go, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++) in[i] = (Item){-1, {-1, -1}, 2};
    MPI_Send(in, N, t, 1, 7, MPI_COMM_WORLD);
    MPI_Send(&go, 1, MPI_INT, 1, 10, MPI_COMM_WORLD);
    MPI_Recv(in, N, t, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("sent meanwhile: %d of %d wrong\n", count_wrong(in), N);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 0);
  }
  MPI_Recv_init(in, N, t, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &r);
  MPI_Start(&r);
  MPI_Request_free(&r);
  MPI_Irecv(&flag, 1, MPI_INT, 0, 10, MPI_COMM_WORLD, &r);
  MPI_Send(&go, 1, MPI_INT, 2, 9, MPI_COMM_WORLD);
  /* This receive from rank 2 fails as soon as the MPI library knows that rank 2 has died. */
  MPI_Recv(&go, 1, MPI_INT, 2, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0, done; i < 100; i++) MPI_Test(&r, &done, MPI_STATUS_IGNORE);
  MPIX_Comm_failure_ack(MPI_COMM_WORLD);
  MPI_Isend(out, N, t, 0, 8, MPI_COMM_WORLD, &sent);
  MPI_Send(&go, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  wait_for_the_end();
}

int main(int argc, char **argv) {
  static Item out[N], in[N];
  int rank, code, class, call = atoi(argv[1]), go = 1;
  MPI_Request r;
  MPI_Status s;
  launcher = getppid();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Datatype t = items();
  for (int i = 0; i < N; i++) out[i] = (Item){i, {i, -i}, 1}, in[i].i = -1;
  /* Use the type on ranks 0 and 1 before rank 2 fails. */
  for (int k = 0; k < 20 && rank < 2; k++)
    MPI_Sendrecv(out, N, t, 1 - rank, 1, in, N, t, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  memset(in, 0, sizeof in);
  if (rank == 2) {
    MPI_Recv(&go, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    raise(SIGKILL);
  }
  if (call == 4) freed(rank, out, in, t);
  if (rank == 0) {
    MPI_Recv(&go, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, N, t, 1, 7, MPI_COMM_WORLD);
    wait_for_the_end();
  }
  memset(&s, 0, sizeof s);
  MPI_Irecv(in, N, t, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &r);
  MPI_Send(&go, 1, MPI_INT, 2, 9, MPI_COMM_WORLD);
  code = wait_by(call, &r, &s);
  MPI_Error_class(code, &class);
  if (class == MPI_ERR_IN_STATUS) MPI_Error_class(s.MPI_ERROR, &class);
  printf("first wait: %s, request %s\n", class == MPI_ERR_PROC_FAILED_PENDING ? "PROC_FAILED_PENDING" : "another end",
         r == MPI_REQUEST_NULL ? "gone" : "pending");
  MPIX_Comm_failure_ack(MPI_COMM_WORLD);
  MPI_Send(&go, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  code = wait_by(call, &r, &s);
  printf("second wait: code %d, %d of %d wrong\n", code, count_wrong(in), N);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 0);
  return 0;
}
