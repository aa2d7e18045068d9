/* Sets attributes on types and communicators, whose callbacks run while the objects are deleted.
 * The argument names the test. The program prints what a program sees of its attributes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int deleted;

static MPI_Datatype gaps(int n, int stride) {
  MPI_Datatype t;
  MPI_Type_vector(n, 1, stride, MPI_INT, &t);
  MPI_Type_commit(&t);
  return t;
}

/* Sends one element of the type to this process, which makes ddtc decode the type. */
static void use(MPI_Datatype t, MPI_Comm comm) {
  static int out[4096], in[4096];
  MPI_Request r;
  MPI_Irecv(in, 1, t, 0, 3, comm, &r);
  MPI_Send(out, 1, t, 0, 3, comm);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static int count_deletion(MPI_Datatype t, int k, void *value, void *extra) {
  (void)t, (void)k, (void)extra;
  deleted += *(int *)value;
  return MPI_SUCCESS;
}

/* A keyval that is older than any use of a type, and an attribute that is set twice, deleted and
 * asked for. */
static void set_again(void) {
  int k, flag = -1, one = 1, ten = 10;
  void *value = NULL;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, count_deletion, &k, NULL);
  MPI_Datatype t = gaps(300, 2);
  for (int i = 0; i < 3; i++) use(t, MPI_COMM_SELF);
  MPI_Type_set_attr(t, k, &one);
  printf("deleted %d\n", deleted);
  MPI_Type_set_attr(t, k, &ten);
  printf("deleted %d\n", deleted);
  MPI_Type_get_attr(t, k, &value, &flag);
  printf("flag %d value %d\n", flag, flag ? *(int *)value : 0);
  MPI_Type_delete_attr(t, k);
  MPI_Type_get_attr(t, k, &value, &flag);
  printf("deleted %d flag %d\n", deleted, flag);
  MPI_Type_free(&t);
  MPI_Type_free_keyval(&k);
  printf("deleted %d\n", deleted);
}

static int pack_deleted(MPI_Datatype t, int k, void *value, void *extra) {
  (void)k, (void)value, (void)extra;
  static int user[4096], packed[4096];
  for (int i = 0; i < 5; i++) {
    int at = 0;
    MPI_Pack(user, 1, t, packed, sizeof packed, &at, MPI_COMM_SELF);
    deleted += at == 400;
  }
  return MPI_SUCCESS;
}

/* Types whose delete callback packs with them. The next type may get the handle of the freed one,
 * and has another layout. */
static void pack_while_deleted(void) {
  static int user[4096], packed[100];
  int k, wrong = 0;
  for (int i = 0; i < 4096; i++) user[i] = i;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, pack_deleted, &k, NULL);
  for (int round = 0; round < 20; round++) {
    int stride = 2 + round % 7, at = 0;
    MPI_Datatype t = gaps(100, stride);
    MPI_Type_set_attr(t, k, NULL);
    MPI_Pack(user, 1, t, packed, sizeof packed, &at, MPI_COMM_SELF);
    for (int i = 0; i < 100; i++) wrong += packed[i] != i * stride;
    MPI_Type_free(&t);
  }
  MPI_Type_free_keyval(&k);
  printf("packed %d wrong %d\n", deleted, wrong);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  if (!strcmp(argv[1], "set-again")) set_again();
  if (!strcmp(argv[1], "dying")) pack_while_deleted();
  MPI_Finalize();
  return 0;
}
