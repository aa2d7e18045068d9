/* Checks and times messages between two ranks whose buffers consist of many pieces of equal length.
 * The pieces are on the sending side, on the receiving side, or on both. The program knows nothing
 * of ddtc. See packaging/mpich/README.md.
 *
 *     mpicc -O2 pieces.c -o pieces
 *     mpiexec -n 2 ./pieces check
 *     mpiexec -n 2 ./pieces time
 *
 * `check` sends messages of 4 KiB to 1 MiB with all pairs of pieces on the two sides, in three forms
 * of datatypes, to receives with exactly the room, more room, half the room and none, each posted
 * before the send and after it. It compares every byte of the receive buffer, including the gaps,
 * and the class of the returned error. The exit status is 1 if anything is wrong.
 *
 * `time` prints lines SIDE,PIECE,BYTES,MICROSECONDS. A piece of 0 bytes means that both buffers are
 * contiguous. The microseconds are half of a round trip, in which each rank sends once. They are the
 * median of 11 batches. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20, MARK = 0x5a, BATCHES = 11 };
enum form { VECTOR, REPEATED, IRREGULAR, FORMS };
enum room { EXACT, MORE, HALF, NONE, ROOMS };
static const char *const form_names[] = {"vector", "repeated", "irregular"};
static const char *const room_names[] = {"exact", "more", "half", "none"};
static int rank;

/* One side of a message: `count` instances of `type`, which together have `pieces` pieces of `length`
 * bytes each. The piece with number i begins at byte `at(side, i)` of the buffer. */
struct side {
  MPI_Datatype type;
  int count, pieces, length;
  enum form form;
};

/* A length of 0 stands for a contiguous buffer, which is one piece. */
static int pieces_of(int length, int bytes) { return length ? bytes / length : bytes > 0; }

static size_t at(const struct side *side, int i) {
  size_t gap = side->form == IRREGULAR ? (size_t)(i % 3) * 8 : 0;
  return (size_t)i * 2 * (size_t)side->length + gap;
}

static struct side make(int length, int bytes, enum form form) {
  struct side side = {MPI_DOUBLE, bytes / 8, pieces_of(length, bytes), length ? length : bytes, form};
  if (length == 0 || bytes == 0) {
    MPI_Type_dup(MPI_DOUBLE, &side.type);
  } else if (form == VECTOR) {
    side.count = 1;
    MPI_Type_vector(side.pieces, length / 8, length / 4, MPI_DOUBLE, &side.type);
  } else if (form == REPEATED) {
    MPI_Datatype piece;
    side.count = side.pieces;
    MPI_Type_contiguous(length / 8, MPI_DOUBLE, &piece);
    MPI_Type_create_resized(piece, 0, 2 * length, &side.type);
    MPI_Type_free(&piece);
  } else {
    MPI_Aint *places = malloc((size_t)side.pieces * sizeof *places);
    for (int i = 0; i < side.pieces; i++) places[i] = (MPI_Aint)at(&side, i);
    side.count = 1;
    MPI_Type_create_hindexed_block(side.pieces, length / 8, places, MPI_DOUBLE, &side.type);
    free(places);
  }
  MPI_Type_commit(&side.type);
  return side;
}

/* Byte i of the packed message. */
static unsigned char byte(size_t i) { return (unsigned char)(i * 131 + (i >> 8) * 17 + 1); }

/* Writes the first `bytes` packed bytes of the message to the pieces of a buffer. */
static void fill(const struct side *side, unsigned char *buffer, size_t bytes) {
  size_t packed = 0;
  for (int i = 0; i < side->pieces && packed < bytes; i++)
    for (int j = 0; j < side->length && packed < bytes; j++, packed++) buffer[at(side, i) + (size_t)j] = byte(packed);
}

/* Returns whether every byte outside of the pieces of a buffer still has the value MARK. */
static int gaps_are_marked(const struct side *side, const unsigned char *buffer, size_t size) {
  size_t next = 0;
  for (int i = 0; i <= side->pieces; i++) {
    size_t end = i < side->pieces ? at(side, i) : size;
    for (; next < end; next++)
      if (buffer[next] != MARK) return 0;
    if (i < side->pieces) next = end + (size_t)side->length;
  }
  return 1;
}

