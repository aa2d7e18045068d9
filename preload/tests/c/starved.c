/* A program in which the preload library gets no memory after its first N allocations after
 * MPI_Init, while all other code still gets memory. Usage: starved N.
 *
 * Types of many layouts are made, sent, packed and used in broadcasts, and every byte of packs and
 * messages is checked. The program is built with -rdynamic, so that the preload library calls the
 * malloc of this program. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);

static char *low, *high;
static long allowed, asked, refused;

static int refuses(const void *caller) {
  if ((const char *)caller < low || (const char *)caller >= high || ++asked <= allowed) return 0;
  refused++;
  return 1;
}

#define REFUSES refuses(__builtin_return_address(0))

void *malloc(size_t n) { return REFUSES ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return REFUSES ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return REFUSES ? NULL : __libc_realloc(p, n); }
void *aligned_alloc(size_t align, size_t n) { return REFUSES ? NULL : __libc_memalign(align, n); }

int posix_memalign(void **p, size_t align, size_t n) {
  if (REFUSES) return ENOMEM;
  *p = __libc_memalign(align, n);
  return *p ? 0 : ENOMEM;
}

static int mapped(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  if (!strstr(info->dlpi_name, "libddtc_preload")) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    low = (char *)info->dlpi_addr + p->p_vaddr;
    high = low + p->p_memsz;
  }
  return 0;
}

enum { BYTES = 1 << 16 };
static char from[BYTES], into[BYTES], packed[BYTES], expected[BYTES];

static MPI_Datatype nth(int i) {
  int lengths[3] = {1, 2 + i % 3, 1};
  MPI_Aint places[3] = {0, 8 + 4 * (i % 5), 64 + 8 * (i % 7)};
  MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_DOUBLE}, t, u;
  switch (i % 3) {
    case 0: MPI_Type_vector(10 + i, 1 + i % 4, 7, MPI_INT, &t); break;
    case 1: MPI_Type_create_struct(3, lengths, places, types, &t); break;
    default: {
      int at[40];
      for (int k = 0; k < 40; k++) at[k] = 5 * k + (k * i) % 3;
      MPI_Type_create_indexed_block(40, 2, at, MPI_INT, &t);
    }
  }
  MPI_Type_create_resized(t, 0, 2048, &u);
  MPI_Type_free(&t);
  MPI_Type_commit(&u);
  return u;
}

int main(int argc, char **argv) {
  int i, k, wrong = 0, size, place;
  MPI_Init(&argc, &argv);
  dl_iterate_phdr(mapped, NULL);
  allowed = asked + atol(argv[1]);
  for (k = 0; k < BYTES; k++) from[k] = (char)(k * 7 + k / 251);
  for (i = 0; i < 60; i++) {
    MPI_Datatype t = nth(i);
    MPI_Request requests[2];
    MPI_Type_size(t, &size);
    /* Pack the expected bytes by the profiling name, so that the MPI library packs them itself. The
     * bytes follow from the type map only. */
    place = 0, PMPI_Pack(from, 8, t, expected, BYTES, &place, MPI_COMM_SELF);
    for (k = 0; k < 3; k++) {
      place = 0, memset(packed, 0, BYTES);
      MPI_Pack(from, 8, t, packed, BYTES, &place, MPI_COMM_SELF);
      wrong += place != 8 * size || memcmp(packed, expected, 8 * size);
      memset(packed, 0, BYTES);
      MPI_Sendrecv(from, 8, t, 0, 1, packed, 8 * size, MPI_PACKED, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
      wrong += memcmp(packed, expected, 8 * size) != 0;
      memset(into, 0, BYTES), memset(packed, 0, BYTES);
      MPI_Irecv(into, 8, t, 0, 2, MPI_COMM_SELF, &requests[0]);
      MPI_Isend(from, 8, t, 0, 2, MPI_COMM_SELF, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      place = 0, PMPI_Pack(into, 8, t, packed, BYTES, &place, MPI_COMM_SELF);
      wrong += memcmp(packed, expected, 8 * size) != 0;
      memset(into, 0, BYTES), place = 0;
      MPI_Unpack(expected, 8 * size, &place, into, 8, t, MPI_COMM_SELF);
      place = 0, PMPI_Pack(into, 8, t, packed, BYTES, &place, MPI_COMM_SELF);
      wrong += memcmp(packed, expected, 8 * size) != 0;
      MPI_Bcast(from, 8, t, 0, MPI_COMM_SELF);
    }
    MPI_Type_free(&t);
  }
  printf("library %d, refused %ld of %ld, wrong %d\n", low != NULL, refused, asked - allowed, wrong);
  MPI_Finalize();
  return 0;
}
