/* Makes MPI calls on two ranks, for tests in which PMPI layers take the calls. The first argument
 * has the letters of the groups of calls: messages (m), files (f), windows (w) and pack (p). The
 * calls use a type with gaps. The second argument is the name of a file. Rank 0 prints how many
 * numbers were wrong. No call is repeated in a loop that waits for something, so each run makes the
 * same calls. With -DPLUGIN, the file is compiled as a library whose function `run` does all
 * that. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 3000, LENGTH = 2, STRIDE = 5, EXTENT = BLOCKS * STRIDE, SIZE = BLOCKS * LENGTH };
enum { ROUNDS = 20, GUARD = -1 };

static int rank, peer, wrong, *from, *into;
static MPI_Datatype type;

static int mapped(int i) { return i % STRIDE < LENGTH; }
static int value(int rank, int round, int i) { return 1000000 * rank + 20000 * round + i; }

static void fill(int round) {
  for (int i = 0; i < EXTENT; i++) from[i] = value(rank, round, i), into[i] = GUARD;
}

/* Counts wrong elements of `into`, which must have the contents that came from the rank `sender`,
 * and clears the buffer. */
static void check(int sender, int round) {
  for (int i = 0; i < EXTENT; i++) {
    wrong += into[i] != (mapped(i) ? value(sender, round, i) : GUARD);
    into[i] = GUARD;
  }
}

static void messages(void) {
  MPI_Request both[2], kept[2];
  MPI_Status status;
  MPI_Datatype same;
  int count;
  MPI_Send_init(from, 1, type, peer, 3, MPI_COMM_WORLD, &kept[0]);
  MPI_Recv_init(into, 1, type, peer, 3, MPI_COMM_WORLD, &kept[1]);
  MPI_Type_dup(type, &same);
  for (int round = 0; round < ROUNDS; round++) {
    fill(round);
    MPI_Sendrecv(from, 1, type, peer, 1, into, 1, type, peer, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, type, &count);
    wrong += count != 1;
    check(peer, round);
    if (rank == 0) {
      MPI_Send(from, 1, type, peer, 2, MPI_COMM_WORLD);
      MPI_Recv(into, 1, same, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(into, 1, type, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(from, 1, same, peer, 2, MPI_COMM_WORLD);
    }
    check(peer, round);
    MPI_Irecv(into, 1, type, peer, 4, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(from, 1, type, peer, 4, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    check(peer, round);
    MPI_Start(&kept[1]);
    MPI_Start(&kept[0]);
    MPI_Wait(&kept[0], MPI_STATUS_IGNORE);
    MPI_Wait(&kept[1], MPI_STATUS_IGNORE);
    check(peer, round);
    MPI_Bcast(rank == 0 ? from : into, 1, type, 0, MPI_COMM_WORLD);
    if (rank == 1) check(0, round);
  }
  MPI_Request_free(&kept[0]);
  MPI_Request_free(&kept[1]);
  MPI_Type_free(&same);
}

static void files(const char *name) {
  MPI_File file;
  MPI_Offset bytes = SIZE * sizeof(int);
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  for (int round = 0; round < ROUNDS; round++) {
    fill(round);
    MPI_File_write_at(file, rank * bytes, from, 1, type, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, rank * bytes, into, 1, type, MPI_STATUS_IGNORE);
    check(rank, round);
  }
  MPI_File_close(&file);
}

static void windows(void) {
  MPI_Win window;
  int *kept = into;
  /* The window is in memory that the MPI library has allocated: with MPI_Win_create, Open MPI
   * 5.0.11 uses memory that it may have freed (docs/CALLS.md, "Windows"). */
  MPI_Win_allocate(EXTENT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &into, &window);
  for (int round = 0; round < ROUNDS; round++) {
    fill(round);
    MPI_Win_fence(0, window);
    MPI_Put(from, 1, type, peer, 0, 1, type, window);
    MPI_Win_fence(0, window);
    check(peer, round);
  }
  MPI_Win_free(&window);
  into = kept;
}

static void packs(void) {
  int *packed = malloc(SIZE * sizeof *packed);
  for (int round = 0; round < ROUNDS; round++) {
    int at = 0, room = 0;
    fill(round);
    MPI_Pack_size(1, type, MPI_COMM_SELF, &room);
    wrong += room < SIZE * (int)sizeof *packed;
    MPI_Pack(from, 1, type, packed, SIZE * sizeof *packed, &at, MPI_COMM_SELF);
    at = 0;
    MPI_Unpack(packed, SIZE * sizeof *packed, &at, into, 1, type, MPI_COMM_SELF);
    check(rank, round);
  }
  free(packed);
}

#ifdef PLUGIN
#define main run
#endif
int main(int argc, char **argv) {
  int all;
  MPI_Datatype blocks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = 1 - rank;
  from = malloc(EXTENT * sizeof *from);
  into = malloc(EXTENT * sizeof *into);
  MPI_Type_vector(BLOCKS, LENGTH, STRIDE, MPI_INT, &blocks);
  MPI_Type_create_resized(blocks, 0, EXTENT * sizeof(int), &type);
  MPI_Type_commit(&type);
  if (strchr(argv[1], 'm')) messages();
  if (strchr(argv[1], 'f')) files(argv[2]);
  if (strchr(argv[1], 'w')) windows();
  if (strchr(argv[1], 'p')) packs();
  MPI_Type_free(&type);
  MPI_Type_free(&blocks);
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\n", all);
  MPI_Finalize();
  return 0;
}
