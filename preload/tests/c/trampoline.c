/* A wrapper around an MPI library, as MPItrampoline is. A module calls functions with MPI's names
 * in an outer library, which has an ABI of its own. The outer library loads an inner library at run
 * time, and the inner library calls the MPI library.
 *
 *     -DMODULE: a module for twompi.c, linked with the outer library. Sends and receives vectors
 *       between two ranks.
 *     -DOUTER: the outer library. It loads the file that the environment variable INNER names. If
 *       the environment variable BINDING is `deep`, calls of the inner library go directly to its
 *       MPI library.
 *     -DOUTER -DSTANDARD: the outer library claims to have the standard ABI of MPI 5.0.
 *     -DINNER: the inner library, linked with an MPI library. */
#ifdef INNER
#include <mpi.h>
#include <stdint.h>

/* The handles of the outer library are those of the MPI library with all bits inverted. */
#define OUT(handle) (~(uint64_t)(uint32_t)(handle))
#define IN(handle) ((int)(uint32_t)~(handle))
int inner_init(void) { return MPI_Init(0, 0); }
int inner_finalize(void) { return MPI_Finalize(); }
int inner_version(char *text, int *length) { return MPI_Get_library_version(text, length); }
int inner_rank(int *rank) { return MPI_Comm_rank(MPI_COMM_WORLD, rank); }
uint64_t inner_int(void) { return OUT(MPI_INT); }
int inner_vector(int n, int length, int stride, uint64_t of, uint64_t *made) {
  MPI_Datatype type;
  int code = MPI_Type_vector(n, length, stride, IN(of), &type);
  *made = OUT(type);
  return code;
}
int inner_commit(uint64_t *type) {
  MPI_Datatype of = IN(*type);
  return MPI_Type_commit(&of);
}
int inner_send(const void *buffer, int count, uint64_t type, int to, int tag) {
  return MPI_Send(buffer, count, IN(type), to, tag, MPI_COMM_WORLD);
}
int inner_receive(void *buffer, int count, uint64_t type, int from, int tag) {
  return MPI_Recv(buffer, count, IN(type), from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
#else
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int MPI_Init(int *, char ***);
int MPI_Finalize(void);
int MPI_Comm_rank(uint64_t, int *);
int MPI_Type_vector(int, int, int, uint64_t, uint64_t *);
int MPI_Type_commit(uint64_t *);
int MPI_Send(const void *, int, uint64_t, int, int, uint64_t);
int MPI_Recv(void *, int, uint64_t, int, int, uint64_t, void *);
uint64_t outer_int(void);

#ifdef OUTER
static void *function(const char *name) {
  static void *inner;
  int deep = strcmp(getenv("BINDING"), "deep") ? 0 : RTLD_DEEPBIND;
  if (!inner) inner = dlopen(getenv("INNER"), RTLD_NOW | RTLD_LOCAL | deep);
  if (!inner) printf("%s\n", dlerror()), exit(2);
  return dlsym(inner, name);
}
#define CALL(type, name) ((int(*) type)function(name))
#define BOTH(name, parameters) int P##name parameters __attribute__((visibility("default"))); \
  int name parameters __attribute__((weak, alias("P" #name))); int P##name parameters
static int is_up, is_down;
BOTH(MPI_Init, (int *argc, char ***argv)) {
  (void)argc, (void)argv;
  int code = CALL((void), "inner_init")();
  is_up = 1;
  return code;
}
BOTH(MPI_Finalize, (void)) { return is_down = 1, CALL((void), "inner_finalize")(); }
BOTH(MPI_Initialized, (int *flag)) { return *flag = is_up, 0; }
BOTH(MPI_Finalized, (int *flag)) { return *flag = is_down, 0; }
BOTH(MPI_Comm_rank, (uint64_t comm, int *rank)) { (void)comm; return CALL((int *), "inner_rank")(rank); }
BOTH(MPI_Type_vector, (int n, int length, int stride, uint64_t of, uint64_t *made)) {
  return CALL((int, int, int, uint64_t, uint64_t *), "inner_vector")(n, length, stride, of, made);
}
BOTH(MPI_Type_commit, (uint64_t *type)) { return CALL((uint64_t *), "inner_commit")(type); }
BOTH(MPI_Send, (const void *buffer, int count, uint64_t type, int to, int tag, uint64_t comm)) {
  (void)comm;
  return CALL((const void *, int, uint64_t, int, int), "inner_send")(buffer, count, type, to, tag);
}
BOTH(MPI_Recv, (void *buffer, int count, uint64_t type, int from, int tag, uint64_t comm, void *status)) {
  (void)comm, (void)status;
  return CALL((void *, int, uint64_t, int, int), "inner_receive")(buffer, count, type, from, tag);
}
/* The version text of the wrapper contains that of the MPI library. */
BOTH(MPI_Get_library_version, (char *text, int *length)) {
  char inner[8192];
  CALL((char *, int *), "inner_version")(inner, length);
  *length = snprintf(text, 8192, "A wrapper around %s", inner);
  return 0;
}
uint64_t outer_int(void) { return ((uint64_t(*)(void))function("inner_int"))(); }

#ifdef STANDARD
BOTH(MPI_Abi_get_version, (int *major, int *minor)) { return *major = 1, *minor = 0, 0; }
/* Functions without which the preload library converts nothing. The module does not call them. */
#define FAILS(name) BOTH(name, (void)) { return 16; }
FAILS(MPI_Type_free) FAILS(MPI_Type_size) FAILS(MPI_Type_get_extent) FAILS(MPI_Type_get_envelope)
FAILS(MPI_Type_get_contents) FAILS(MPI_Type_create_keyval) FAILS(MPI_Type_set_attr)
FAILS(MPI_Type_get_attr) FAILS(MPI_Comm_create_keyval) FAILS(MPI_Comm_set_attr)
FAILS(MPI_Comm_size) FAILS(MPI_Pack) FAILS(MPI_Unpack)
#endif
#endif

#ifdef MODULE
enum { BLOCKS = 500, ROUNDS = 200 };
int run(void) {
  int rank, wrong = 0;
  static int from[2 * BLOCKS], into[2 * BLOCKS];
  uint64_t type;
  MPI_Init(0, 0);
  MPI_Comm_rank(1, &rank);
  wrong += MPI_Type_vector(BLOCKS, 1, 2, outer_int(), &type) != 0;
  wrong += MPI_Type_commit(&type) != 0;
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < 2 * BLOCKS; i++) from[i] = round + i, into[i] = -1;
    if (rank == round % 2) wrong += MPI_Send(from, 1, type, !rank, 3, 1) != 0;
    else {
      wrong += MPI_Recv(into, 1, type, !rank, 3, 1, 0) != 0;
      for (int i = 0; i < 2 * BLOCKS; i++) wrong += into[i] != (i % 2 ? -1 : round + i);
    }
  }
  MPI_Finalize();
  return wrong;
}
#endif
#endif
