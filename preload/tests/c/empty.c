/* Calls MPI_Request_get_status_any, _all and _some for null, pending, complete and inactive
 * requests. The three functions are weak symbols, as in a program that can do without them if the
 * MPI library lacks them. Prints for each call its results and the field MPI_ERROR of each status.
 * The program sets the field to 4711 before each call; the call must set it to 0 in an empty status
 * and leave it unchanged otherwise (MPI 5.0, 3.2.5 and 3.7.3). */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#pragma weak MPI_Request_get_status_any
#pragma weak MPI_Request_get_status_all
#pragma weak MPI_Request_get_status_some
int MPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int MPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
int MPI_Request_get_status_some(int count, const MPI_Request requests[], int *out, int indices[], MPI_Status statuses[]);

static void fresh(MPI_Status *s) {
  memset(s, 0x11, 3 * sizeof *s);
  for (int i = 0; i < 3; i++) s[i].MPI_ERROR = 4711;
}
static void show(const char *name, int n, MPI_Request *r) {
  MPI_Status s[3];
  int index = -7, flag = -7, out = -7, indices[3], code;
  fresh(s);
  code = MPI_Request_get_status_any(n, r, &index, &flag, s);
  printf("%s any: code %d index %d flag %d error %d\n", name, code, index == MPI_UNDEFINED ? -1 : index, flag, s[0].MPI_ERROR);
  fresh(s);
  code = MPI_Request_get_status_all(n, r, &flag, s);
  printf("%s all: code %d flag %d errors", name, code, flag);
  for (int i = 0; flag && i < n; i++) printf(" %d", s[i].MPI_ERROR);
  fresh(s);
  code = MPI_Request_get_status_some(n, r, &out, indices, s);
  printf("\n%s some: code %d out %d errors", name, code, out == MPI_UNDEFINED ? -1 : out);
  for (int i = 0; i < out; i++) printf(" %d at %d", s[i].MPI_ERROR, indices[i]);
  code = MPI_Request_get_status_any(n, r, &index, &flag, MPI_STATUS_IGNORE);
  code |= MPI_Request_get_status_all(n, r, &flag, MPI_STATUSES_IGNORE);
  code |= MPI_Request_get_status_some(n, r, &out, indices, MPI_STATUSES_IGNORE);
  printf("\n%s ignored: code %d\n", name, code);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (!MPI_Request_get_status_any) {
    printf("absent\n");
    MPI_Finalize();
    return 0;
  }
  int in[2] = {0}, out = 1;
  MPI_Comm self = MPI_COMM_SELF;
  MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  show("null", 3, r);
  show("nothing", 0, r);
  MPI_Irecv(in, 1, MPI_INT, 0, 1, self, &r[1]);
  show("pending", 2, r);
  MPI_Isend(&out, 1, MPI_INT, 0, 1, self, &r[2]);
  int flag = 0;
  while (!flag) MPI_Request_get_status(r[1], &flag, MPI_STATUS_IGNORE);
  show("complete", 3, r);
  MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
  MPI_Recv_init(in, 1, MPI_INT, 0, 1, self, &r[0]);
  show("inactive", 1, r);
  MPI_Request_free(&r[0]);
  MPI_Finalize();
  return 0;
}
