/* Rank 0 frees an active receive and calls MPI_Finalize. Its message comes 4 seconds later (MPI 5.0,
 * 3.7.3 and 11.2.2). */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
enum { N = 16384 };
static double b[2 * N];
int main(int argc, char **argv) {
  int rank, wrong = 0;
  MPI_Datatype t;
  MPI_Request r;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &t);
  MPI_Type_commit(&t);
  for (int i = 0; i < 2 * N; i++) b[i] = rank ? i : -1;
  for (int i = 0; i < 30; i++) {
    if (rank) MPI_Send(b, 1, t, 0, 0, MPI_COMM_WORLD);
    else MPI_Recv(b, 1, t, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 0; i < 2 * N; i++) b[i] = rank ? 2 * i : -1;
  if (rank == 0) MPI_Irecv(b, 1, t, 1, 1, MPI_COMM_WORLD, &r), MPI_Request_free(&r);
  else {
    sleep(4);
    alarm(20);
    MPI_Ssend(b, 1, t, 0, 1, MPI_COMM_WORLD);
  }
  MPI_Type_free(&t);
  MPI_Finalize();
  if (rank == 0) {
    for (int i = 0; i < 2 * N; i++) wrong += b[i] != (i % 2 ? -1 : 2 * i);
    printf("done wrong %d\n", wrong);
  }
  return 0;
}