/* Tells the other rank to go on, or waits until it says so. */
static void turn(int from) {
  if (rank == from) MPI_Send(NULL, 0, MPI_INT, 1 - from, 1, MPI_COMM_WORLD);
  else MPI_Recv(NULL, 0, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Sends one message from rank 0 to rank 1. Returns on rank 1 whether something was wrong. */
static int message(const struct side *from, const struct side *to, int bytes, enum room room, int posted,
                   unsigned char *buffer, unsigned char *expected, size_t size) {
  MPI_Request request;
  memset(buffer, MARK, size);
  if (rank == 0) {
    fill(from, buffer, (size_t)bytes);
    if (posted) turn(1);
    MPI_Isend(buffer, from->count, from->type, 1, 0, MPI_COMM_WORLD, &request);
    if (!posted) turn(0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return 0;
  }
  int class = MPI_SUCCESS, code, count = -1;
  MPI_Status status;
  if (posted) {
    MPI_Irecv(buffer, to->count, to->type, 0, 0, MPI_COMM_WORLD, &request);
    turn(1);
    code = MPI_Wait(&request, &status);
  } else {
    turn(0);
    code = MPI_Recv(buffer, to->count, to->type, 0, 0, MPI_COMM_WORLD, &status);
  }
  MPI_Error_class(code, &class);
  /* After a truncation, MPI does not say which bytes the receive buffer has. It must not write
   * anything outside of the pieces of the receive. */
  if (room == HALF || room == NONE) return class != MPI_ERR_TRUNCATE || !gaps_are_marked(to, buffer, size);
  memset(expected, MARK, size);
  fill(to, expected, (size_t)bytes);
  MPI_Get_elements(&status, MPI_DOUBLE, &count);
  return class != MPI_SUCCESS || count != bytes / 8 || memcmp(buffer, expected, size) != 0;
}

static int check(void) {
  static const int lengths[] = {0, 16, 24, 64, 256, 1024, 4096}, payloads[] = {4096, 8192, 24576, 65536, MOST};
  enum { LENGTHS = sizeof lengths / sizeof *lengths, PAYLOADS = sizeof payloads / sizeof *payloads };
  /* Twice the room, and pieces as long as their gaps. */
  size_t size = 4 * (size_t)MOST + 64;
  unsigned char *buffer = malloc(size), *expected = malloc(size);
  int sent = 0, wrong = 0;
  for (int p = 0; p < PAYLOADS; p++)
    for (int pair = 0; pair < LENGTHS * LENGTHS; pair++)
      for (int form = 0; form < FORMS; form++)
        for (int room = 0; room < ROOMS; room++) {
          int sender = lengths[pair / LENGTHS], receiver = lengths[pair % LENGTHS];
          /* Whole pieces on both sides; each length but 24 divides the payload. */
          int bytes = sender == 24 || receiver == 24 ? payloads[p] / 12288 * 12288 : payloads[p];
          if (bytes == 0) continue;
          int place = room == EXACT ? bytes : room == MORE ? 2 * bytes : room == HALF ? bytes / 2 : 0;
          if (receiver) place -= place % receiver;
          struct side from = make(sender, bytes, form), to = make(receiver, place, form);
          for (int posted = 0; posted < 2; posted++, sent++)
            if (message(&from, &to, bytes, room, posted, buffer, expected, size)) {
              wrong++;
              printf("wrong: %d bytes, %s, sender's pieces %d, receiver's %d, room %s, posted %s\n", bytes, form_names[form],
                     sender, receiver, room_names[room], posted ? "before the send" : "after the send");
            }
          MPI_Type_free(&from.type);
          MPI_Type_free(&to.type);
        }
  if (rank == 1) printf("pieces: %d messages, %d wrong\n", sent, wrong);
  free(buffer);
  free(expected);
  return wrong > 0;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Returns the microseconds of half a round trip, in the median of the batches. */
static double half_round_trip(const struct side *from, const struct side *to, const void *out, void *in) {
  double times[BATCHES];
  int turns = 8;
  for (int batch = -1; batch < BATCHES; batch++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < turns; i++)
      for (int sender = 0; sender < 2; sender++)
        if (rank == sender) MPI_Send(out, from->count, from->type, 1 - rank, 0, MPI_COMM_WORLD);
        else MPI_Recv(in, to->count, to->type, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double each = (MPI_Wtime() - begin) * 1e6 / (2 * turns);
    /* The first batch warms up, and sets how many messages make a batch of about 1 ms. */
    if (batch < 0) {
      turns = (int)(500 / each) + 2;
      MPI_Bcast(&turns, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } else {
      times[batch] = each;
    }
  }
  qsort(times, BATCHES, sizeof *times, by_size);
  return times[BATCHES / 2];
}

static int measure(void) {
  static const char *const names[] = {"neither", "sender", "receiver", "both"};
  static const int payloads[] = {8192, 65536, 262144, MOST};
  unsigned char *out = malloc(2 * MOST), *in = malloc(2 * MOST);
  memset(out, 1, 2 * MOST);
  memset(in, 2, 2 * MOST);
  for (size_t p = 0; p < sizeof payloads / sizeof *payloads; p++)
    for (int sides = 0; sides <= 3; sides++)
      for (int length = sides ? 16 : 0; length <= (sides ? 4096 : 0); length = 2 * length + !length) {
        struct side from = make(sides & 1 ? length : 0, payloads[p], VECTOR);
        struct side to = make(sides & 2 ? length : 0, payloads[p], VECTOR);
        double us = half_round_trip(&from, &to, out, in);
        if (rank == 0) printf("%s,%d,%d,%.2f\n", names[sides], length, payloads[p], us);
        MPI_Type_free(&from.type);
        MPI_Type_free(&to.type);
      }
  free(out);
  free(in);
  return 0;
}

int main(int argc, char **argv) {
  int ranks, bad;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (ranks != 2 || argc != 2 || (strcmp(argv[1], "check") && strcmp(argv[1], "time"))) {
    if (rank == 0) fprintf(stderr, "usage: mpiexec -n 2 %s check|time\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  bad = strcmp(argv[1], "time") ? check() : measure();
  MPI_Bcast(&bad, 1, MPI_INT, 1, MPI_COMM_WORLD);
  MPI_Finalize();
  return bad;
}
