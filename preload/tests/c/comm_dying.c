/* A delete callback uses a communicator that is being freed. A communicator of another size may get
 * its handle. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
enum { N = 512 };
static MPI_Datatype t;
static void all(MPI_Comm comm, int *wrong) { /* buffers for exactly as many ranks as there are */
  int size, rank;
  static int out[3 * 2 * N], in[4 * 2 * N];
  MPI_Comm_size(comm, &size);
  MPI_Comm_rank(comm, &rank);
  memset(in, 0xff, sizeof in);
  for (int i = 0; i < size * 2 * N; i++) out[i] = 1000 * rank + i / (2 * N);
  MPI_Alltoall(out, 1, t, in, 1, t, comm);
  for (int i = 0; i < 8 * N; i++) {
    int from = i / (2 * N), expected = from < size && i % 2 == 0 ? 1000 * from + rank : -1;
    *wrong += in[i] != expected;
  }
}
static int use(MPI_Comm comm, int k, void *value, void *extra) {
  (void)k, (void)extra;
  all(comm, value);
  return MPI_SUCCESS;
}
int main(int argc, char **argv) {
  int rank, k, wrong = 0, same = 0;
  MPI_Datatype v;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_vector(N, 1, 2, MPI_INT, &v);
  MPI_Type_create_resized(v, 0, 2 * N * sizeof(int), &t);
  MPI_Type_commit(&t);
  for (int i = 0; i < 50; i++) all(MPI_COMM_WORLD, &wrong);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, use, &k, NULL);
  for (int round = 0; round < 5; round++) {
    MPI_Comm a, b;
    MPI_Comm_dup(MPI_COMM_WORLD, &a);
    MPI_Comm_set_attr(a, k, &wrong);
    MPI_Comm before = a;
    MPI_Comm_free(&a);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 2, rank, &b);
    same += b == before;
    for (int i = 0; i < 3; i++) all(b, &wrong);
    MPI_Comm_free(&b);
  }
  printf("rank %d same %d wrong %d\n", rank, same, wrong);
  MPI_Finalize();
  return 0;
}
