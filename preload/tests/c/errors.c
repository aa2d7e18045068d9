/* Makes right and wrong calls of MPI_Pack and MPI_Unpack and of their large-count forms. Prints for
 * each call the error class, the position, and how often and with which class the error handler
 * ran. The output must not depend on the preload library. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int raised, last;
static void handler(MPI_Comm *comm, int *code, ...) { (void)comm; raised++; MPI_Error_class(*code, &last); }

static char user[4096], packed[4096];
static MPI_Comm comm;

static void show(const char *what, int code, long long position) {
  int class = 0;
  if (code) MPI_Error_class(code, &class);
  printf("%s: %d class %d position %lld handler %d class %d\n", what, code != 0, class, position, raised, last);
  raised = last = 0;
}
static void both(const char *what, MPI_Datatype t, void *u, int count, void *p, int size, int position, MPI_Comm c) {
  char text[128];
  int at = position;
  snprintf(text, sizeof text, "pack %s", what);
  int code = MPI_Pack(u, count, t, p, size, &at, c);
  show(text, code, at);
  at = position;
  snprintf(text, sizeof text, "unpack %s", what);
  code = MPI_Unpack(p, size, &at, u, count, t, c);
  show(text, code, at);
#ifndef OPEN_MPI
  MPI_Count wide = position;
  snprintf(text, sizeof text, "pack_c %s", what);
  code = MPI_Pack_c(u, count, t, p, size, &wide, c);
  show(text, code, wide);
  wide = position;
  snprintf(text, sizeof text, "unpack_c %s", what);
  code = MPI_Unpack_c(p, size, &wide, u, count, t, c);
  show(text, code, wide);
#endif
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Errhandler h;
  MPI_Comm_create_errhandler(handler, &h);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, h);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, h);
  /* Make the types of the calls: `known` is the type of most calls, `fresh` is used only at the end
   * of each round, `raw` is not committed, and `empty` has no elements. */
  MPI_Datatype known, fresh, raw, empty;
  MPI_Type_vector(4, 1, 2, MPI_INT, &known);
  MPI_Type_commit(&known);
  MPI_Type_vector(5, 1, 2, MPI_INT, &fresh);
  MPI_Type_commit(&fresh);
  MPI_Type_vector(6, 1, 2, MPI_INT, &raw);
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  MPI_Datatype null = MPI_DATATYPE_NULL;
  show("commit null", MPI_Type_commit(&null), 0);
  show("dup null", MPI_Type_dup(null, &null), 0);
  /* Make all calls in three rounds, with another communicator in each round. */
  MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF, comm};
  for (int round = 0; round < 3; round++) {
    both("right", known, user, 3, packed, 100, 4, comms[round]);
    both("exact", known, user, 3, packed, 48, 0, comms[round]);
    both("short", known, user, 3, packed, 47, 0, comms[round]);
    both("far", known, user, 3, packed, 48, 1, comms[round]);
    both("negative count", known, user, -1, packed, 100, 0, comms[round]);
    both("no count", known, user, 0, packed, 100, 3, comms[round]);
    both("no count, no buffers", known, NULL, 0, NULL, 0, 0, comms[round]);
    both("negative size", known, user, 1, packed, -1, 0, comms[round]);
    both("null type", MPI_DATATYPE_NULL, user, 1, packed, 100, 0, comms[round]);
    both("null comm", known, user, 1, packed, 100, 0, MPI_COMM_NULL);
    both("uncommitted", raw, user, 1, packed, 100, 0, comms[round]);
    both("empty type", empty, user, 5, packed, 100, 7, comms[round]);
    both("predefined", MPI_DOUBLE, user, 5, packed, 100, 7, comms[round]);
    both("fresh", fresh, user, 1, packed, 100, 0, comms[round]);
  }
  MPI_Comm was = comm;
  MPI_Comm_free(&comm);
#ifdef FREED_HANDLES
  both("freed comm", known, user, 1, packed, 100, 0, was);
#endif
  (void)was;
  MPI_Type_free(&known);
  MPI_Errhandler_free(&h);
  MPI_Finalize();
  return 0;
}
