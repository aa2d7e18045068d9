/* Times collective calls for each layout class and payload in three ways. In the first, the data
 * have a derived type, and the preload library converts the call. In the second, they have the same
 * type, and the unmodified MPI library does the work. In the third, they are packed by hand. MPI_
 * names call the preload library, which must convert every call (DDTC_POLICY=all); PMPI_ names call
 * the unmodified library.
 *
 * Prints lines of "CALL,CLASS,BYTES,CONVERTED,BARE,HAND,NOISE". BYTES is the number of bytes that
 * one rank sends to another. CONVERTED, BARE and HAND are the times of the three ways; BARE is the
 * time of the unmodified library. Each time is the median of interleaved rounds, in microseconds
 * for a call on the slowest rank. NOISE is the largest median absolute deviation of the three, in
 * percent.
 *
 * Usage: collectives [ROUNDS [MILLISECONDS_PER_ROUND]] */
#include "tune.h"

enum { SIZES = 8, RANKS = 256 };
enum { BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, ALLTOALLW, NEIGHBOR, NEIGHBOR_ALLTOALLW, CALLS };
static const char *const names[CALLS] = {"bcast,",    "gather,",    "scatter,",  "allgather,",
                                         "alltoall,", "alltoallw,", "neighbor,", "neighbor-alltoallw,"};
static int call, rank, ranks, rounds = 15;
static char *out, *in, *packed_out, *packed_in;
static MPI_Comm ring;

/* Return the number of blocks that this rank packs by hand before a collective call (`sent`) and
 * unpacks by hand after it (`received`). */
static int sent(int root) {
  switch (call) {
  case BCAST: return rank == root;
  case SCATTER: return rank == root ? ranks : 0;
  case GATHER: case ALLGATHER: return 1;
  case NEIGHBOR: case NEIGHBOR_ALLTOALLW: return 2;
  default: return ranks;
  }
}
static int received(int root) {
  switch (call) {
  case BCAST: return rank != root;
  case GATHER: return rank == root ? ranks : 0;
  case SCATTER: return 1;
  case NEIGHBOR: case NEIGHBOR_ALLTOALLW: return 2;
  default: return ranks;
  }
}

#define CALL_OF(MPI, s, r, n, type, step)                                                                                                   \
  switch (call) {                                                                                                                           \
  case BCAST: MPI##_Bcast(rank == root ? s : r, n, type, root, MPI_COMM_WORLD); break;                                                       \
  case GATHER: MPI##_Gather(s, n, type, r, n, type, root, MPI_COMM_WORLD); break;                                                            \
  case SCATTER: MPI##_Scatter(s, n, type, r, n, type, root, MPI_COMM_WORLD); break;                                                          \
  case ALLGATHER: MPI##_Allgather(s, n, type, r, n, type, MPI_COMM_WORLD); break;                                                            \
  case ALLTOALL: MPI##_Alltoall(s, n, type, r, n, type, MPI_COMM_WORLD); break;                                                              \
  case NEIGHBOR: MPI##_Neighbor_alltoall(s, n, type, r, n, type, ring); break;                                                               \
  default:                                                                                                                                  \
    for (int i = 0; i < ranks || i < 2; i++) { counts[i] = n; places[i] = (int)(i * (step)); far[i] = i * (step); types[i] = type; }         \
    if (call == ALLTOALLW) MPI##_Alltoallw(s, counts, places, types, r, counts, places, types, MPI_COMM_WORLD);                              \
    else MPI##_Neighbor_alltoallw(s, counts, far, types, r, counts, far, types, ring);                                                       \
  }

static double calls(int way, const struct layout *l, long n) {
  static int counts[RANKS], places[RANKS];
  static MPI_Aint far[RANKS];
  static MPI_Datatype types[RANKS];
  PMPI_Barrier(MPI_COMM_WORLD);
  double start = PMPI_Wtime();
  for (long k = 0; k < n; k++) {
    int root = (int)(k % ranks);
    if (way == CONVERTED) {
      CALL_OF(MPI, out, in, l->count, l->type, l->extent)
    } else if (way == BARE) {
      CALL_OF(PMPI, out, in, l->count, l->type, l->extent)
    } else {
      for (int i = 0; i < sent(root); i++) by_hand(l, out + i * l->extent, packed_out + i * l->bytes, 1);
      CALL_OF(PMPI, packed_out, packed_in, (int)l->bytes, MPI_BYTE, l->bytes)
      for (int i = 0; i < received(root); i++) by_hand(l, in + i * l->extent, packed_in + i * l->bytes, 0);
    }
  }
  double mine = (PMPI_Wtime() - start) * 1e6 / n, slowest;
  PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2 || ranks > RANKS) { if (!rank) fprintf(stderr, "collectives: needs 2 to %d ranks, not %d\n", RANKS, ranks); MPI_Finalize(); return 2; }
  if (argc > 1 && atoi(argv[1]) > 0 && atoi(argv[1]) < MAX_ROUNDS) rounds = atoi(argv[1]);
  double budget = argc > 2 ? atof(argv[2]) : 2;
  int periods = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periods, 0, &ring);
  for (int k = 0; k < SIZES; k++)
    for (int class = 0; class < CLASSES; class++) {
      struct layout l;
      if (!layout(&l, class, 64L << (2 * k))) continue;
      /* Size of a buffer with the blocks for all ranks. It is limited, because the displacements of
       * MPI_Alltoallw are of type int. */
      long user = ranks * (l.extent + 64);
      if (user > 1L << 28) { forget(&l); continue; }
      out = calloc(1, user); in = calloc(1, user);
      packed_out = calloc(ranks, l.bytes); packed_in = calloc(ranks, l.bytes);
      memset(out, 1, user);
      for (call = 0; call < CALLS; call++) measure(names[call], &l, budget, rounds, rank, calls);
      free(out); free(in); free(packed_out); free(packed_in);
      forget(&l);
    }
  MPI_Comm_free(&ring);
  MPI_Finalize();
  return 0;
}
