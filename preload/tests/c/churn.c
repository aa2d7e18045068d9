/* Commits and frees as many types as the argument says, such as a million. Prints the resident
 * memory of the process in KB when a tenth of the types are done and when all are done. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "resident.h"

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  long n = atol(argv[1]), fresh = 0;
  int user[4096], packed[4096];
  memset(user, 1, sizeof user);
  for (long i = 0; i < n; i++) {
    MPI_Datatype t, d;
    int at = 0;
    /* Every 200th type has a layout that did not occur before, so the preload library's cache of
     * compiled layouts must drop old entries. */
    if (i % 200 == 0) { int b[2] = {1, 1}, e[2] = {0, 2 + (int)(fresh++ % 100000)}; MPI_Type_indexed(2, b, e, MPI_CHAR, &t); }
    else MPI_Type_vector(2 + i % 16, 1, 3, MPI_INT, &t);
    MPI_Type_commit(&t);
    if (i % 16 == 0) {
      MPI_Type_dup(t, &d);
      if (MPI_Pack(user, 0, d, packed, sizeof packed, &at, MPI_COMM_SELF)) return 1;
      MPI_Type_free(&d);
    }
    if (i % 3 == 0 && i % 200 && MPI_Pack(user, 1, t, packed, sizeof packed, &at, MPI_COMM_SELF)) return 1;
    MPI_Type_free(&t);
    if (i == n / 10) printf("tenth %ld\n", resident());
  }
  printf("all %ld\n", resident());
  MPI_Finalize();
  return 0;
}
