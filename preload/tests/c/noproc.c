/* Receives messages of MPI_PROC_NULL again and again by MPI_Imrecv and MPI_Mrecv, two at a time.
 * Such receives are complete at once, and MPI libraries give all of them the same request. */
#include <mpi.h>
#include <stdio.h>

enum { N = 8192, ROUNDS = 60 };

int main(int argc, char **argv) {
  static int buffers[2][2 * N];
  int wrong = 0, count;
  MPI_Init(&argc, &argv);
  MPI_Datatype t;
  MPI_Type_vector(N, 1, 2, MPI_INT, &t);
  MPI_Type_commit(&t);
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Request r[2];
    MPI_Status s[2];
    for (int i = 0; i < 2; i++) {
      MPI_Message m;
      MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_SELF, &m, MPI_STATUS_IGNORE);
      wrong += m != MPI_MESSAGE_NO_PROC;
      MPI_Imrecv(buffers[i], 1, t, &m, &r[i]);
    }
    MPI_Waitall(2, r, s);
    for (int i = 0; i < 2; i++) {
      MPI_Get_count(&s[i], t, &count);
      wrong += count != 0 || s[i].MPI_SOURCE != MPI_PROC_NULL;
    }
    MPI_Message m = MPI_MESSAGE_NO_PROC;
    MPI_Mrecv(buffers[0], 1, t, &m, &s[0]);
    MPI_Get_count(&s[0], t, &count);
    wrong += count != 0 || s[0].MPI_SOURCE != MPI_PROC_NULL;
  }
  MPI_Type_free(&t);
  MPI_Finalize();
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
