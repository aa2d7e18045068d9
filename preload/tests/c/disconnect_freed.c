/* Frees an active request, and disconnects its communicator (MPI 5.0, 3.7.3 and 11.10.4). The
 * argument says which rank frees: `send` or `recv`. With `jump` the message of the freed receive is
 * too long, and the error handler of the communicator, if it is called, leaves the call by a jump. */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { N = 1 << 19 };
static double b[2 * N];
static jmp_buf place;
static void jump(MPI_Comm *comm, int *code, ...) {
  (void)comm, (void)code;
  longjmp(place, 1);
}
int main(int argc, char **argv) {
  int rank, wrong = 0, receives = argc > 1 && !strcmp(argv[1], "recv");
  int jumps = argc > 1 && !strcmp(argv[1], "jump");
  MPI_Comm comm;
  MPI_Datatype t, half;
  MPI_Request r;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &t);
  MPI_Type_commit(&t);
  MPI_Type_vector(N / 2, 1, 2, MPI_DOUBLE, &half);
  MPI_Type_commit(&half);
  for (int i = 0; i < 2 * N; i++) b[i] = rank ? i : -1;
  for (int i = 0; i < 30; i++) { /* the type is decoded and compiled */
    if (rank) MPI_Send(b, 1, t, 0, 0, MPI_COMM_WORLD);
    else MPI_Recv(b, 1, t, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 2 * N; i++) b[i] = rank ? i : -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  alarm(20);
  if (receives) { /* rank 0 frees a receive; after the disconnect the bytes must be there */
    if (rank == 0) MPI_Irecv(b, 1, t, 1, 1, comm, &r), MPI_Request_free(&r);
    else sleep(1), MPI_Send(b, 1, t, 0, 1, comm);
  } else if (jumps && rank == 0) {
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    if (!setjmp(place)) {
      MPI_Irecv(b, 1, half, 1, 1, comm, &r);
      MPI_Request_free(&r);
    }
    sleep(1);
    for (volatile int i = 0; i < 100; i++) {
      int got, sent = 1;
      if (setjmp(place)) continue;
      MPI_Irecv(&got, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &r);
      MPI_Send(&sent, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
  } else if (jumps) {
    MPI_Send(b, 1, t, 0, 1, comm);
  } else { /* rank 1 frees a send that is not complete */
    if (rank == 1) MPI_Isend(b, 1, t, 0, 1, comm, &r), MPI_Request_free(&r);
    else sleep(1), MPI_Recv(b, 1, t, 1, 1, comm, MPI_STATUS_IGNORE);
  }
  MPI_Comm_disconnect(&comm);
  if (rank == 0 && !jumps) for (int i = 0; i < 2 * N; i++) wrong += b[i] != (i % 2 ? -1 : i);
  if (rank == 0) printf("done wrong %d\n", wrong);
  MPI_Type_free(&t);
  MPI_Type_free(&half);
  MPI_Finalize();
  return 0;
}
