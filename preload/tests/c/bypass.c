/* Fortran bindings in the style of Open MPI: every function converts its handles and calls the
 * PMPI_ function, so that wrappers of the C functions with MPI_ names do not see the call. With
 * -DHANDLES_ONLY, for MPI libraries other than Open MPI, the file has only the functions that
 * return handles, and programs use the MPI library's own bindings. */
#include <mpi.h>

void session_handles_(MPI_Fint *info, MPI_Fint *handler) {
  *info = MPI_Info_c2f(MPI_INFO_NULL);
  *handler = MPI_Errhandler_c2f(MPI_ERRORS_ARE_FATAL);
}
void host_handles_(MPI_Fint *world, MPI_Fint *dp) {
  *world = MPI_Comm_c2f(MPI_COMM_WORLD);
  *dp = MPI_Type_c2f(MPI_DOUBLE_PRECISION);
}

#ifndef HANDLES_ONLY
int mpi_fortran_bottom_;
#define BOTH(name, args) void p##name args; void name args __attribute__((weak, alias("p" #name))); void p##name args

BOTH(mpi_init_, (MPI_Fint *e)) { *e = PMPI_Init(0, 0); }
BOTH(mpi_finalize_, (MPI_Fint *e)) { *e = PMPI_Finalize(); }
BOTH(mpi_session_init_, (MPI_Fint *info, MPI_Fint *handler, MPI_Fint *s, MPI_Fint *e)) {
  MPI_Session made;
  *e = PMPI_Session_init(PMPI_Info_f2c(*info), PMPI_Errhandler_f2c(*handler), &made);
  *s = PMPI_Session_c2f(made);
}
BOTH(mpi_session_finalize_, (MPI_Fint *s, MPI_Fint *e)) {
  MPI_Session c = PMPI_Session_f2c(*s);
  *e = PMPI_Session_finalize(&c);
}
BOTH(mpi_type_vector_, (MPI_Fint *n, MPI_Fint *b, MPI_Fint *s, MPI_Fint *o, MPI_Fint *t, MPI_Fint *e)) {
  MPI_Datatype made;
  *e = PMPI_Type_vector(*n, *b, *s, PMPI_Type_f2c(*o), &made);
  *t = PMPI_Type_c2f(made);
}
BOTH(mpi_type_commit_, (MPI_Fint *t, MPI_Fint *e)) { MPI_Datatype c = PMPI_Type_f2c(*t); *e = PMPI_Type_commit(&c); }
BOTH(mpi_type_free_, (MPI_Fint *t, MPI_Fint *e)) { MPI_Datatype c = PMPI_Type_f2c(*t); *e = PMPI_Type_free(&c); }
BOTH(mpi_pack_, (char *i, MPI_Fint *n, MPI_Fint *t, char *o, MPI_Fint *s, MPI_Fint *p, MPI_Fint *c, MPI_Fint *e)) {
  *e = PMPI_Pack(i, *n, PMPI_Type_f2c(*t), o, *s, p, PMPI_Comm_f2c(*c));
}
BOTH(mpi_unpack_, (char *i, MPI_Fint *s, MPI_Fint *p, char *o, MPI_Fint *n, MPI_Fint *t, MPI_Fint *c, MPI_Fint *e)) {
  *e = PMPI_Unpack(i, *s, p, o, *n, PMPI_Type_f2c(*t), PMPI_Comm_f2c(*c));
}
#endif
