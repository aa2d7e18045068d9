/* Makes persistent requests over memory that is inaccessible until the requests are started. The
 * buffers of a persistent operation belong to the program until MPI_Start, so the calls that make
 * the requests may neither read nor write them. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>

enum { N = 80000, ROUNDS = 3 };

static double *inaccessible(void) {
  return mmap(NULL, 2 * N * sizeof(double), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(int argc, char **argv) {
  int wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Datatype t;
  MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &t);
  MPI_Type_commit(&t);
  double *out = inaccessible(), *in = inaccessible();
  MPI_Request r[2];
  MPI_Send_init(out, 1, t, 0, 1, MPI_COMM_SELF, &r[0]);
  MPI_Recv_init(in, 1, t, 0, 1, MPI_COMM_SELF, &r[1]);
  mprotect(out, 2 * N * sizeof(double), PROT_READ | PROT_WRITE);
  mprotect(in, 2 * N * sizeof(double), PROT_READ | PROT_WRITE);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < 2 * N; i++) out[i] = i + round, in[i] = -1;
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2 * N; i++) wrong += in[i] != (i % 2 ? -1 : out[i]);
  }
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
  MPI_Type_free(&t);
  MPI_Finalize();
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
