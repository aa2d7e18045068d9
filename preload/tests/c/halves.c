/* Fortran bindings under the names that Fortran compilers give them. They make requests by C
 * functions with MPI_ names (MPI_Irecv, MPI_Recv_init), and start, complete and free requests by
 * profiling names, as the bindings of Fortran 2008 in MPICH's family do. With -DFOLLOWED, they
 * start, complete and free requests by MPI_ names too. With -DPAST in addition, they free requests
 * by the profiling name again. Handles are Fortran integers from MPI_*_c2f. */
#include <mpi.h>
#include <stddef.h>

#ifdef FOLLOWED
#define START MPI_Start
#define WAIT MPI_Wait
#define FREE MPI_Request_free
#else
#define START PMPI_Start
#define WAIT PMPI_Wait
#define FREE PMPI_Request_free
#endif
#ifdef PAST
#undef FREE
#define FREE PMPI_Request_free
#endif

void mpi_irecv_(void *buf, int *count, int *type, int *source, int *tag, int *comm, int *request, int *ierror) {
  MPI_Request r;
  *ierror = MPI_Irecv(buf, *count, MPI_Type_f2c(*type), *source, *tag, MPI_Comm_f2c(*comm), &r);
  *request = MPI_Request_c2f(r);
}
void mpi_recv_init_(void *buf, int *count, int *type, int *source, int *tag, int *comm, int *request, int *ierror) {
  MPI_Request r;
  *ierror = MPI_Recv_init(buf, *count, MPI_Type_f2c(*type), *source, *tag, MPI_Comm_f2c(*comm), &r);
  *request = MPI_Request_c2f(r);
}
void mpi_start_(int *request, int *ierror) {
  MPI_Request r = MPI_Request_f2c(*request);
  *ierror = START(&r);
}
void mpi_wait_(int *request, int *status, int *ierror) {
  MPI_Request r = MPI_Request_f2c(*request);
  (void)status;
  *ierror = WAIT(&r, MPI_STATUS_IGNORE);
  *request = MPI_Request_c2f(r);
}
void mpi_request_free_(int *request, int *ierror) {
  MPI_Request r = MPI_Request_f2c(*request);
  *ierror = FREE(&r);
  *request = MPI_Request_c2f(r);
}
void mpi_send_(void *buf, int *count, int *type, int *dest, int *tag, int *comm, int *ierror) {
  *ierror = MPI_Send(buf, *count, MPI_Type_f2c(*type), *dest, *tag, MPI_Comm_f2c(*comm));
}
void mpi_recv_(void *buf, int *count, int *type, int *source, int *tag, int *comm, int *status, int *ierror) {
  (void)status;
  *ierror = MPI_Recv(buf, *count, MPI_Type_f2c(*type), *source, *tag, MPI_Comm_f2c(*comm), MPI_STATUS_IGNORE);
}
void begin_(int *type, int *world) {
  MPI_Datatype t;
  MPI_Init(NULL, NULL);
  MPI_Type_vector(100, 1, 3, MPI_INT, &t);
  MPI_Type_commit(&t);
  *type = MPI_Type_c2f(t);
  *world = MPI_Comm_c2f(MPI_COMM_SELF);
}
void end_(void) { MPI_Finalize(); }
