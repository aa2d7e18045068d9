/* Two ranks send each other N doubles, ROUNDS times. The type takes every other double. Rank 0
 * prints how many elements were wrong.
 *
 * Usage: alternating N ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, n = argc > 2 ? atoi(argv[1]) : 0, rounds = argc > 2 ? atoi(argv[2]) : 0, wrong = 0, all;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *out = calloc(n, 2 * sizeof *out), *in = calloc(n, 2 * sizeof *in);
  MPI_Datatype t;
  MPI_Type_vector(n, 1, 2, MPI_DOUBLE, &t);
  MPI_Type_commit(&t);
  for (int round = 0; round < rounds; round++) {
    for (int i = round % 7; i < n; i += 7) out[2 * i] = rank + 2.0 * round + i;
    if (rank == 0) MPI_Send(out, 1, t, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(in, 1, t, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, 1, t, 0, 0, MPI_COMM_WORLD);
    for (int i = round % 7; i < n; i += 7) wrong += in[2 * i] != 1 - rank + 2.0 * round + i || in[2 * i + 1] != 0;
  }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\n", all);
  MPI_Type_free(&t);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
