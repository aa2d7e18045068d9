/* Measures calls that the other benches leave out. The script benches/corners.py uses the times.
 *
 *     corners first CASE   the first 100 messages there and back of this process, with making,
 *                          committing and freeing their type; CASE is an index in `cases`
 *     corners halo         columns of 72 B, exchanged by MPI_Sendrecv
 *     corners bus          packs, unpacks and messages of long vectors by all ranks at once
 *     corners files        contiguous writes to a file
 *
 * Prints a line for each row: its name, its bytes, and two times in microseconds, of the calls that
 * the preload library may change and of a control that it does not change. Times are medians, except
 * those of `first`, which are sums. Bytes are compared before anything is timed, or after it for
 * `first`, since a type may not be used before its first messages. Ends with 1 if bytes are wrong. */
#include <mpi.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 100, SAMPLES = 41, TAG = 3 };

static int rank, ranks;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}
static int less(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }
static double middle(double *v, int n) { qsort(v, n, sizeof *v, less); return v[n / 2]; }
static void row(const char *name, size_t bytes, double time, double control) {
  if (rank == 0) printf("%s,%zu,%.3f,%.3f\n", name, bytes, time, control);
}
static void wrong(const char *name) {
  fprintf(stderr, "corners: wrong bytes: %s\n", name);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
static void *memory(size_t n, int seed) {
  unsigned char *p = malloc(n);
  if (!p) MPI_Abort(MPI_COMM_WORLD, 1);
  for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(i * 167 + i / 251 + 13 * seed);
  return p;
}

/* A datatype: `blocks` blocks of `length` bytes, `stride` bytes apart. If `drawn` is true, the
 * distances vary, and the type is an indexed block. Blocks of 24 bytes are structures of an int, a
 * double and three floats, with padding after the int. Copies between the bytes of a type and
 * packed ones are the loops that a program would have. */
struct layout { const char *name; int blocks, length, stride, drawn; };
static int place(const struct layout *l, int i) { return l->drawn ? i * l->stride + i * 7 % (l->stride / l->length - 1) * l->length : i * l->stride; }
static MPI_Datatype made(const struct layout *l) {
  MPI_Datatype t;
  if (l->drawn) {
    int *places = malloc(l->blocks * sizeof *places);
    for (int i = 0; i < l->blocks; i++) places[i] = place(l, i) / 4;
    MPI_Type_create_indexed_block(l->blocks, l->length / 4, places, MPI_INT, &t);
    free(places);
  } else if (l->length == l->stride) {
    MPI_Type_contiguous(l->blocks * l->length / 8, MPI_DOUBLE, &t);
  } else if (l->length == 24) {
    int lengths[3] = {1, 1, 3};
    MPI_Aint at[3] = {0, 8, 16};
    MPI_Datatype of[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, s, one;
    MPI_Type_create_struct(3, lengths, at, of, &s);
    MPI_Type_create_resized(s, 0, l->stride, &one);
    MPI_Type_contiguous(l->blocks, one, &t);
    MPI_Type_free(&s);
    MPI_Type_free(&one);
  } else {
    MPI_Type_vector(l->blocks, l->length / 8, l->stride / 8, MPI_DOUBLE, &t);
  }
  MPI_Type_commit(&t);
  return t;
}
static void pack(const struct layout *l, const char *from, char *to) {
  for (int i = 0; i < l->blocks; i++, to += l->length) {
    const char *at = from + place(l, i);
    if (l->length == 24) { memcpy(to, at, 4); memcpy(to + 4, at + 8, 20); }
    else memcpy(to, at, l->length);
  }
}
static void unpack(const struct layout *l, const char *from, char *to) {
  for (int i = 0; i < l->blocks; i++, from += l->length) {
    char *at = to + place(l, i);
    if (l->length == 24) { memcpy(at, from, 4); memcpy(at + 8, from + 4, 20); }
    else memcpy(at, from, l->length);
  }
}
static size_t bytes(const struct layout *l) { return (size_t)l->blocks * l->length; }
static size_t span(const struct layout *l) { return (size_t)(l->blocks + 1) * l->stride; }

static const struct layout cases[] = {
    {"structures of 24 B", 1024, 24, 32, 0}, {"vector of 8 B", 2048, 8, 16, 0}, {"vector of 8 B", 32, 8, 16, 0},
    {"columns of 72 B", 64, 72, 8072, 0},    {"indexed block of 12 B", 1000, 12, 120, 1}, {"rows of 4096 B", 32, 4096, 8192, 0},
    {"contiguous", 128, 8, 8, 0},
};

static void there_and_back(void *a, void *b, int n, MPI_Datatype t) {
  if (rank == 0) {
    MPI_Send(a, n, t, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(b, n, t, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(b, n, t, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(b, n, t, 0, TAG, MPI_COMM_WORLD);
  }
}

static void first(const struct layout *l) {
  char *a = memory(span(l), 1), *b = memory(span(l), 2), *p = memory(bytes(l), 3), *q = memory(bytes(l), 4);
  /* The connection is set up by contiguous messages, which the library leaves alone. */
  for (int k = 0; k < 200; k++) there_and_back(p, q, (int)bytes(l), MPI_BYTE);
  MPI_Barrier(MPI_COMM_WORLD);
  double begun = now();
  for (int k = 0; k < MESSAGES; k++) there_and_back(p, q, (int)bytes(l), MPI_BYTE);
  double control = now() - begun;
  MPI_Barrier(MPI_COMM_WORLD);
  begun = now();
  MPI_Datatype t = made(l);
  for (int k = 0; k < MESSAGES; k++) there_and_back(a, b, 1, t);
  MPI_Type_free(&t);
  double time = now() - begun;
  if (rank == 0) {
    pack(l, a, p);
    pack(l, b, q);
    if (memcmp(p, q, bytes(l))) wrong(l->name);
  }
  row(l->name, bytes(l), time, control);
}

static void exchange(const void *a, void *b, int n, MPI_Datatype t) {
  MPI_Sendrecv(a, n, t, rank ^ 1, TAG, b, n, t, rank ^ 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Both ranks of a pair exchange the layout, `inner` times a sample. */
static void halo(const char *name, const struct layout *l, int inner) {
  char *a = memory(span(l), 1), *b = memory(span(l), 2), *p = memory(bytes(l), 3), *q = memory(bytes(l), 4);
  double times[2][SAMPLES];
  MPI_Datatype t = made(l);
  for (int k = 0; k < 300; k++) exchange(a, b, 1, t);
  pack(l, a, p);
  exchange(p, q, (int)bytes(l), MPI_BYTE);
  pack(l, b, p);
  if (memcmp(p, q, bytes(l))) wrong(name);
  for (int s = 0; s < SAMPLES; s++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int k = 0; k < inner; k++) exchange(a, b, 1, t);
    times[0][s] = (now() - begun) / inner;
    MPI_Barrier(MPI_COMM_WORLD);
    begun = now();
    for (int k = 0; k < inner; k++) { pack(l, a, p); exchange(p, q, (int)bytes(l), MPI_BYTE); unpack(l, q, b); }
    times[1][s] = (now() - begun) / inner;
  }
  row(name, bytes(l), middle(times[0], SAMPLES), middle(times[1], SAMPLES));
  MPI_Type_free(&t);
  free(a); free(b); free(p); free(q);
}

/* All ranks pack and unpack at once, so they share the memory bus. */
static void packs(const char *names[2], const struct layout *l) {
  char *a = memory(span(l), 1), *p = memory(bytes(l), 2), *q = memory(bytes(l), 3);
  double times[4][SAMPLES];
  MPI_Datatype t = made(l);
  for (int k = 0, at; k < 40; k++) at = 0, MPI_Pack(a, 1, t, p, (int)bytes(l), &at, MPI_COMM_WORLD);
  pack(l, a, q);
  if (memcmp(p, q, bytes(l))) wrong(names[0]);
  memset(a, 0, span(l));
  for (int k = 0, at; k < 40; k++) at = 0, MPI_Unpack(p, (int)bytes(l), &at, a, 1, t, MPI_COMM_WORLD);
  memset(q, 0, bytes(l));
  pack(l, a, q);
  if (memcmp(p, q, bytes(l))) wrong(names[1]);
  for (int s = 0; s < SAMPLES; s++)
    for (int way = 0, at = 0; way < 4; way++, at = 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      double begun = now();
      if (way == 0) MPI_Pack(a, 1, t, p, (int)bytes(l), &at, MPI_COMM_WORLD);
      if (way == 1) MPI_Unpack(p, (int)bytes(l), &at, a, 1, t, MPI_COMM_WORLD);
      if (way == 2) pack(l, a, p);
      if (way == 3) unpack(l, p, a);
      MPI_Barrier(MPI_COMM_WORLD);
      times[way][s] = now() - begun;
    }
  for (int way = 0; way < 2; way++) {
    double time = middle(times[way], SAMPLES), control = middle(times[way + 2], SAMPLES);
    row(names[way], bytes(l), time, control);
  }
  MPI_Type_free(&t);
  free(a); free(p); free(q);
}

/* Each rank writes a file of its own, at increasing offsets. The control is a pwrite of the same
 * bytes into another file. */
static void writes(const char *name, size_t n, MPI_Datatype t, int count) {
  char path[64], other[64];
  snprintf(path, sizeof path, "corners-%d", rank);
  snprintf(other, sizeof other, "corners-plain-%d", rank);
  int inner = n > 65536 ? 20 : 200, plain = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600);
  char *a = memory(n, 1), *q = calloc(n, 1);
  double times[2][SAMPLES];
  MPI_File f;
  if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f) != MPI_SUCCESS || plain < 0) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int k = 0; k < inner; k++) MPI_File_write_at(f, (MPI_Offset)(k * n), a, count, t, MPI_STATUS_IGNORE);
  int own = open(path, O_RDONLY);
  if (own < 0 || pread(own, q, n, (off_t)((inner - 1) * n)) != (ssize_t)n || memcmp(a, q, n)) wrong(name);
  close(own);
  for (int k = 0; k < inner; k++)
    if (pwrite(plain, a, n, (off_t)(k * n)) != (ssize_t)n) wrong("pwrite");
  for (int s = 0; s < SAMPLES; s++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = now();
    for (int k = 0; k < inner; k++) MPI_File_write_at(f, (MPI_Offset)(k * n), a, count, t, MPI_STATUS_IGNORE);
    times[0][s] = (now() - begun) / inner;
    MPI_Barrier(MPI_COMM_WORLD);
    begun = now();
    for (int k = 0; k < inner; k++)
      if (pwrite(plain, a, n, (off_t)(k * n)) != (ssize_t)n) wrong("pwrite");
    times[1][s] = (now() - begun) / inner;
  }
  row(name, n, middle(times[0], SAMPLES), middle(times[1], SAMPLES));
  MPI_File_close(&f);
  close(plain);
  unlink(path);
  unlink(other);
  free(a);
  free(q);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int which = argc > 2 ? atoi(argv[2]) : 0, known = (int)(sizeof cases / sizeof *cases);
  if (ranks % 2 == 0 && !strcmp(what, "first") && which >= 0 && which < known) {
    first(&cases[which]);
  } else if (ranks % 2 == 0 && !strcmp(what, "halo")) {
    for (int rows = 16; rows <= 4096; rows *= 4) halo("columns of 72 B", &(struct layout){"", rows, 72, 8072, 0}, rows > 256 ? 10 : 50);
  } else if (ranks % 2 == 0 && !strcmp(what, "bus")) {
    packs((const char *[]){"packing blocks of 64 B", "unpacking blocks of 64 B"}, &(struct layout){"", 131072, 64, 128, 0});
    packs((const char *[]){"packing blocks of 8 B", "unpacking blocks of 8 B"}, &(struct layout){"", 1048576, 8, 16, 0});
    halo("messages of blocks of 64 B", &(struct layout){"", 65536, 64, 128, 0}, 2);
    halo("messages of blocks of 8 B", &(struct layout){"", 524288, 8, 16, 0}, 2);
  } else if (!strcmp(what, "files")) {
    for (size_t n = 64; n <= 1048576; n *= 16) {
      MPI_Datatype t;
      writes("MPI_DOUBLE", n, MPI_DOUBLE, (int)(n / 8));
      MPI_Type_contiguous((int)(n / 8), MPI_DOUBLE, &t);
      MPI_Type_commit(&t);
      writes("a contiguous type", n, t, 1);
      MPI_Type_free(&t);
    }
  } else {
    if (rank == 0) fprintf(stderr, "usage, on an even number of ranks: corners first CASE | halo | bus | files\n");
    MPI_Finalize();
    return 2;
  }
  MPI_Finalize();
  return 0;
}
