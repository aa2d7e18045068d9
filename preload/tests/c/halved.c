/* A program for the PMPI layer split.c, which splits MPI_COMM_WORLD. With that layer there are two
 * worlds, and the values that ranks send differ between the worlds. The program sends vectors of
 * these values by messages, broadcasts and MPI_Alltoall, and prints for each of the three how many
 * elements were wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 100, STRIDE = 3, EXTENT = BLOCKS * STRIDE, ROUNDS = 30, GUARD = -1 };

static int place(int i) { return i % STRIDE == 0; }

int main(int argc, char **argv) {
  alarm(600);
  MPI_Init(&argc, &argv);
  int rank, size, world = 0, wrong[3] = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Datatype blocks, vector;
  MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_INT, &blocks);
  MPI_Type_create_resized(blocks, 0, EXTENT * sizeof(int), &vector);
  MPI_Type_commit(&vector);
  /* Allocate twice as much memory as the program's world needs, so that accesses for a larger world
   * are noticed. */
  int n = 2 * size * EXTENT, *sent = malloc(n * sizeof *sent), *received = malloc(n * sizeof *received);
  if (rank == 0) world = getpid();
  MPI_Bcast(&world, 1, MPI_INT, 0, MPI_COMM_WORLD);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < n; i++) sent[i] = world + 1000 * rank + i, received[i] = GUARD;
    MPI_Alltoall(sent, 1, vector, received, 1, vector, MPI_COMM_WORLD);
    for (int from = 0; from < 2 * size; from++)
      for (int i = 0; i < EXTENT; i++) {
        int expected = from < size && place(i) ? world + 1000 * from + rank * EXTENT + i : GUARD;
        wrong[0] += received[from * EXTENT + i] != expected;
      }
    for (int i = 0; i < n; i++) received[i] = rank == 0 ? sent[i] : GUARD;
    MPI_Bcast(received, 1, vector, 0, MPI_COMM_WORLD);
    for (int i = 0; i < EXTENT; i++)
      wrong[1] += received[i] != (rank == 0 || place(i) ? world + i : GUARD);
    if (rank == 0) MPI_Send(sent, 1, vector, 1, 7, MPI_COMM_WORLD);
    if (rank == 1) {
      for (int i = 0; i < n; i++) received[i] = GUARD;
      MPI_Recv(received, 1, vector, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 0; i < EXTENT; i++) wrong[2] += received[i] != (place(i) ? world + i : GUARD);
    }
  }
  printf("rank %d of %d: wrong by alltoall %d, by broadcast %d, by message %d\n", rank, size, wrong[0], wrong[1], wrong[2]);
  fflush(stdout);
  MPI_Type_free(&vector);
  MPI_Type_free(&blocks);
  free(sent);
  free(received);
  MPI_Finalize();
  return 0;
}
