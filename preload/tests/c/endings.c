/* Makes MPI calls that return errors, under the small MPI library of endings_library.c. An error
 * ends the operation of a call, or the operation goes on after it. After each such call the program
 * makes other calls while operations go on, completes the requests that are still active, and
 * checks every byte.
 *
 * Usage: endings STEP | endings full | endings elsewhere. With STEP, every STEP-th error class is
 * tried in every call. With `full`, so many calls without a request fail that the preload library
 * no longer converts calls without a request. With `elsewhere`, the small library moves bytes to
 * other places than the type map says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "endings.h"

enum { N = 300, CLASSES = 110, WINDOW = (int)0xa0000000u, COLLECTIVE = 77 };

static Handle t;
static int wrong, scene;

/* Functions that fill, clear and check a buffer of 2 N ints, of which the vector type `t` takes
 * every other one. */
static void fill(int *b, int from) { for (int i = 0; i < 2 * N; i++) b[i] = i % 2 ? -7 : from + i; }
static void blank(int *b) { for (int i = 0; i < 2 * N; i++) b[i] = -7; }
static void look(const int *b, int from, const char *what) {
  int bad = 0;
  for (int i = 0; i < 2 * N - 1; i++) bad += b[i] != (i % 2 ? -7 : from + i);
  if (bad && wrong++ < 10) printf("scene %d, %s: %d of %d wrong\n", scene, what, bad, 2 * N);
}
static void expect(int condition, const char *what) { if (!condition && wrong++ < 10) printf("scene %d: %s\n", scene, what); }

/* Exchanges an unrelated message while the MPI library goes on with operations of earlier calls. If
 * a buffer of these operations was freed too early, the exchange may get its memory. */
static void unrelated(void) {
  static int a[2 * N], b[2 * N];
  Handle r, s;
  fill(a, 5000); blank(b);
  MPI_Irecv(b, 1, t, 0, 50, WORLD, &r);
  MPI_Isend(a, 1, t, 0, 50, WORLD, &s);
  MPI_Wait(&s, IGNORED);
  touch_what_is_alive();
  MPI_Wait(&r, IGNORED);
  look(b, 5000, "an unrelated message");
}

static void send(int from, int tag) { static int a[2 * N]; fill(a, from); MPI_Send(a, 1, t, 0, tag, WORLD); }

/* The MPI functions that complete requests. `complete` calls one of them for the requests `r`. */
enum { WAIT, TEST, WAITANY, TESTANY, WAITALL, TESTALL, WAITSOME, TESTSOME, COMPLETIONS };
static int complete(int call, Handle *r, Status *s) {
  int flag = 0, index = 0, out = 0, indices[3];
  switch (call) {
  case WAIT: return MPI_Wait(&r[1], s);
  case TEST: return MPI_Test(&r[1], &flag, s);
  case WAITANY: return MPI_Waitany(3, r, &index, s);
  case TESTANY: return MPI_Testany(3, r, &index, &flag, s);
  case WAITALL: return MPI_Waitall(3, r, s);
  case TESTALL: return MPI_Testall(3, r, &flag, s);
  case WAITSOME: return MPI_Waitsome(3, r, &out, indices, s);
  default: return MPI_Testsome(3, r, &out, indices, s);
  }
}

/* Starts three receives and makes a call that completes requests. The message of the first receive
 * has been sent. The second receive fails with `code`, and its operation then ends or goes on, as
 * `how` says. After the call, checks that all receives that go on get their messages. */
