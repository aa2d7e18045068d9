/* Times one-sided operations for each layout class and payload in three ways. In the first, the
 * origin has a derived type, and the preload library converts the call. In the second, the origin
 * has the same type, and the unmodified MPI library does the work. In the third, the data are
 * packed by hand. Each operation is followed by a flush, or a wait for its request. MPI_ names call
 * the preload library, which must convert every call (DDTC_POLICY=all); PMPI_ names call the
 * unmodified library. Calls that complete operations always use their MPI_ name, because the
 * preload library converts only operations whose completion it can see.
 *
 * Prints lines of "CALL,CLASS,BYTES,CONVERTED,BARE,HAND,NOISE" like the other programs that `ddtc
 * tune` runs. Each layout is measured with two datatypes at the target: the datatype of the origin,
 * and a dense one. The line has the times for one of the two: the one for which conversion gains
 * less.
 *
 * Usage: windows [ROUNDS [MILLISECONDS_PER_ROUND]] */
#include "tune.h"

enum { SIZES = 8, ROOM = 8 << 20 };
enum { PUT, GET, CALLS };
static const char *const names[CALLS] = {"put,", "get,"};
static int call, to, dense;
/* `element` is the datatype of the elements of the current layout, and `elements` their number. The
 * two describe a dense target and packed data. If the elements of the layout are an int, a double
 * and three floats (`parts` is 1), `element` is `structure`. */
static MPI_Datatype element, structure;
static int elements;
static char *user, *packed;
static MPI_Win win;

static double calls(int way, const struct layout *l, long n) {
  MPI_Request r;
  MPI_Datatype there = dense ? element : l->type;
  int m = dense ? elements : l->count;
  PMPI_Barrier(MPI_COMM_WORLD);
  double start = PMPI_Wtime();
  for (long k = 0; k < n; k++) {
    if (way == BY_HAND && call != GET) by_hand(l, user, packed, 1);
    if (call == PUT) {
      if (way == CONVERTED) MPI_Put(user, l->count, l->type, to, 0, m, there, win);
      else if (way == BARE) PMPI_Put(user, l->count, l->type, to, 0, m, there, win);
      else PMPI_Put(packed, elements, element, to, 0, m, there, win);
    } else {
      if (way == CONVERTED) MPI_Rget(user, l->count, l->type, to, 0, m, there, win, &r);
      else if (way == BARE) PMPI_Rget(user, l->count, l->type, to, 0, m, there, win, &r);
      else PMPI_Rget(packed, elements, element, to, 0, m, there, win, &r);
    }
    if (call == GET) MPI_Wait(&r, MPI_STATUS_IGNORE); else MPI_Win_flush(to, win);
    if (way == BY_HAND && call == GET) by_hand(l, user, packed, 0);
  }
  double mine = (PMPI_Wtime() - start) * 1e6 / n, slowest;
  PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks, rounds = 15;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 1 && atoi(argv[1]) > 0 && atoi(argv[1]) < MAX_ROUNDS) rounds = atoi(argv[1]);
  double budget = argc > 2 ? atof(argv[2]) : 2;
  to = (rank + 1) % ranks;
  char *mine;
  MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
  user = calloc(ROOM, 1); packed = calloc(ROOM, 1);
  memset(mine, 0, ROOM);
  int lengths[3] = {1, 1, 3};
  MPI_Aint at[3] = {0, 4, 12};
  MPI_Datatype of[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, packed_structure;
  MPI_Type_create_struct(3, lengths, at, of, &packed_structure);
  MPI_Type_create_resized(packed_structure, 0, 24, &structure);
  MPI_Type_commit(&structure);
  MPI_Type_free(&packed_structure);
  MPI_Win_lock_all(0, win);
  PMPI_Barrier(MPI_COMM_WORLD);
  for (int k = 0; k < SIZES; k++)
    for (int class = 0; class < CLASSES; class++)
      for (call = 0; call < CALLS; call++) {
        struct layout l;
        if (!layout(&l, class, 64L << (2 * k))) continue;
        element = l.parts == 1 ? structure : l.parts == 2 ? MPI_CHAR : MPI_DOUBLE;
        elements = l.parts == 1 ? l.count : (int)(l.parts == 2 ? l.bytes : l.bytes / 8);
        struct times times[2];
        for (dense = 0; dense < 2; dense++) times[dense] = timed(&l, budget, rounds, calls);
        int worse = times[1].of[BARE] / times[1].of[CONVERTED] < times[0].of[BARE] / times[0].of[CONVERTED];
        row(names[call], &l, &times[worse], rank);
        forget(&l);
      }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Type_free(&structure);
  MPI_Finalize();
  return 0;
}
