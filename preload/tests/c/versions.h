/* Macros that say which features the MPI library has, according to its header. With them, programs
 * that run under many releases leave out calls that a release does not have. */
#ifndef VERSIONS_H
#define VERSIONS_H
#include <mpi.h>

/* The header of Open MPI says that it implements MPI 3.1. Release 5.0 of Open MPI has the calls of
 * MPI 4.0 without large counts, and release 4.1 has none of them. */
#if defined OMPI_MAJOR_VERSION
#if OMPI_MAJOR_VERSION >= 5
#define HAS_MPI_4 1
#endif
#else
#if MPI_VERSION >= 4
#define HAS_MPI_4 1
#define LARGE_COUNTS 1
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define GET_STATUS_MANY 1
#endif
#endif

#endif
