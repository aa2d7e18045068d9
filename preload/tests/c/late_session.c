/* Opens a session in a delete callback of MPI_COMM_SELF, which MPI_Finalize runs. The session goes
 * on after MPI_Finalize, and packs with types of its own (MPI 5.0, 11.2.4 and 11.3). */
#include <mpi.h>
#include <stdio.h>
static int user[4096], packed[100];
static MPI_Session session;
static MPI_Comm comm = MPI_COMM_NULL;
static MPI_Datatype gaps(int stride) {
  MPI_Datatype t;
  MPI_Type_vector(100, 1, stride, MPI_INT, &t);
  MPI_Type_commit(&t);
  return t;
}
static int pack(MPI_Datatype t, int stride) {
  int wrong = 0, at = 0;
  MPI_Pack(user, 1, t, packed, sizeof packed, &at, comm);
  for (int i = 0; i < 100; i++) wrong += packed[i] != i * stride;
  return wrong;
}
static int open_session(MPI_Comm self, int k, void *value, void *extra) {
  (void)self, (void)k, (void)extra, (void)value;
  MPI_Group group;
  if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session)) return 2;
  if (MPI_Group_from_session_pset(session, "mpi://SELF", &group)) return 3;
  if (MPI_Comm_create_from_group(group, "ddtc", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm)) return 4;
  return MPI_Group_free(&group);
}
int main(int argc, char **argv) {
  int k, wrong = 0;
  for (int i = 0; i < 4096; i++) user[i] = i;
  MPI_Init(&argc, &argv);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, open_session, &k, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, k, &wrong);
  MPI_Finalize();
  for (int stride = 2; stride < 10; stride += 2) {
    MPI_Datatype t = gaps(stride);
    for (int i = 0; i < 4; i++) wrong += pack(t, stride);
    MPI_Type_free(&t);
  }
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
