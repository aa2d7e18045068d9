/* Times reads and writes of files, one file for each rank, for each layout class and payload in
 * three ways. In the first, the data have a derived type, and the preload library converts the
 * call. In the second, they have the same type, and the unmodified MPI library does the work. In
 * the third, they are packed by hand. MPI_ names call the preload library, which must convert every
 * call (DDTC_POLICY=all); PMPI_ names call the unmodified library.
 *
 * Prints lines of "CALL,CLASS,BYTES,CONVERTED,BARE,HAND,NOISE". CONVERTED, BARE and HAND are the
 * times of the three ways; BARE is the time of the unmodified library. Each time is the median of
 * interleaved rounds, in microseconds for a call on the slowest rank. NOISE is the largest median
 * absolute deviation of the three, in percent.
 *
 * Usage: files [ROUNDS [MILLISECONDS_PER_ROUND [FOLDER]]] */
#include "tune.h"

enum { SIZES = 8, LONGEST = 4096 };
enum { WRITE, READ, CALLS };
static const char *const names[CALLS] = {"file-write,", "file-read,"};
static int call;
static char *user, *packed;
static MPI_File file;

static double calls(int way, const struct layout *l, long n) {
  MPI_Status s;
  PMPI_Barrier(MPI_COMM_WORLD);
  double start = PMPI_Wtime();
  for (long k = 0; k < n; k++)
    if (way == CONVERTED) {
      if (call == WRITE) MPI_File_write_at(file, 0, user, l->count, l->type, &s); else MPI_File_read_at(file, 0, user, l->count, l->type, &s);
    } else if (way == BARE) {
      if (call == WRITE) PMPI_File_write_at(file, 0, user, l->count, l->type, &s); else PMPI_File_read_at(file, 0, user, l->count, l->type, &s);
    } else {
      if (call == WRITE) by_hand(l, user, packed, 1);
      if (call == WRITE) PMPI_File_write_at(file, 0, packed, (int)l->bytes, MPI_BYTE, &s); else PMPI_File_read_at(file, 0, packed, (int)l->bytes, MPI_BYTE, &s);
      if (call == READ) by_hand(l, user, packed, 0);
    }
  double mine = (PMPI_Wtime() - start) * 1e6 / n, slowest;
  PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, rounds = 15;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1 && atoi(argv[1]) > 0 && atoi(argv[1]) < MAX_ROUNDS) rounds = atoi(argv[1]);
  double budget = argc > 2 ? atof(argv[2]) : 2;
  char name[LONGEST];
  snprintf(name, sizeof name, "%s/rank%d", argc > 3 ? argv[3] : ".", rank);
  /* Open the file by the MPI_ name: the preload library converts calls only on files that it has
   * seen being opened. */
  int code = MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  if (code != MPI_SUCCESS) { fprintf(stderr, "files: %s: cannot be opened\n", name); MPI_Abort(MPI_COMM_WORLD, 2); }
  user = malloc(40L << 20); packed = malloc(8 << 20);
  memset(user, 1, 40L << 20); memset(packed, 1, 8 << 20);
  /* Fill the file, so that every read finds its data. */
  PMPI_File_write_at(file, 0, packed, 8 << 20, MPI_BYTE, MPI_STATUS_IGNORE);
  for (int k = 0; k < SIZES; k++)
    for (int class = 0; class < CLASSES; class++) {
      struct layout l;
      if (!layout(&l, class, 64L << (2 * k))) continue;
      for (call = 0; call < CALLS; call++) measure(names[call], &l, budget, rounds, rank, calls);
      forget(&l);
    }
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
