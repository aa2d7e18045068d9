/* Prints whether the preload library, after a number of messages of a type, moves the pieces of
 * such messages inside Open MPI 4.1 or 5.0. No report is requested, since the preload library
 * examines all calls if it counts them for a report.
 *
 * Usage: soon MESSAGES. The messages are of a vector of 67200 bytes. Before them, the program sends
 * messages of an indexed type, which enable the preload library's hook inside Open MPI. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int prepare_fn(void *, const void *, size_t, const void *);
typedef void *create_fn(int32_t, int32_t);

/* Offset of the mover, which is the function that moves the bytes, in Open MPI's convertor, as in
 * convertors.h. */
enum { MOVER = 0x58 };

static void *named(void *scope, const char *name) {
  void *found = dlsym(scope, name);
  if (!found) { printf("there is no %s\n", name); exit(3); }
  return found;
}

/* Returns whether a convertor gets another mover when it is prepared by the preload library's
 * function than when it is prepared by Open MPI's. */
static int is_ours(void *host, const char *name, MPI_Datatype t, const void *memory) {
  create_fn *create = named(host, "opal_convertor_create");
  void *c = create(*(int32_t *)named(RTLD_DEFAULT, "opal_local_arch"), 0), *mover[2];
  for (int all = 0; all < 2; all++) {
    prepare_fn *prepare = named(all ? RTLD_DEFAULT : host, name);
    prepare(c, t, 1, memory);
    memcpy(&mover[all], (char *)c + MOVER, sizeof mover[0]);
  }
  return mover[0] != mover[1];
}

static void exchange(MPI_Datatype t, int messages) {
  static double from[20000], to[20000];
  for (int n = 0; n < messages; n++)
    MPI_Sendrecv(from, 1, t, 0, 0, to, 1, t, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  enum { BLOCKS = 4096 };
  static int at[BLOCKS];
  static double memory[20000];
  MPI_Datatype list, vector;
  MPI_Init(&argc, &argv);
  void *host = dlopen("libopen-pal.so.80", RTLD_NOLOAD | RTLD_LAZY);
  if (!host) host = dlopen("libopen-pal.so.40", RTLD_NOLOAD | RTLD_LAZY);
  if (argc < 2 || !host) { puts("there is no Open MPI, or no number"); exit(3); }
  /* Let some time pass, since the preload library may spend only a share of the run time so far on
   * types. */
  sleep(1);
  for (int i = 0; i < BLOCKS; i++) at[i] = 3 * i + (int)(i * 2654435761u >> 31);
  MPI_Type_create_indexed_block(BLOCKS, 1, at, MPI_DOUBLE, &list);
  MPI_Type_commit(&list);
  exchange(list, 200);
  MPI_Type_vector(5600, 3, 6, MPI_FLOAT, &vector);
  MPI_Type_commit(&vector);
  /* Send the messages before `is_ours` prepares a convertor, since the preload library counts a
   * preparation as a use of the type too. */
  exchange(vector, atoi(argv[1]));
  int both = is_ours(host, "opal_convertor_prepare_for_send", vector, memory) && is_ours(host, "opal_convertor_prepare_for_recv", vector, memory);
  puts(both ? "inside" : "the host's");
  MPI_Type_free(&list);
  MPI_Type_free(&vector);
  MPI_Finalize();
  return 0;
}
