/* Moves datatypes whose bytes an MPI library moves from or to other places than the standard
 * defines. Usage: misplaced KIND ROUNDS.
 *
 * One type is used at both ends of each transfer. So a library that makes the same mistake at both
 * ends gets the right result: each byte arrives at the place that it came from. All other places of
 * the receiver must keep their values. KIND is darray (wrong in Intel MPI), negative (negative
 * extents, wrong in MPICH), unpack (negative extents by MPI_Unpack only), or planted: with
 * -DPLANTED, this program has a PMPI_Pack and a PMPI_Unpack that are wrong for one vector. Runs on
 * one or two ranks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 1001 };

#ifdef PLANTED
static int is_planted(MPI_Datatype t) {
  int size;
  PMPI_Type_size(t, &size);
  return size == BLOCKS * (int)sizeof(int);
}

/* Replaces the MPI library's PMPI_Pack: takes each element of the planted type, which is recognized
 * by its size, from 4 bytes after its right place. */
__attribute__((visibility("default"))) int PMPI_Pack(const void *buf, int n, MPI_Datatype t, void *out, int size,
                                                     int *at, MPI_Comm comm) {
  int (*theirs)(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);
  *(void **)&theirs = dlsym(RTLD_NEXT, "PMPI_Pack");
  return theirs((const char *)buf + (is_planted(t) ? 4 : 0), n, t, out, size, at, comm);
}

/* Replaces the MPI library's PMPI_Unpack: puts the elements of the planted type so far after their
 * right places that all of them lie beyond the end of one instance. */
__attribute__((visibility("default"))) int PMPI_Unpack(const void *in, int size, int *at, void *buf, int n,
                                                       MPI_Datatype t, MPI_Comm comm) {
  int (*theirs)(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm);
  *(void **)&theirs = dlsym(RTLD_NEXT, "PMPI_Unpack");
  return theirs(in, size, at, (char *)buf + (is_planted(t) ? 8 * BLOCKS : 0), n, t, comm);
}
#endif

static int peer, wrong;

/* The send buffer, the receive buffer and the packed bytes. Displacement 0 of a type is the middle
 * of the send or receive buffer, and no instance reaches further than `span` bytes from there. */
enum { HALF = 1 << 15 };
static unsigned char from[2 * HALF], into[2 * HALF], packed[HALF];
static int span;

static void fill(int round) {
  for (int i = HALF - span; i < HALF + span; i++) from[i] = (i * 7 + i / 251 + round) % 250;
  memset(into, 255, sizeof into);
}

static void judge(const char *kind, int round, const char *how) {
  for (int i = HALF - span; i < HALF + span; i++)
    if (into[i] != 255 && into[i] != from[i] && wrong++ < 3)
      printf("%s, round %d, %s: byte %d is %d, there was %d\n", kind, round, how, i - HALF, into[i], from[i]);
}

static void pack_and_unpack(int n, MPI_Datatype t, int packs) {
  int at = 0, end = sizeof packed;
  if (packs) {
    MPI_Pack(from + HALF, n, t, packed, sizeof packed, &at, MPI_COMM_WORLD);
    end = at;
    at = 0;
  }
  MPI_Unpack(packed, end, &at, into + HALF, n, t, MPI_COMM_WORLD);
}

static void exchange(const char *kind, int rounds, int n, MPI_Datatype t, int reach) {
  MPI_Request requests[2];
  span = reach;
  MPI_Type_commit(&t);
  for (int round = 0; round < rounds; round++) {
    if (!strcmp(kind, "unpack")) {
      pack_and_unpack(n, t, 0);
      continue;
    }
    fill(round);
    MPI_Sendrecv(from + HALF, n, t, peer, 0, into + HALF, n, t, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    judge(kind, round, "MPI_Sendrecv");
    if (strcmp(kind, "planted")) {
      fill(round);
      pack_and_unpack(n, t, 1);
      judge(kind, round, "MPI_Pack");
    }
    fill(round);
    MPI_Irecv(into + HALF, n, t, peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(from + HALF, n, t, peer, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    judge(kind, round, "MPI_Isend");
  }
  MPI_Type_free(&t);
}

/* Makes the part of process 0 of an array that is distributed over 2 by 2 processes. The rows are
 * distributed cyclically, in blocks of two rows. In the order C, rows are the slow dimension. */
static MPI_Datatype darray(int rows, int columns, MPI_Datatype element) {
  int sizes[2] = {rows, columns}, ways[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  int blocks[2] = {2, MPI_DISTRIBUTE_DFLT_DARG}, processes[2] = {2, 2};
  MPI_Datatype t;
  MPI_Type_create_darray(4, 0, 2, sizes, ways, blocks, processes, MPI_ORDER_C, element, &t);
  return t;
}

int main(int argc, char **argv) {
  int rank, size, all, rounds = atoi(argv[2]);
  const char *kind = argv[1];
  MPI_Datatype bytes, back, t;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  peer = size - 1 - rank;
  if (!strcmp(kind, "darray")) {
    exchange(kind, rounds, 1, darray(128, 2, MPI_INT), 128 * 2 * 4);
    exchange(kind, rounds, 1, darray(61, 54, MPI_DOUBLE), 61 * 54 * 8);
  } else if (!strcmp(kind, "planted")) {
    MPI_Type_vector(BLOCKS, 1, 2, MPI_INT, &t);
    exchange(kind, rounds, 1, t, 16 * BLOCKS);
  } else {
    MPI_Type_contiguous(4, MPI_BYTE, &bytes);
    MPI_Type_create_resized(bytes, 6, -9, &back);
    MPI_Type_contiguous(3, back, &t);
    MPI_Type_free(&bytes);
    MPI_Type_free(&back);
    exchange(kind, rounds, strcmp(kind, "unpack") ? 200 : 40, t, 200 * 28);
  }
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\n", all);
  MPI_Finalize();
  return 0;
}
