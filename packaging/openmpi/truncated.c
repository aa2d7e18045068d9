/* Checks that receives of 3000 ints and of none are not overrun by messages of 6000 ints. The
 * program uses MPI_INT and MPI_ERRORS_RETURN. Each receive is posted once before the message is
 * sent, and once after.
 *
 *     mpicc truncated.c -o truncated && mpiexec -n 2 ./truncated
 *
 * Such a receive should return an error of class MPI_ERR_TRUNCATE. MPI 5.0, section 3.2.4, advises
 * implementors never to overwrite memory outside of the receive buffer. For each receive, the
 * program prints the class of the error and the number of ints that were written after those of the
 * receive. The exit status is 1 if a class is another one or if such ints were written. See
 * packaging/openmpi/README.md, "Truncation". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SENT = 6000, MARK = 0x5a5a5a5a };
static int buffer[SENT], rank;

/* Tells the other rank to go on, or waits until it says so. */
static void turn(int from) {
  if (rank == from) MPI_Send(NULL, 0, MPI_INT, 1 - from, 1, MPI_COMM_WORLD);
  else MPI_Recv(NULL, 0, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int wrong(int room, int posted) {
  MPI_Request request;
  for (int i = 0; i < SENT; i++) buffer[i] = rank == 0 ? i : MARK;
  if (rank == 0) {
    if (posted) turn(1);
    MPI_Isend(buffer, SENT, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    if (!posted) turn(0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return 0;
  }
  int after = 0, class = MPI_SUCCESS, code;
  if (posted) {
    MPI_Irecv(buffer, room, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
    turn(1);
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    turn(0);
    code = MPI_Recv(buffer, room, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Error_class(code, &class);
  for (int i = room; i < SENT; i++) after += buffer[i] != MARK;
  printf("error class %s, %d ints written after the %d of the receive, which was posted %s\n",
         class == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE" : "wrong", after, room, posted ? "before the send" : "after the send");
  return class != MPI_ERR_TRUNCATE || after;
}

int main(int argc, char **argv) {
  int bad = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < 4; i++) bad |= wrong(i / 2 ? 0 : 3000, i % 2);
  MPI_Bcast(&bad, 1, MPI_INT, 1, MPI_COMM_WORLD);
  MPI_Finalize();
  return bad;
}
