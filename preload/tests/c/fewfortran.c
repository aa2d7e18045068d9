/* The nine functions of MPI's Fortran binding that the test programs of BLACS call. They call the
 * MPI library of the process by its C functions, since the Python wheels from which tests take
 * their MPI libraries have no Fortran binding. The file is compiled as a library with the name of
 * the Fortran library that a test program was linked with. */
#include <mpi.h>

void mpi_init_(int *error);
void mpi_initialized_(int *flag, int *error);
void mpi_abort_(const int *comm, const int *code, int *error);
void mpi_comm_rank_(const int *comm, int *rank, int *error);
void mpi_comm_size_(const int *comm, int *size, int *error);
void mpi_comm_dup_(const int *comm, int *copy, int *error);
void mpi_type_size_(const int *type, int *size, int *error);
void mpi_send_(const void *at, const int *count, const int *type, const int *to, const int *tag, const int *comm, int *error);
void mpi_recv_(void *at, const int *count, const int *type, const int *from, const int *tag, const int *comm, int *status, int *error);

void mpi_init_(int *error) { *error = MPI_Init(0, 0); }
void mpi_initialized_(int *flag, int *error) { *error = MPI_Initialized(flag); }
void mpi_abort_(const int *comm, const int *code, int *error) { *error = MPI_Abort(MPI_Comm_f2c(*comm), *code); }
void mpi_comm_rank_(const int *comm, int *rank, int *error) { *error = MPI_Comm_rank(MPI_Comm_f2c(*comm), rank); }
void mpi_comm_size_(const int *comm, int *size, int *error) { *error = MPI_Comm_size(MPI_Comm_f2c(*comm), size); }
void mpi_comm_dup_(const int *comm, int *copy, int *error) {
  MPI_Comm made;
  *error = MPI_Comm_dup(MPI_Comm_f2c(*comm), &made);
  *copy = MPI_Comm_c2f(made);
}
void mpi_type_size_(const int *type, int *size, int *error) { *error = MPI_Type_size(MPI_Type_f2c(*type), size); }
void mpi_send_(const void *at, const int *count, const int *type, const int *to, const int *tag, const int *comm, int *error) {
  *error = MPI_Send(at, *count, MPI_Type_f2c(*type), *to, *tag, MPI_Comm_f2c(*comm));
}
void mpi_recv_(void *at, const int *count, const int *type, const int *from, const int *tag, const int *comm, int *status, int *error) {
  MPI_Status s;
  *error = MPI_Recv(at, *count, MPI_Type_f2c(*type), *from, *tag, MPI_Comm_f2c(*comm), &s);
  MPI_Status_c2f(&s, status);
}
