/* A PMPI layer that halves MPI_COMM_WORLD, as libraries do that couple programs. It also counts the
 * calls of MPI_Send that it sees, and prints their number in MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>

static MPI_Comm half;
static int sends;

static MPI_Comm real(MPI_Comm comm) { return comm == MPI_COMM_WORLD ? half : comm; }

int MPI_Init(int *argc, char ***argv) {
  int code = PMPI_Init(argc, argv), rank, size;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  PMPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
  return code;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank) { return PMPI_Comm_rank(real(comm), rank); }

int MPI_Comm_size(MPI_Comm comm, int *size) { return PMPI_Comm_size(real(comm), size); }

int MPI_Send(const void *buf, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  sends++;
  return PMPI_Send(buf, count, type, to, tag, real(comm));
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
  return PMPI_Recv(buf, count, type, from, tag, real(comm), status);
}

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return PMPI_Bcast(buf, count, type, root, real(comm));
}

int MPI_Alltoall(const void *sent, int n, MPI_Datatype s, void *received, int m, MPI_Datatype r, MPI_Comm comm) {
  return PMPI_Alltoall(sent, n, s, received, m, r, real(comm));
}

int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("rank %d of the real world: %d sends seen\n", rank, sends);
  fflush(stdout);
  return PMPI_Finalize();
}
