/* Frees an active request, and disconnects its communicator (MPI 5.0, 3.7.3 and 11.10.4). The
 * argument says which rank frees: `send` or `recv`. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { N = 1 << 19 };
static double b[2 * N];
int main(int argc, char **argv) {
  int rank, wrong = 0, receives = argc > 1 && !strcmp(argv[1], "recv");
  MPI_Comm comm;
  MPI_Datatype t;
  MPI_Request r;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &t);
  MPI_Type_commit(&t);
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
  } else { /* rank 1 frees a send that is not complete */
    if (rank == 1) MPI_Isend(b, 1, t, 0, 1, comm, &r), MPI_Request_free(&r);
    else sleep(1), MPI_Recv(b, 1, t, 1, 1, comm, MPI_STATUS_IGNORE);
  }
  MPI_Comm_disconnect(&comm);
  if (rank == 0) for (int i = 0; i < 2 * N; i++) wrong += b[i] != (i % 2 ? -1 : i);
  if (rank == 0) printf("done wrong %d\n", wrong);
  MPI_Type_free(&t);
  MPI_Finalize();
  return 0;
}
