/* Ping-pong of two ranks, which times each layout class and payload in three ways. In the first,
 * the data have a derived type, and the preload library converts the messages. In the second, they
 * have the same type, and the unmodified MPI library does the work. In the third, they are packed
 * by hand into a contiguous message. MPI_ names call the preload library, which must convert every
 * message (DDTC_POLICY=all); PMPI_ names call the unmodified library.
 *
 * Prints "library VERSION", and then lines of "CLASS,BYTES,CONVERTED,BARE,HAND,NOISE". CONVERTED,
 * BARE and HAND are the times of the three ways; BARE is the time of the unmodified library. Each
 * time is the median of interleaved rounds, in microseconds for one direction. NOISE is the largest
 * median absolute deviation of the three, in percent.
 *
 * Usage: pingpong [ROUNDS [MILLISECONDS_PER_ROUND [FOLDER [inside]]]]
 *
 * With `inside`, the messages that the preload library does not convert are packed and unpacked
 * inside the MPI library, by code that ddtc has compiled. Lines are then
 * "inside,CLASS,BYTES,INSIDE,CONVERTED,HAND,NOISE", where INSIDE is the time of these messages. */
#include "tune.h"

static int rank, rounds = 15;
static char *user, *packed;

static double turns(int way, const struct layout *l, long n) {
  MPI_Comm c = MPI_COMM_WORLD;
  MPI_Status s;
  int peer = 1 - rank;
  PMPI_Barrier(c);
  double start = PMPI_Wtime();
  for (long k = 0; k < n; k++)
    for (int half = 0; half < 2; half++) {
      int sending = (rank + half) % 2 == 0;
      if (way == CONVERTED) { if (sending) MPI_Send(user, l->count, l->type, peer, 1, c); else MPI_Recv(user, l->count, l->type, peer, 1, c, &s); }
      else if (way == BARE) { if (sending) PMPI_Send(user, l->count, l->type, peer, 1, c); else PMPI_Recv(user, l->count, l->type, peer, 1, c, &s); }
      else if (sending) { by_hand(l, user, packed, 1); PMPI_Send(packed, (int)l->bytes, MPI_BYTE, peer, 1, c); }
      else { PMPI_Recv(packed, (int)l->bytes, MPI_BYTE, peer, 1, c, &s); by_hand(l, user, packed, 0); }
    }
  return (PMPI_Wtime() - start) * 1e6 / (2.0 * n);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int ranks, length;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) { if (!rank) fprintf(stderr, "pingpong: needs 2 ranks, not %d\n", ranks); MPI_Finalize(); return 2; }
  if (argc > 1 && atoi(argv[1]) > 0 && atoi(argv[1]) < MAX_ROUNDS) rounds = atoi(argv[1]);
  double budget = argc > 2 ? atof(argv[2]) : 2;
  int inside = argc > 4 && !strcmp(argv[4], "inside");
  static char version[16384];
  MPI_Get_library_version(version, &length);
  if (rank == 0) printf("library %.*s\n", (int)strcspn(version, "\n"), version);
  /* There are more sizes from 4 to 16 KiB, because MPI libraries change their protocol there. */
  static const long sizes[] = {64, 256, 1024, 4096, 8192, 12288, 16320, 16384, 65536, 262144, 1048576, 4194304, 16777216};
  for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (int class = 0; class < CLASSES; class++) {
      struct layout l;
      if (!layout(&l, class, sizes[k])) continue;
      user = malloc(l.extent); packed = malloc(l.bytes);
      memset(user, 1, l.extent); memset(packed, 1, l.bytes);
      struct times t = timed(&l, budget, rounds, turns);
      if (inside) { double converted = t.of[CONVERTED]; t.of[CONVERTED] = t.of[BARE]; t.of[BARE] = converted; }
      row(inside ? "inside," : "", &l, &t, rank);
      forget(&l);
      free(user); free(packed);
    }
  MPI_Finalize();
  return 0;
}
