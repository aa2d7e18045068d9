/* Two ranks have a persistent collective operation whose second start is refused, because one of
 * the requests of MPI_Startall is null. The operation stays inactive, so waiting for it must end at
 * once, and no byte of the receive buffer may change.
 *
 * Argument: `code` for the error handler MPI_ERRORS_RETURN, or `handler` for a handler of the
 * program that returns, after which MPICH returns success. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { N = 3000 };

static void handler(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

int main(int argc, char **argv) {
  static int in[2 * N], out[2 * N], old[2 * N];
  int flag = 0, rank;
  MPI_Datatype t;
  MPI_Errhandler returns;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_create_errhandler(handler, &returns);
  if (!strcmp(argv[1], "code")) returns = MPI_ERRORS_RETURN;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, returns);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, returns);
  MPI_Type_vector(N / 2, 1, 2, MPI_INT, &t);
  MPI_Type_commit(&t);
  for (int i = 0; i < 2 * N; i++) out[i] = i + 1;
  for (int i = 0; i < 50; i++)
    MPI_Alltoall(out, 1, t, in, 1, t, MPI_COMM_WORLD);
  MPI_Alltoall_init(out, 1, t, in, 1, t, MPI_COMM_WORLD, MPI_INFO_NULL, requests);
  memset(in, 0, sizeof in);
  MPI_Start(requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
  if (rank) printf("started: %s\n", in[2] == N + 2 ? "received" : "wrong");
  memset(in, 0, sizeof in);
  MPI_Startall(2, requests);
  MPI_Wait(requests, MPI_STATUS_IGNORE);
  if (rank) printf("refused: %s\n", memcmp(in, old, sizeof in) ? "wrong" : "nothing received");
  MPI_Start(requests);
  while (!flag) MPI_Test(requests, &flag, MPI_STATUS_IGNORE);
  if (rank) printf("started again: %s\n", in[2] == N + 2 ? "received" : "wrong");
  MPI_Request_free(requests);
  MPI_Type_free(&t);
  MPI_Finalize();
  return 0;
}
