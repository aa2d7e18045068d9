/* Exchanges elements in place by MPI_Isendrecv_replace: after each exchange, the buffer must have
 * the bytes of the peer's elements. Without the preload library, MPICH and Intel MPI send wrong
 * bytes if the type is derived. Prints the number of wrong exchanges. */
#include "output.h"

int main(int argc, char **argv) {
  int wrong = 0, all;
  begin(&argc, &argv);
  for (int way = 0; way < 2; way++)
    for (int i = 0; i < TYPES; i++) {
      char *own = filled(i + rank), *theirs = filled(i + peer), *expected = filled(i + rank);
      MPI_Request r;
      MPI_Sendrecv(theirs, counts[i], type[i], rank, 1, expected, counts[i], type[i], rank, 1, comm, MPI_STATUS_IGNORE);
#ifdef LARGE_COUNTS
      if (way) MPI_Isendrecv_replace_c(own, counts[i], type[i], peer, 2, peer, 2, comm, &r); else
#endif
      MPI_Isendrecv_replace(own, counts[i], type[i], peer, 2, i % 2 ? peer : MPI_ANY_SOURCE, 2, comm, &r);
      if (way) MPI_Waitall(1, &r, MPI_STATUSES_IGNORE);
      else MPI_Wait(&r, MPI_STATUS_IGNORE);
      wrong += memcmp(own, expected, BUFFER_BYTES) != 0 || r != MPI_REQUEST_NULL;
      free(own); free(theirs); free(expected);
    }
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (!rank) printf("wrong %d\n", all);
  MPI_Finalize();
  return 0;
}
