/* A type is freed while a receive uses it. So the MPI library deletes the type later, in MPI_Send
 * or MPI_Wait, and the delete callback of the program runs then. The callback packs with the type
 * (MPI 5.0, 5.1.9 and 7.7.4). The next type may get the handle of the freed one, and has another
 * layout. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static int user[8192], packed[100], ran;
static MPI_Datatype gaps(int stride) {
  MPI_Datatype t;
  MPI_Type_vector(100, 1, stride, MPI_INT, &t);
  MPI_Type_commit(&t);
  return t;
}
static int use(MPI_Datatype t, int k, void *value, void *extra) {
  (void)k, (void)value, (void)extra;
  for (int i = 0; i < 3000; i++) {
    int at = 0;
    MPI_Pack(user, 1, t, packed, sizeof packed, &at, MPI_COMM_SELF);
    ran += at == 400;
  }
  return MPI_SUCCESS;
}
int main(int argc, char **argv) {
  int k, received = 0, wrong = 0;
  static int in[8192], out[100];
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 8192; i++) user[i] = i;
  for (int i = 0; i < 100; i++) out[i] = i + 1;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, use, &k, NULL);
  for (int round = 0; round < 20; round++) {
    int stride = 2 + round % 5, next = stride + 7, at;
    MPI_Request r;
    MPI_Datatype t = gaps(stride), u;
    at = 0;
    MPI_Pack(user, 1, t, packed, sizeof packed, &at, MPI_COMM_SELF);
    MPI_Type_set_attr(t, k, NULL);
    memset(in, 0, sizeof in);
    MPI_Irecv(in, 1, t, 0, 1, MPI_COMM_SELF, &r);
    MPI_Type_free(&t);
    MPI_Send(out, 100, MPI_INT, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    for (int i = 0; i < 100; i++) received += in[i * stride] != i + 1;
    u = gaps(next);
    for (int n = 0; n < 5; n++) {
      at = 0;
      MPI_Pack(user, 1, u, packed, sizeof packed, &at, MPI_COMM_SELF);
      for (int i = 0; i < 100; i++) wrong += packed[i] != i * next;
    }
    MPI_Type_free(&u);
  }
  MPI_Type_free_keyval(&k);
  printf("callback packs %d, wrong %d %d\n", ran, received, wrong);
  MPI_Finalize();
  return 0;
}
