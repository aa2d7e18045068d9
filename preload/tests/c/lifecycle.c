/* Packs with duplicates of types that have attributes of the program, with types and communicators
 * that get the handle values of freed ones, and with a type that outlives its parts. A type is
 * still alive at MPI_Finalize. Prints the number of wrong results. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong, copied, deleted;
static int user[4096], packed[4096];

static int copy(MPI_Datatype t, int k, void *e, void *in, void *out, int *flag) {
  (void)t; (void)k; (void)e; *(void **)out = in; *flag = 1; copied++; return MPI_SUCCESS;
}
static int delete(MPI_Datatype t, int k, void *v, void *e) { (void)t; (void)k; (void)v; (void)e; deleted++; return MPI_SUCCESS; }

static void check(MPI_Datatype t, int n, int s, MPI_Comm comm, int line) {
  int at = 0;
  memset(packed, 0, sizeof packed);
  if (MPI_Pack(user, 1, t, packed, sizeof packed, &at, comm) || at != 4 * n) { wrong++; printf("line %d: position %d\n", line, at); }
  for (int i = 0; i < n; i++) if (packed[i] != user[i * s]) { wrong++; printf("line %d: element %d\n", line, i); break; }
}
#define CHECK(t, n, s, comm) check(t, n, s, comm, __LINE__)

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 4096; i++) user[i] = i + 1;
  MPI_Datatype t, d, e, outer;
  int keyval, flag;
  void *value;
  MPI_Type_create_keyval(copy, delete, &keyval, NULL);
  MPI_Type_vector(10, 1, 3, MPI_INT, &t);
  MPI_Type_set_attr(t, keyval, &wrong);
  MPI_Type_commit(&t);
  MPI_Type_commit(&t);
  CHECK(t, 10, 3, MPI_COMM_WORLD);
  MPI_Type_dup(t, &d);
  MPI_Type_get_attr(d, keyval, &value, &flag);
  if (!flag || value != &wrong) wrong++;
  printf("copied %d\n", copied);
  MPI_Type_free(&t);
  printf("deleted %d\n", deleted);
  CHECK(d, 10, 3, MPI_COMM_SELF);
  MPI_Type_dup(d, &e);
  MPI_Type_free(&d);
  CHECK(e, 10, 3, MPI_COMM_SELF);
  MPI_Type_contiguous(2, e, &outer);
  MPI_Type_commit(&outer);
  MPI_Type_free(&e);
  int at = 0;
  MPI_Pack(user, 1, outer, packed, sizeof packed, &at, MPI_COMM_SELF);
  if (at != 80 || packed[10] != user[28] || packed[19] != user[55]) { wrong++; printf("outer\n"); }
  MPI_Type_free(&outer);
  printf("copied %d deleted %d\n", copied, deleted);

  /* Make, use and free types, one after another. MPI libraries give the value or the address of a
   * freed handle to a new type at once. */
  int reused = 0;
  MPI_Datatype before = MPI_DATATYPE_NULL;
  for (int i = 0; i < 2000; i++) {
    int n = 2 + i % 50, s = 1 + i % 7;
    MPI_Type_vector(n, 1, s, MPI_INT, &t);
    reused += t == before;
    before = t;
    MPI_Type_commit(&t);
    CHECK(t, n, s, MPI_COMM_SELF);
    CHECK(t, n, s, MPI_COMM_SELF);
    MPI_Type_free(&t);
  }
  /* Make, use and free communicators, whose handle values are used again too. */
  MPI_Type_vector(5, 1, 2, MPI_INT, &t);
  MPI_Type_commit(&t);
  for (int i = 0; i < 300; i++) {
    MPI_Comm c, c2;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    CHECK(t, 5, 2, c);
    CHECK(t, 5, 2, c);
    MPI_Comm_dup(c, &c2);
    MPI_Comm_free(&c);
    CHECK(t, 5, 2, c2);
    MPI_Comm_free(&c2);
  }
  /* Leave the type alive at MPI_Finalize, with an attribute of the program and one of the preload
   * library. */
  MPI_Type_set_attr(t, keyval, &wrong);
  MPI_Type_free_keyval(&keyval);
  MPI_Finalize();
  printf("reused %d wrong %d\n", reused, wrong);
  return wrong != 0;
}
