/* A module with an MPI library of its own, as in a plugin or a Python module. The file is compiled
 * as a shared library, which loads.c loads. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 400, INTS = 2 * BLOCKS };
static int from[INTS], into[INTS];
static MPI_Datatype type;

static int check(int round, const char *what) {
  int bad = 0;
  for (int i = 0; i < INTS; i++) bad |= into[i] != (i % 2 ? -1 : round + i);
  if (bad) printf("round %d: %s is wrong\n", round, what);
  memset(into, 0xff, sizeof into);
  return bad;
}
int module_begin(void) {
  int up, down, threads;
  MPI_Initialized(&up);
  MPI_Finalized(&down);
  if (up || down) return printf("this is not a new library\n"), 1;
  if (MPI_Init_thread(0, 0, MPI_THREAD_FUNNELED, &threads)) return 1;
  MPI_Type_vector(BLOCKS, 1, 2, MPI_INT, &type);
  return MPI_Type_commit(&type);
}
/* Sends this process blocking and nonblocking messages, calls MPI_Alltoall, and packs and unpacks
 * with a type that is made for this round. Returns the number of wrong results. */
int module_round(int round) {
  char packed[4 * BLOCKS];
  int wrong = 0, at = 0;
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Datatype once;
  memset(into, 0xff, sizeof into);
  for (int i = 0; i < INTS; i++) from[i] = round + i;
  wrong += MPI_Sendrecv(from, 1, type, 0, 1, into, 1, type, 0, 1, MPI_COMM_SELF, &status) != 0;
  int count = 0;
  MPI_Get_count(&status, type, &count);
  wrong += count != 1;
  wrong += check(round, "MPI_Sendrecv");
  MPI_Irecv(into, 1, type, 0, 2, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(from, 1, type, 0, 2, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  wrong += check(round, "MPI_Irecv");
  MPI_Type_dup(type, &once);
  MPI_Pack(from, 1, once, packed, sizeof packed, &at, MPI_COMM_SELF);
  wrong += at != sizeof packed;
  at = 0;
  MPI_Unpack(packed, sizeof packed, &at, into, 1, once, MPI_COMM_SELF);
  MPI_Type_free(&once);
  wrong += check(round, "MPI_Unpack");
  MPI_Alltoall(from, 1, type, into, 1, type, MPI_COMM_SELF);
  wrong += check(round, "MPI_Alltoall");
  return wrong;
}
int module_end(void) {
  MPI_Type_free(&type);
  return MPI_Finalize();
}
