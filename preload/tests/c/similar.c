/* Two ranks exchange messages of derived types that are made anew in each step.
 *
 *     similar STEPS USES [KIND]
 *
 * In each step both ranks make and commit a type, rank 0 sends USES messages of the type to rank 1,
 * rank 1 sends each of them back, and both ranks free the type. KIND selects the types. The types
 * of the kind `list`, which is the default, have 5000 ints at places that differ in each step. A
 * type of the kind `panel` is a vector of 8 columns with gaps between them, and a type of the kind
 * `dense` is a vector of 8 columns without gaps. The columns of both kinds are one element shorter
 * in each step than in the step before. Prints the number of elements that have wrong values, plus
 * the number of ints between the elements that have changed. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 5000, ELEMENTS = 170000, COLUMNS = 8, HEIGHT = 700, PITCH = 800 };
static int user[ELEMENTS], places[COLUMNS * HEIGHT], n;

/* Makes a type of PLACES ints at random places in ascending order. The places depend only on the
 * step, so both ranks make the same type. */
static MPI_Datatype list(uint64_t step) {
  MPI_Datatype t;
  n = PLACES;
  uint64_t word = step * 0x9e3779b97f4a7c15u + 1;
  int at = 0;
  for (int i = 0; i < PLACES; i++) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    at += 2 + (int)(word >> 60) * 2;
    places[i] = at;
  }
  MPI_Type_create_indexed_block(PLACES, 1, places, MPI_INT, &t);
  return t;
}

static MPI_Datatype columns(int step, int is_dense) {
  MPI_Datatype t;
  int height = HEIGHT - step, pitch = is_dense ? height : PITCH;
  n = COLUMNS * height;
  for (int i = 0; i < n; i++) places[i] = i / height * pitch + i % height;
  MPI_Type_vector(COLUMNS, height, pitch, MPI_INT, &t);
  return t;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, steps = atoi(argv[1]), uses = atoi(argv[2]);
  const char *kind = argc > 3 ? argv[3] : "list";
  long wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; step < steps; step++) {
    MPI_Datatype t = strcmp(kind, "list") ? columns(step, !strcmp(kind, "dense")) : list(step);
    MPI_Type_commit(&t);
    for (int use = 0; use < uses; use++) {
      int first = step * 1000 + use;
      for (int i = 0; i < ELEMENTS; i++) user[i] = -1;
      if (rank == 0) {
        for (int i = 0; i < n; i++) user[places[i]] = first + i;
        MPI_Send(user, 1, t, 1, 0, MPI_COMM_WORLD);
        memset(user, 0xff, sizeof user);
        MPI_Recv(user, 1, t, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(user, 1, t, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(user, 1, t, 0, 0, MPI_COMM_WORLD);
      }
      for (int i = 0; i < n; i++) { wrong += user[places[i]] != first + i; user[places[i]] = -1; }
      for (int i = 0; i < ELEMENTS; i++) wrong += user[i] != -1;
    }
    MPI_Type_free(&t);
  }
  printf("wrong %ld\n", wrong);
  MPI_Finalize();
  return 0;
}