static void receives(int call, int how, int code, int persistent, int in_status, int ignored) {
  static int b[3][2 * N];
  Handle r[3];
  Status s[3];
  for (int i = 0; i < 3; i++) {
    blank(b[i]);
    if (persistent) { MPI_Recv_init(b[i], 1, t, 0, i + 1, WORLD, &r[i]); MPI_Start(&r[i]); }
    else MPI_Irecv(b[i], 1, t, 0, i + 1, WORLD, &r[i]);
  }
  send(1000, 1);
  next_ends(how, code, 1, in_status);
  int several = call >= WAITALL;
  int got = complete(call, r, ignored ? IGNORED : s);
  expect(got == (several && in_status ? IN_STATUS : code), "the code");
  expect((r[1] == NO_REQUEST) == (how == ENDED && !persistent), "the handle");
  unrelated();
  for (int i = 0; i < 3; i++) {
    int goes_on = i == 2 || (i == 1 && how == ALIVE) || (i == 0 && !several);
    /* If the failed call wrote no statuses, the program learns only by this wait that the first
     * request has ended. */
    if (i == 0 && several && !in_status) MPI_Wait(&r[i], IGNORED);
    if (i == 1 && how == ENDED && persistent) { MPI_Start(&r[i]); goes_on = 1; }
    if (goes_on && i) send(1000 * (i + 1), i + 1);
    if (goes_on) expect(MPI_Wait(&r[i], &s[0]) == 0, "a later wait");
    if (goes_on) expect(s[0].bytes == 4 * N, "its count");
    if (i != 1 || goes_on) look(b[i], 1000 * (i + 1), "a receive");
    if (persistent) {
      blank(b[i]);
      MPI_Start(&r[i]); send(7000, i + 1); MPI_Wait(&r[i], IGNORED);
      look(b[i], 7000, "a receive that was started again");
      MPI_Request_free(&r[i]);
    }
    expect(r[i] == NO_REQUEST, "a handle at the end");
  }
}

/* Starts a persistent send again after the completion of its first start has failed. It must send
 * the contents that its buffer has at the second start. */
static void persistent_send(int call, int how, int code, int in_status) {
  static int a[2 * N], b[2 * N];
  Handle r[3] = {NO_REQUEST, NO_REQUEST, NO_REQUEST};
  Status s[3];
  fill(a, 1000);
  MPI_Send_init(a, 1, t, 0, 5, WORLD, &r[1]);
  MPI_Start(&r[1]);
  next_ends(how, code, 1, in_status);
  complete(call, r, s);
  unrelated();
  if (how == ALIVE) MPI_Wait(&r[1], IGNORED);
  MPI_Recv(b, 1, t, 0, 5, WORLD, IGNORED);
  fill(a, 2000); blank(b);
  MPI_Start(&r[1]);
  MPI_Wait(&r[1], IGNORED);
  MPI_Recv(b, 1, t, 0, 5, WORLD, IGNORED);
  look(b, 2000, "a send that was started again");
  MPI_Request_free(&r[1]);
}

/* Frees the request of an active receive, which goes on in the library. Then makes an unrelated
 * exchange, in which the next wait or test of a request fails. At last, ends the receive. */
static void freed(int how, int code) {
  static int b[2 * N];
  Handle r;
  MPI_Irecv(b, 1, t, 0, 6, WORLD, &r);
  MPI_Request_free(&r);
  next_ends(how, code, 0, 0);
  unrelated();
  next_ends(WELL, 0, 0, 0);
  end_what_has_no_request();
}

/* The MPI functions without a request argument that this program tries. `without_request` calls one
 * of them. */
enum { SEND, RECEIVE, EXCHANGE, REPLACE, BCAST, ALLTOALL, READ, WRITE, PUT, FENCE, BLOCKING };
static int without_request(int call, int *a, int *b, int n) {
  static void *file;
  if (!file) MPI_File_open(WORLD, "file", 2, 0, &file);
  switch (call) {
  case SEND: return MPI_Send(a, n, t, 0, 8, WORLD);
  case RECEIVE: return MPI_Recv(b, n, t, 0, 8, WORLD, IGNORED);
  case EXCHANGE: return MPI_Sendrecv(a, n, t, 0, 8, b, n, t, 0, 8, WORLD, IGNORED);
  case REPLACE: return MPI_Sendrecv_replace(b, n, t, 0, 8, 0, 8, WORLD, IGNORED);
  case BCAST: return MPI_Bcast(b, n, t, 0, WORLD);
  case ALLTOALL: return MPI_Alltoall(a, n, t, b, n, t, WORLD);
  case READ: return MPI_File_read_at(file, 0, b, n, t, IGNORED);
  case WRITE: return MPI_File_write_at(file, 0, a, n, t, IGNORED);
  case PUT: return MPI_Put(a, n, t, 0, 0, n * N, INT, WINDOW);
  default: return MPI_Win_fence(0, WINDOW);
  }
}

