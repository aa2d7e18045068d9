/* A library that is loaded between the preload library and MPICH. It claims another version of
 * MPICH (-DVERSION=\"...\") and does one thing wrong, which the environment variable FAULT names.
 *
 * The functions that do something wrong have PMPI_ names, because the preload library calls the MPI
 * library by these names. The test program of `ddtc tune` uses PMPI_ names, too, when it sends or
 * receives a message without conversion. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = VERSION "\nMPICH Device:       ch4:ofi ucx\n";
int PMPI_Get_library_version(char *version, int *length) {
  strcpy(version, text);
  *length = (int)strlen(text);
  return MPI_SUCCESS;
}
int MPI_Get_library_version(char *version, int *length) { return PMPI_Get_library_version(version, length); }

static int fault(const char *name) {
  const char *wanted = getenv("FAULT");
  return wanted && !strcmp(wanted, name);
}

/* Returns whether a message is longer than 8 KiB and has no gaps. Messages that the preload library
 * has converted have no gaps. */
static int is_dense(int n, MPI_Datatype t) {
  MPI_Aint lb, extent;
  int size;
  PMPI_Type_size(t, &size);
  PMPI_Type_get_extent(t, &lb, &extent);
  return (long)n * size > 8192 && size == extent;
}

static void *theirs(const char *name) { return dlsym(RTLD_NEXT, name); }

int PMPI_Recv(void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm comm, MPI_Status *status) {
  int (*recv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *) = theirs("PMPI_Recv");
  int code = recv(b, n, t, from, tag, comm, status);
  if (fault("swaps") && code == MPI_SUCCESS && is_dense(n, t)) {
    char *bytes = b, first = bytes[5];
    bytes[5] = bytes[9], bytes[9] = first;
  }
  /* With the fault `truncates`, report success for a long message that did not fit into the
   * receive, if the preload library has converted the receive. */
  if (fault("truncates") && code != MPI_SUCCESS && is_dense(n, t)) return MPI_SUCCESS;
  return code;
}

int PMPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm comm) {
  int (*bcast)(void *, int, MPI_Datatype, int, MPI_Comm) = theirs("PMPI_Bcast");
  int code = bcast(b, n, t, root, comm), rank;
  PMPI_Comm_rank(comm, &rank);
  /* The test program broadcasts its own data as characters. */
  if (fault("broadcasts") && code == MPI_SUCCESS && rank != root && t != MPI_CHAR && is_dense(n, t)) {
    char *bytes = b;
    bytes[5] ^= 1;
  }
  return code;
}

static int spoiled(int code) {
  while (fault("hangs")) pause();
  if (fault("crashes")) abort();
  return fault("pending") ? MPIX_ERR_PROC_FAILED_PENDING : code;
}

int PMPI_Waitall(int n, MPI_Request requests[], MPI_Status statuses[]) {
  int (*waitall)(int, MPI_Request *, MPI_Status *) = theirs("PMPI_Waitall");
  return spoiled(waitall(n, requests, statuses));
}

/* With the fault `starts`, report an error for a persistent request that was started. */
int PMPI_Start(MPI_Request *request) {
  int (*start)(MPI_Request *) = theirs("PMPI_Start");
  int code = start(request);
  return fault("starts") ? MPI_ERR_OTHER : code;
}

/* If the environment variable NODES is set, each rank has a host name of its own, as if each were
 * on a node of its own. */
int gethostname(char *name, size_t length) {
  int (*theirs_of)(char *, size_t) = theirs("gethostname");
  const char *rank = getenv("PMI_RANK");
  if (!getenv("NODES") || !rank) return theirs_of(name, length);
  snprintf(name, length, "node%s", rank);
  return 0;
}
