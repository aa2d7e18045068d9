/* Commits a type in a delete callback of MPI_COMM_SELF, which MPI_Finalize runs, packs with it, and
 * opens a session afterwards. The types of the session may get the handles of earlier types. */
#include <mpi.h>
#include <stdio.h>

static int user[4096], packed[100];

static MPI_Datatype gaps(int stride) {
  MPI_Datatype t;
  MPI_Type_vector(100, 1, stride, MPI_INT, &t);
  MPI_Type_commit(&t);
  return t;
}

static int pack(MPI_Datatype t, int stride, MPI_Comm comm) {
  int wrong = 0, at = 0;
  MPI_Pack(user, 1, t, packed, sizeof packed, &at, comm);
  for (int i = 0; i < 100; i++) wrong += packed[i] != i * stride;
  return wrong;
}

static int at_the_end(MPI_Comm comm, int k, void *value, void *extra) {
  (void)comm, (void)k, (void)extra;
  MPI_Datatype t = gaps(3);
  for (int i = 0; i < 5; i++) *(int *)value += pack(t, 3, MPI_COMM_SELF);
  return MPI_SUCCESS;
}

int main(int argc, char **argv) {
  int k, wrong = 0;
  for (int i = 0; i < 4096; i++) user[i] = i;
  MPI_Init(&argc, &argv);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &k, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, k, &wrong);
  MPI_Finalize();
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session)) return 2;
  if (MPI_Group_from_session_pset(session, "mpi://SELF", &group)) return 3;
  if (MPI_Comm_create_from_group(group, "ddtc", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm)) return 4;
  for (int stride = 2; stride < 10; stride += 2) {
    MPI_Datatype t = gaps(stride);
    for (int i = 0; i < 4; i++) wrong += pack(t, stride, comm);
  }
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
