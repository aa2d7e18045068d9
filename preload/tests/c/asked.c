/* A program for two ranks of MPICH that polls each request with MPIX_Request_is_complete. As soon
 * as that function returns true, the program reads the receive buffer. Only then does it complete
 * the request by MPI_Wait. MPICH's documentation of MPIX_Async and MPIX_Stream_progress uses
 * requests in this way.
 *
 * The macro ASKED is the name of the function that polls, and may be set on the compiler's command
 * line. Each kind of request that can receive data is started ROUNDS times. A check of the buffer
 * fails if an element differs from what was sent, or if an element between the blocks of the type
 * has changed. */
#include <mpi.h>
#include <stdio.h>

#ifndef ASKED
#define ASKED MPIX_Request_is_complete
#endif

enum { BLOCKS = 16000, STRIDE = 4, INTS = BLOCKS * STRIDE, ROUNDS = 20 };
static int from[INTS], into[INTS], me, other, wrong;
static MPI_Datatype type;

static void fill(int round) {
  for (int i = 0; i < INTS; i++) from[i] = round + i, into[i] = -1;
}
/* Adds 1 to `wrong` if the receive buffer does not have the contents that are expected after a
 * receive, and prints a line for the first such check. */
static void check(const char *kind, const char *when, int round) {
  int bad = 0;
  for (int i = 0; i < INTS; i++) bad += into[i] != (i % STRIDE ? -1 : round + i);
  if (bad && !wrong++) printf("%s, round %d: %d elements wrong %s\n", kind, round, bad, when);
}
static void receives(const char *kind, int round, MPI_Request *request) {
  while (!ASKED(*request)) MPIX_Stream_progress(MPIX_STREAM_NULL);
  check(kind, "when the request was said to be complete", round);
  MPI_Wait(request, MPI_STATUS_IGNORE);
  check(kind, "after MPI_Wait", round);
}
static void send(void) { MPI_Send(from, 1, type, other, 3, MPI_COMM_WORLD); }

int main(int argc, char **argv) {
  MPI_Request request, persistent, collective;
  MPI_Message message;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  other = 1 - me;
  MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Win_create(from, sizeof from, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_lock_all(0, win);
  MPI_Recv_init(into, 1, type, other, 3, MPI_COMM_WORLD, &persistent);
  MPI_Bcast_init(me ? into : from, 1, type, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &collective);
  /* In each round rank 0 sends three messages and is the root of two broadcasts, and rank 1
   * receives them with five kinds of requests, in the same order. At the end of the round the ranks
   * exchange messages, and each rank gets data from the window of the other rank. */
  for (int round = 0; round < ROUNDS; round++) {
    fill(round);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
      for (int i = 0; i < 3; i++) send();
      MPI_Ibcast(from, 1, type, 0, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      MPI_Start(&collective);
      MPI_Wait(&collective, MPI_STATUS_IGNORE);
    } else {
      MPI_Irecv(into, 1, type, 0, 3, MPI_COMM_WORLD, &request);
      receives("receive", round, &request);
      fill(round);
      MPI_Start(&persistent);
      receives("persistent receive", round, &persistent);
      fill(round);
      MPI_Mprobe(0, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
      MPI_Imrecv(into, 1, type, &message, &request);
      receives("matched receive", round, &request);
      fill(round);
      MPI_Ibcast(into, 1, type, 0, MPI_COMM_WORLD, &request);
      receives("broadcast", round, &request);
      fill(round);
      MPI_Start(&collective);
      receives("persistent broadcast", round, &collective);
    }
    fill(round);
    MPI_Isendrecv(from, 1, type, other, 4, into, 1, type, other, 4, MPI_COMM_WORLD, &request);
    receives("exchange", round, &request);
    fill(round);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rget(into, 1, type, other, 0, 1, type, win, &request);
    receives("get", round, &request);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Request_free(&persistent);
  MPI_Request_free(&collective);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Type_free(&type);
  MPI_Finalize();
  printf("rank %d: wrong %d\n", me, wrong);
  return 0;
}
