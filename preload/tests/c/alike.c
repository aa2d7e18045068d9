/* Types that are made for a step each, of a list of places that no other has: STEPS of them, of which each moves USES messages there and back. Prints how many bytes
 * were wrong: of the elements, and between them. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 5000, ROOM = 170000 };
static int user[ROOM], places[PLACES];

/* The same lists on both ranks, in ascending order. */
static void draw(uint64_t step) {
  uint64_t word = step * 0x9e3779b97f4a7c15u + 1;
  int at = 0;
  for (int i = 0; i < PLACES; i++) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    at += 2 + (int)(word >> 60) * 2;
    places[i] = at;
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, steps = atoi(argv[1]), uses = atoi(argv[2]);
  long wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; step < steps; step++) {
    MPI_Datatype t;
    draw(step);
    MPI_Type_create_indexed_block(PLACES, 1, places, MPI_INT, &t);
    MPI_Type_commit(&t);
    for (int use = 0; use < uses; use++) {
      int first = step * 1000 + use;
      for (int i = 0; i < ROOM; i++) user[i] = -1;
      if (rank == 0) {
        for (int i = 0; i < PLACES; i++) user[places[i]] = first + i;
        MPI_Send(user, 1, t, 1, 0, MPI_COMM_WORLD);
        memset(user, 0xff, sizeof user);
        MPI_Recv(user, 1, t, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(user, 1, t, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(user, 1, t, 0, 0, MPI_COMM_WORLD);
      }
      for (int i = 0; i < PLACES; i++) { wrong += user[places[i]] != first + i; user[places[i]] = -1; }
      for (int i = 0; i < ROOM; i++) wrong += user[i] != -1;
    }
    MPI_Type_free(&t);
  }
  printf("wrong %ld\n", wrong);
  MPI_Finalize();
  return 0;
}
