/* Receives messages that end inside a basic element, in every way to receive. The result must be
 * that of the MPI library without the preload library.
 *
 * Rank 0 sends bytes. Rank 1 receives them as derived types and prints a line for each message,
 * with the classes of codes, the status and a hash of the memory. The text must be the same with
 * the preload library and without it.
 *
 * Usage: ragged return | handler | long | matched. With `handler`, the program has an error handler
 * that returns, and a line has the arguments of the handler instead of codes, since MPICH returns
 * success after such a handler. With `long`, messages have hundreds of kilobytes. With `matched`,
 * only matched messages are sent; the other modes leave them out, since MPICH 5.0.2 crashes or
 * hangs after it has refused a matched message. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 1 << 21, TYPES = 5 };
static MPI_Comm comm;
static int calls, raised;
static const char *where;

static int class_of(int code) {
  int class = 0;
  if (code) MPI_Error_class(code, &class);
  return class;
}
static void handler(MPI_Comm *on, int *code, ...) {
  calls++;
  raised = class_of(*code);
  where = *on == comm ? "comm" : *on == MPI_COMM_WORLD ? "world" : *on == MPI_COMM_SELF ? "self" : "other";
}
static uint64_t hash(const unsigned char *p, size_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (; n; n--, p++) h = (h ^ *p) * 0x100000001b3u;
  return h;
}

enum { RECV, IGNORED, SENDRECV, MRECV, WAIT, TEST, WAITANY, PERSISTENT, WAITALL, WAITSOME, TESTALL, STATUSES_IGNORED, TWO,
       GET_STATUS, PERSISTENT_ALL, IMRECV, WAYS };
static const char *const names[WAYS] = {"recv", "recv-ignored", "sendrecv", "mrecv", "wait", "test", "waitany", "persistent",
  "waitall", "waitsome", "testall", "waitall-ignored", "waitall-two", "get-status", "persistent-waitall", "imrecv"};

static unsigned char out[BUFFER_BYTES], in[BUFFER_BYTES];

/* Receives one message of a type in one way and prints what the receive has returned. */
static void receive(int way, int count, MPI_Datatype type, int i, int n) {
  MPI_Status s[2];
  MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Message message;
  int flag = 0, index = -1, some = -1, indices[2] = {-1, -1}, code = 0, before = 0, other = 0;
  memset(in, 0xDD, BUFFER_BYTES);
  memset(s, 0x11, sizeof s);
  s[0].MPI_ERROR = s[1].MPI_ERROR = 0;
  calls = raised = 0;
  where = "nowhere";
  if (way == PERSISTENT || way == PERSISTENT_ALL) { MPI_Recv_init(in, count, type, 0, 7, comm, r); MPI_Start(r); }
  else if (way >= WAIT && way != IMRECV) MPI_Irecv(in, count, type, 0, 7, comm, r);
  /* Ask rank 0 for the message, which it sends only then. At this point a nonblocking receive has
   * been started, and a blocking receive is about to start. MPICH 5.0.2 crashes if it refuses a
   * message that came before its receive. */
  MPI_Send(NULL, 0, MPI_INT, 0, 6, comm);
  if (way == MRECV || way == IMRECV) MPI_Mprobe(0, 7, comm, &message, MPI_STATUS_IGNORE);
  switch (way) {
  case RECV: code = MPI_Recv(in, count, type, 0, 7, comm, s); break;
  case IGNORED: code = MPI_Recv(in, count, type, 0, 7, comm, MPI_STATUS_IGNORE); break;
  case SENDRECV: code = MPI_Sendrecv(out, 0, MPI_BYTE, MPI_PROC_NULL, 7, in, count, type, 0, 7, comm, s); break;
  case MRECV: code = MPI_Mrecv(in, count, type, &message, s); break;
  case IMRECV: before = MPI_Imrecv(in, count, type, &message, r); code = MPI_Wait(r, s); if (!code) code = before; break;
  case WAIT: case PERSISTENT: code = MPI_Wait(r, s); break;
  case TEST: while (!code && !flag && !calls) code = MPI_Test(r, &flag, s); break;
  case WAITANY: code = MPI_Waitany(1, r, &index, s); break;
  case WAITALL: case PERSISTENT_ALL: code = MPI_Waitall(1, r, s); break;
  case WAITSOME: code = MPI_Waitsome(1, r, &some, indices, s); break;
  case TESTALL: while (!code && !flag && !calls) code = MPI_Testall(1, r, &flag, s); break;
  case STATUSES_IGNORED: code = MPI_Waitall(1, r, MPI_STATUSES_IGNORE); break;
  case TWO: MPI_Irecv(&other, 1, MPI_INT, 0, 8, comm, r + 1); code = MPI_Waitall(2, r, s); break;
  case GET_STATUS: while (!before && !flag && !calls) before = MPI_Request_get_status(r[0], &flag, MPI_STATUS_IGNORE);
    code = MPI_Wait(r, s); break;
  }
  int called = calls, class = raised, count_is = -1, elements = -1, bytes = -1;
  /* If MPI libraries refuse a matched message, they write no status and leave different bytes in
   * memory. So neither the status nor the hash of the memory is printed then. */
  int silent = way == IMRECV || (way == MRECV && code);
  if (silent) s[0].MPI_SOURCE = s[0].MPI_TAG = 0;
  else if (way != IGNORED && way != STATUSES_IGNORED) {
    MPI_Get_count(s, type, &count_is);
    MPI_Get_elements(s, type, &elements);
    MPI_Get_count(s, MPI_BYTE, &bytes);
  }
  printf("%s type %d bytes %d: ", names[way], i, n);
  if (called || where[0] != 'n') printf("handler %d class %d on %s ", called, class, where);
  else printf("code %d before %d error %d ", class_of(code), way == IMRECV ? 0 : class_of(before), class_of(s[0].MPI_ERROR));
  printf("source %d tag %d count %d elements %d bytes %d null %d index %d some %d flag %d ", s[0].MPI_SOURCE, s[0].MPI_TAG,
         count_is, elements, bytes, r[0] == MPI_REQUEST_NULL, index, some, flag);
  printf("data %016llx\n", silent ? 0ull : (unsigned long long)hash(in, BUFFER_BYTES));
  fflush(stdout);
  if (r[0] != MPI_REQUEST_NULL) MPI_Request_free(r);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int handled = !strcmp(argv[1], "handler"), big = !strcmp(argv[1], "long");
  MPI_Errhandler own;
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm on[3] = {comm, MPI_COMM_WORLD, MPI_COMM_SELF};
  for (int i = 0; i < 3; i++) MPI_Comm_set_errhandler(on[i], handled ? own : MPI_ERRORS_RETURN);

  /* Make the types: a structure with gaps, two vectors, a list, and a structure of two ints. */
  MPI_Datatype type[TYPES], t;
  int lengths[3] = {1, 1, 3}, ones[40], places[40];
  MPI_Aint at[3] = {0, 8, 16};
  MPI_Datatype of[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, ints[2] = {MPI_INT, MPI_INT};
  MPI_Type_create_struct(3, lengths, at, of, &t);
  MPI_Type_create_resized(t, 0, 32, &type[0]);
  MPI_Type_vector(4, 1, 2, MPI_INT, &type[1]);
  MPI_Type_vector(4, 8, 16, MPI_DOUBLE, &type[2]);
  for (int i = 0; i < 40; i++) { ones[i] = 1; places[i] = i * 3 + i % 2; }
  MPI_Type_indexed(40, ones, places, MPI_INT, &type[3]);
  MPI_Type_create_struct(2, lengths, at, ints, &type[4]);
  for (int i = 0; i < TYPES; i++) MPI_Type_commit(&type[i]);
  for (size_t i = 0; i < BUFFER_BYTES; i++) out[i] = i % 251;

  static const int rests[] = {0, 1, 4, 5, 8, 9, 12, 13, 24, 25, 29, 30};
  for (int way = 0; way < WAYS; way++) {
    int probed = way == MRECV || way == IMRECV;
    if (probed != !strcmp(argv[1], "matched")) continue;
    /* After an error handler has returned, MPICH 5.0.2 uses requests that it has freed, and
     * crashes. Only MPI_Recv, and MPI_Waitall with a persistent receive, survive this, so only
     * these two ways are tried with `handler`. */
    if (handled && way != RECV && way != PERSISTENT_ALL) continue;
    for (int i = 0; i < TYPES; i++)
      for (size_t k = 0; k < sizeof rests / sizeof *rests; k++) {
        int size;
        MPI_Type_size(type[i], &size);
        int whole = big ? 400000 / size : 0, n = whole * size + rests[k], count = whole + 8;
        if (n > size * count) continue;
        if (rank == 1) receive(way, count, type[i], i, n);
        if (rank == 0) MPI_Recv(NULL, 0, MPI_INT, 1, 6, comm, MPI_STATUS_IGNORE);
        if (rank == 0) MPI_Send(out, n, MPI_PACKED, 1, 7, comm);
        if (rank == 0 && way == TWO) MPI_Send(out, 4, MPI_BYTE, 1, 8, comm);
      }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