static void blocking(int call, int how, int code) {
  static int a[4 * N], b[4 * N];
  Handle r = NO_REQUEST;
  fill(a, 1000); fill(a + 2 * N, 1000); blank(b);
  if (call == FENCE) { MPI_Put(a, 1, t, 0, 0, N, INT, WINDOW); MPI_Rget(b, 1, t, 0, 0, N, INT, WINDOW, &r); }
  next_ends(how, code, 0, 0);
  expect(without_request(call, a, b, 1) == code, "the code");
  unrelated();
  if (call == FENCE && how == ALIVE) {
    /* The failed fence has not ended the put and the get. This fence ends them. */
    MPI_Win_fence(0, WINDOW);
    look(b, 1000, "what was got");
    MPI_Wait(&r, IGNORED);
    look(b, 1000, "what was got, after its request");
  } else if (call == FENCE) MPI_Wait(&r, IGNORED);
  unrelated();
  /* Make the call `call` again, now without an error, and check what it has moved. */
  blank(b);
  if (call == RECEIVE) send(1000, 8);
  if (call == REPLACE) fill(b, 1000);
  if (call == BCAST || call == ALLTOALL) { send(1000, COLLECTIVE); if (call == ALLTOALL) send(1000, COLLECTIVE); }
  if (call == READ) without_request(WRITE, a, b, 1);
  expect(without_request(call, a, b, 1) == 0, "a later call");
  if (call == SEND) MPI_Recv(b, 1, t, 0, 8, WORLD, IGNORED);
  if (call == PUT) { MPI_Rget(b, 1, t, 0, 0, N, INT, WINDOW, &r); MPI_Win_fence(0, WINDOW); MPI_Wait(&r, IGNORED); }
  if (call == WRITE) without_request(READ, a, b, 1);
  if (call != FENCE) look(b, 1000, "a later call");
  end_what_has_no_request();
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "1";
  int step = atoi(mode);
  static int a[4 * N], b[4 * N], packed[4 * N];
  MPI_Init(NULL, NULL);
  MPI_Type_vector(N, 1, 2, INT, &t);
  MPI_Type_commit(&t);
  fill(a, 1);
  /* Use the type and the communicator in calls that succeed, so that the preload library knows both
   * of them. */
  for (int i = 0; i < 3; i++) { int at = 0; MPI_Pack(a, 1, t, packed, sizeof packed, &at, WORLD); unrelated(); }
  send(1000, COLLECTIVE);
  MPI_Bcast(b, 1, t, 0, WORLD);
  if (!strcmp(mode, "full")) {
    static int large[700 * 2 * N];
    for (int i = 0; i < 200; i++) { next_ends(ALIVE, 1 + i % CLASSES, 0, 0); without_request(i % 2 ? RECEIVE : BCAST, large, large, 700); }
    send(1000, 8);
    blank(b);
    expect(without_request(RECEIVE, a, b, 1) == 0, "a later receive");
    look(b, 1000, "a later receive");
    unrelated();
  }
  if (!strcmp(mode, "elsewhere")) {
    move_elsewhere(1);
    for (int i = 0; i < 20; i++) {
      int at = 0, from = 0;
      MPI_Pack(a, 1, t, packed, sizeof packed, &at, WORLD);
      MPI_Unpack(packed, at, &from, b, 1, t, WORLD);
      unrelated();
      for (int call = SEND; call < PUT; call++) blocking(call, ENDED, 1 + i);
    }
  }
  /* Try every STEP-th error class in every call that completes requests and in every call without a
   * request. Try it with operations that end at the error and with operations that go on. */
  for (int code = 1; step > 0 && code <= CLASSES; code += step)
    for (int how = ENDED; how <= ALIVE; how++) {
      for (int call = 0; call < COMPLETIONS; call++)
        for (int k = 0; k < 8; k++) {
          scene = code * 10000 + how * 1000 + call * 10 + k;
          if ((call < WAITALL && k & 2) || (code == IN_STATUS && !(k & 2))) continue;
          receives(call, how, code, k & 1, k & 2, k & 4);
          if (k < 4) persistent_send(call, how, code, k & 2);
        }
      for (int call = 0; call < BLOCKING; call++) { scene = code * 10000 + how * 1000 + 500 + call; blocking(call, how, code); }
      scene = code * 10000 + how * 1000 + 600;
      freed(how, code);
    }
  MPI_Finalize();
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
