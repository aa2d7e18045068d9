/* A PMPI layer for Fortran. It has MPI_PACK, MPI_UNPACK and MPI_FINALIZE under the names that the
 * Fortran compiler gives them, and prints at the end how often MPI_PACK and MPI_UNPACK were
 * called. */
#include <stdio.h>

void pmpi_pack_(void *, void *, void *, void *, void *, void *, void *, void *);
void pmpi_unpack_(void *, void *, void *, void *, void *, void *, void *, void *);
void pmpi_finalize_(void *);

static int packs, unpacks;

void mpi_pack_(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h) {
  packs++;
  pmpi_pack_(a, b, c, d, e, f, g, h);
}

void mpi_unpack_(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h) {
  unpacks++;
  pmpi_unpack_(a, b, c, d, e, f, g, h);
}

void mpi_finalize_(void *error) {
  printf("layer: %d packs, %d unpacks\n", packs, unpacks);
  fflush(stdout);
  pmpi_finalize_(error);
}
