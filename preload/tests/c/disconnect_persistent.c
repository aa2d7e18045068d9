/* An inactive persistent receive is not freed before its communicator is disconnected. MPICH 5.0
 * frees the request then, so a new request may get its handle. */
#include <mpi.h>
#include <stdio.h>
enum { N = 16384 };
static double old[2 * N], out[2 * N];
static int fresh[4 * N];
int main(int argc, char **argv) {
  int rank, changed = 0, wrong = 0;
  MPI_Comm comm;
  MPI_Datatype t;
  MPI_Request p = MPI_REQUEST_NULL, q = MPI_REQUEST_NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &t);
  MPI_Type_commit(&t);
  if (rank == 0) {
    MPI_Recv_init(old, 1, t, 1, 1, comm, &p);
    for (int k = 0; k < 3; k++) MPI_Start(&p), MPI_Wait(&p, MPI_STATUS_IGNORE);
  } else for (int k = 0; k < 3; k++) MPI_Send(out, 1, t, 0, 1, comm);
  MPI_Comm_disconnect(&comm);
  for (int i = 0; i < 2 * N; i++) old[i] = 7;
  for (int i = 0; i < 4 * N; i++) fresh[i] = rank ? i : -1;
  if (rank == 0) {
    MPI_Recv_init(fresh, 4 * N, MPI_INT, 1, 2, MPI_COMM_WORLD, &q);
    MPI_Start(&q);
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2 * N; i++) changed += old[i] != 7;
    for (int i = 0; i < 4 * N; i++) wrong += fresh[i] != i;
    printf("same handle %d, old buffer changed %d, new buffer wrong %d\n", p == q, changed, wrong);
    MPI_Request_free(&q);
  } else MPI_Send(fresh, 4 * N, MPI_INT, 0, 2, MPI_COMM_WORLD);
  MPI_Type_free(&t);
  MPI_Finalize();
  return 0;
}
