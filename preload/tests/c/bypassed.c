/* Makes MPI calls of one kind, for tests that count how many of the calls the preload library
 * converts and bypasses.
 *
 * Usage: bypassed KIND N [END]. Most kinds make N calls; "many" makes 8 N, "collectives" 4 N,
 * "nonblocking" 2 N and "similar" 2 N calls. Without END the program finalizes MPI. If END is
 * "abort", the program calls MPI_Abort, and if END is "on", it repeats the calls until it is
 * killed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* Returns an uncommitted type of `blocks` blocks of 4 bytes at distances of 8 bytes. */
static MPI_Datatype gaps(int blocks) {
  MPI_Datatype t;
  MPI_Type_vector(blocks, 1, 2, MPI_INT, &t);
  return t;
}

static int *from, *into;

static void exchange(const void *out, void *in, int count, MPI_Datatype t) {
  MPI_Sendrecv(out, count, t, 0, 1, in, count, t, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

/* Returns a committed type of absolute addresses: an int at `p`, and three floats 8 bytes after it.
 * The program makes a separate type for each such object. */
static MPI_Datatype at_address(int *p) {
  int lengths[2] = {1, 3};
  MPI_Aint places[2];
  MPI_Datatype t, types[2] = {MPI_INT, MPI_FLOAT};
  MPI_Get_address(p, places);
  places[1] = places[0] + 8;
  MPI_Type_create_struct(2, lengths, places, types, &t);
  MPI_Type_commit(&t);
  return t;
}

static void calls(const char *kind, int n) {
  MPI_Datatype t;
  int i;
  if (!strcmp(kind, "named")) {
    for (i = 0; i < n; i++) exchange(from, into, 64, MPI_INT);
    return;
  }
  if (!strcmp(kind, "addresses")) {
    for (i = 0; i < n; i++) {
      MPI_Datatype s = at_address(from + 8 * i), r = at_address(into + 8 * i);
      MPI_Sendrecv(MPI_BOTTOM, 1, s, 0, 1, MPI_BOTTOM, 1, r, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
      MPI_Type_free(&s);
      MPI_Type_free(&r);
    }
    return;
  }
  if (!strcmp(kind, "many")) {
    /* Makes 8 N types, all of which live at the same time, and exchanges one message of each. */
    MPI_Datatype *all = malloc(8 * n * sizeof *all);
    for (i = 0; i < 8 * n; i++) {
      all[i] = gaps(1 + i % 64);
      MPI_Type_commit(&all[i]);
    }
    for (i = 0; i < 8 * n; i++) exchange(from, into, 1, all[i]);
    for (i = 0; i < 8 * n; i++) MPI_Type_free(&all[i]);
    free(all);
    return;
  }
  if (!strcmp(kind, "contiguous")) {
    MPI_Type_contiguous(64, MPI_INT, &t);
  } else if (!strcmp(kind, "similar")) {
    /* Exchange messages of two types that differ only in their last displacement. So the texts by
     * which the preload library's report describes the two types begin in the same way. */
    int places[400], which;
    for (which = 0; which < 2; which++) {
      for (i = 0; i < 400; i++) places[i] = 2 * i + (i == 399 ? 2 * which : 0);
      MPI_Type_create_indexed_block(400, 1, places, MPI_INT, &t);
      MPI_Type_commit(&t);
      for (i = 0; i < n; i++) exchange(from, into, 1, t);
      MPI_Type_free(&t);
    }
    return;
  } else {
    t = gaps(!strcmp(kind, "huge") ? 1 << 20 : 64);
  }
  if (!strcmp(kind, "unknown")) PMPI_Type_commit(&t); else MPI_Type_commit(&t);
  if (!strcmp(kind, "pack")) {
    char packed[256];
    for (i = 0; i < n; i++) {
      int at = 0;
      MPI_Pack(from, 1, t, packed, sizeof packed, &at, MPI_COMM_SELF);
    }
  } else if (!strcmp(kind, "collectives")) {
    /* Make four collective calls with the derived type `t`. All ranks use the type in the two
     * broadcasts and in MPI_Alltoallw; in MPI_Gather only the root uses it. */
    int one = 1, zero = 0;
    for (i = 0; i < n; i++) {
      MPI_Bcast(from, 1, t, 0, MPI_COMM_WORLD);
      MPI_Gather(from, 64, MPI_INT, into, 1, t, 0, MPI_COMM_WORLD);
      MPI_Request r;
      MPI_Ibcast(from, 1, t, 0, MPI_COMM_WORLD, &r);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
      MPI_Alltoallw(from, &one, &zero, &t, into, &one, &zero, &t, MPI_COMM_SELF);
    }
  } else if (!strcmp(kind, "window")) {
    MPI_Win win;
    MPI_Win_create(into, 1 << 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    for (i = 0; i < n; i++) MPI_Put(from, 1, t, rank, 0, 1, t, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
  } else if (!strcmp(kind, "file")) {
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, "left.data", MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    for (i = 0; i < n; i++) MPI_File_write_at(file, 0, from, 1, t, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
  } else if (!strcmp(kind, "persistent")) {
    /* Use twenty pairs of persistent requests, one after another. When the first pairs are made,
     * the preload library may not have had time to compile the type. */
    for (int pair = 0; pair < 20; pair++) {
      MPI_Request r[2];
      MPI_Recv_init(into, 1, t, 0, 1, MPI_COMM_SELF, &r[0]);
      MPI_Send_init(from, 1, t, 0, 1, MPI_COMM_SELF, &r[1]);
      for (i = 0; i < n / 20; i++) {
        MPI_Startall(2, r);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
      }
      MPI_Request_free(&r[0]);
      MPI_Request_free(&r[1]);
    }
  } else if (!strcmp(kind, "nonblocking")) {
    for (i = 0; i < n; i++) {
      MPI_Request r[2];
      MPI_Irecv(into, 1, t, 0, 1, MPI_COMM_SELF, &r[0]);
      MPI_Isend(from, 1, t, 0, 1, MPI_COMM_SELF, &r[1]);
      MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
  } else if (!strcmp(kind, "nothing")) {
    for (i = 0; i < n; i++) exchange(from, into, 0, t);
  } else {
    for (i = 0; i < n; i++) exchange(from, into, 1, t);
  }
  MPI_Type_free(&t);
}

int main(int argc, char **argv) {
  const char *kind = argv[1], *end = argc > 3 ? argv[3] : "";
  int n = atoi(argv[2]);
  from = calloc(1 << 22, sizeof *from), into = calloc(1 << 22, sizeof *into);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  do calls(kind, n); while (!strcmp(end, "on"));
  if (!strcmp(end, "abort")) MPI_Abort(MPI_COMM_WORLD, 3);
  MPI_Finalize();
  return 0;
}
