/* Checks that a cancelled receive does not change its buffer, whatever the count in its status is.
 * MPI leaves that count undefined (MPI 5.0, 3.8.4).
 *
 * With -DCOUNTS, the file is a library that is called before the MPI library. It sets the count of
 * every cancelled receive that the program waits for to as many bytes as the receive has room
 * for. */
#define _GNU_SOURCE
#include <mpi.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 6, INSTANCE = 5 };

#ifdef COUNTS
int PMPI_Wait(MPI_Request *request, MPI_Status *status) {
  int (*next)(MPI_Request *, MPI_Status *) = (int (*)(MPI_Request *, MPI_Status *))dlsym(RTLD_NEXT, "PMPI_Wait");
  int code = next(request, status), cancelled = 0;
  if (code == MPI_SUCCESS && status != MPI_STATUS_IGNORE) PMPI_Test_cancelled(status, &cancelled);
  if (cancelled) PMPI_Status_set_elements(status, MPI_BYTE, 3 * COUNT * (int)sizeof(int));
  return code;
}
#else
static int changed(const int *at) {
  int n = 0;
  for (int i = 0; i < COUNT * INSTANCE; i++) n += at[i] != -1;
  return n;
}

int main(int argc, char **argv) {
  int out[COUNT * INSTANCE], in[COUNT * INSTANCE], wrong = 0, cancelled, count;
  MPI_Datatype type;
  MPI_Request request;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Type_vector(3, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  memset(out, 1, sizeof out);
  for (int turn = 0; turn < 20; turn++) {
    memset(in, -1, sizeof in);
    MPI_Irecv(in, COUNT, type, 0, 1, MPI_COMM_SELF, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    MPI_Get_count(&status, MPI_BYTE, &count);
    wrong += !cancelled || count != 3 * COUNT * (int)sizeof(int) || changed(in);
    /* A receive that is not cancelled must get its message. */
    MPI_Irecv(in, COUNT, type, 0, 2, MPI_COMM_SELF, &request);
    MPI_Send(out, COUNT, type, 0, 2, MPI_COMM_SELF);
    MPI_Wait(&request, &status);
    wrong += changed(in) != 3 * COUNT;
  }
  MPI_Type_free(&type);
  printf("wrong %d\n", wrong);
  MPI_Finalize();
  return 0;
}
#endif
