/* A PMPI layer that has only MPI_Bcast. It broadcasts by calls of MPI_Send and MPI_Recv under their
 * MPI_ names, as a program would call them. */
#include <mpi.h>

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  int rank, size, code = MPI_SUCCESS;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  if (rank != root) return MPI_Recv(buf, count, type, root, 4711, comm, MPI_STATUS_IGNORE);
  for (int to = 0; to < size && code == MPI_SUCCESS; to++)
    if (to != root) code = MPI_Send(buf, count, type, to, 4711, comm);
  return code;
}
