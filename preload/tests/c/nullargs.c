/* Makes calls with a null pointer where the MPI library requires an argument, on a type that the
 * preload library converts. The error of the MPI library must be the result of the call.
 *
 * Usage: nullargs KIND. KIND is waitany, testany, alltoallw, or a call that reports on requests:
 * status, all or some. For status, all and some, the program has an error handler that returns,
 * after which MPICH returns success. The refused call does not write its outputs. They keep their
 * values from before the call, and these values say that the request is complete. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static void say(const char *what, int code) {
  int class = -1;
  MPI_Error_class(code, &class);
  printf("%s %s\n", what, class == MPI_SUCCESS ? "success" : class == MPI_ERR_ARG ? "argument" : "another error");
}

static void handler(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  say("handler", *code);
}

int main(int argc, char **argv) {
  static int in[3000], out[3000];
  int flag = 1, index, one = 1, zero = 0;
  MPI_Datatype t;
  MPI_Request request;
  MPI_Errhandler returns;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Type_vector(1000, 1, 2, MPI_INT, &t);
  MPI_Type_commit(&t);
  for (int i = 0; i < 3000; i++) out[i] = i;
  for (int i = 0; i < 50; i++)
    MPI_Sendrecv(out, 1, t, 0, 0, in, 1, t, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Irecv(in, 1, t, 0, 1, MPI_COMM_SELF, &request);
  if (!strcmp(argv[1], "waitany")) say("waitany", MPI_Waitany(1, &request, NULL, MPI_STATUS_IGNORE));
  if (!strcmp(argv[1], "testany")) say("testany", MPI_Testany(1, &request, NULL, &flag, MPI_STATUS_IGNORE));
  if (!strcmp(argv[1], "alltoallw")) {
    for (int i = 0; i < 3; i++)
      MPI_Alltoallw(out, &one, &zero, &t, in, &one, &zero, &t, MPI_COMM_SELF);
    say("types", MPI_Alltoallw(out, &one, &zero, &t, in, &one, &zero, NULL, MPI_COMM_SELF));
    say("places", MPI_Alltoallw(out, &one, &zero, &t, in, &one, NULL, &t, MPI_COMM_SELF));
    say("counts", MPI_Alltoallw(out, &one, &zero, &t, in, NULL, &zero, &t, MPI_COMM_SELF));
  }
  MPI_Comm_create_errhandler(handler, &returns);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, returns);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, returns);
  if (!strcmp(argv[1], "status")) MPI_Request_get_status(request, &flag, NULL);
#if MPI_VERSION * 10 + MPI_SUBVERSION >= 41
  if (!strcmp(argv[1], "all")) MPI_Request_get_status_all(1, &request, &flag, NULL);
  if (!strcmp(argv[1], "some")) MPI_Request_get_status_some(1, &request, &one, NULL, MPI_STATUSES_IGNORE);
#endif
  memset(in, 0, sizeof in);
  MPI_Send(out, 1, t, 0, 1, MPI_COMM_SELF);
  say("wait", MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));
  printf("%s\n", memcmp(in, out, 4) || in[1998] != 1998 ? "wrong" : "right");
  MPI_Type_free(&t);
  MPI_Finalize();
  return 0;
}
