/* Exchanges messages of derived types, with most of the calls by which a program can send, receive
 * and complete them. Buffered sends and exchanges under one request are in exchanges.c.
 *
 * Ranks work in pairs. Each rank writes down what it saw (codes, statuses, counts, hashes of its
 * buffers), and rank 0 prints what all ranks have written. The text must be the same with the
 * preload library on all ranks, on some and on none. */
#include "output.h"

static void blocking(void) {
  for (int i = 0; i < TYPES; i++)
    for (int way = 0; way < 5; way++) {
      char *out = filled(i + way + rank), *in = blank();
      MPI_Status s = fresh();
      int code = 0;
      /* In the first half the rank with the even number sends and the other rank receives. In the
       * second half it is the other way round. */
      for (int half = 0; half < 2; half++) {
        if ((rank + half) % 2 == 0) {
          if (way == 2) MPI_Barrier(comm);
          if (way == 1) code |= MPI_Ssend(out, counts[i], type[i], peer, 10 + i, comm);
          else if (way == 2) code |= MPI_Rsend(out, counts[i], type[i], peer, 10 + i, comm);
          else code |= MPI_Send(out, counts[i], type[i], peer, 10 + i, comm);
        } else if (way == 2) {
          MPI_Request r;
          MPI_Irecv(in, counts[i], type[i], peer, 10 + i, comm, &r);
          MPI_Barrier(comm);
          code |= MPI_Wait(&r, &s);
        } else if (way == 3) {
          code |= MPI_Recv(in, counts[i], type[i], peer, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE);
        } else {
          code |= MPI_Recv(in, counts[i] + (way == 4), type[i], way ? MPI_ANY_SOURCE : peer, 10 + i, comm, &s);
        }
      }
      if (way == 3) say("ignored %016llx\n", (unsigned long long)hash(in, BUFFER_BYTES)); else seen("blocking", i, code, &s, in);
      if (way == 4) {
        s = fresh();
        code = MPI_Sendrecv(out, counts[i], type[i], peer, 3, in, counts[i], type[i], peer, 3, comm, &s);
        seen("sendrecv", i, code, &s, in);
        s = fresh();
        code = MPI_Sendrecv_replace(out, counts[i], type[i], peer, 4, MPI_ANY_SOURCE, 4, comm, &s);
        seen("replace", i, code, &s, out);
        MPI_Sendrecv(out, counts[i], type[i], peer, 3, in, bytes[i] * counts[i], MPI_PACKED, peer, 3, comm, MPI_STATUS_IGNORE);
        say("packed %016llx\n", (unsigned long long)hash(in, BUFFER_BYTES));
        MPI_Sendrecv(out, counts[i], type[i], MPI_PROC_NULL, 3, in, 1, type[i], MPI_PROC_NULL, 3, comm, &s);
        seen("nobody", i, 0, &s, in);
      }
      free(out); free(in);
    }
}

/* Receives messages that have between 0 elements and as many as the receive has room for. Most of
 * the messages end inside an instance of the received type. */
static void partial(void) {
  static const int sent[] = {0, 1, 2, 3, 4, 47, 48, 49, 100, 143, 144};
  for (int k = 0; k < 11; k++)
    for (int way = 0; way < 3; way++) {
      char *out = filled(k), *in = blank();
      MPI_Status s = fresh();
      MPI_Request r[2];
      if (way == 0) {
        MPI_Sendrecv(out, sent[k], MPI_INT, peer, 9, in, 3, type[0], peer, 9, comm, &s);
      } else {
        MPI_Irecv(in, 3, type[0], peer, 9, comm, &r[0]);
        if (way == 2) MPI_Barrier(comm);
        MPI_Isend(out, sent[k], MPI_INT, peer, 9, comm, &r[1]);
        MPI_Wait(&r[0], &s);
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
      }
      int count = -1;
      MPI_Get_count(&s, type[0], &count);
      say("partial %d: count %d data %016llx\n", sent[k], count, (unsigned long long)hash(in, BUFFER_BYTES));
      free(out); free(in);
    }
}

__attribute__((unused)) static void truncation(void) {
  MPI_Errhandler mine;
  MPI_Comm_create_errhandler(handler, &mine);
  for (int how = 0; how < 2; how++) {
    MPI_Comm_set_errhandler(comm, how ? mine : MPI_ERRORS_RETURN);
    handled = 0;
    char *out = filled(1), *in = blank();
    MPI_Request r[2];
    MPI_Status s[2] = {fresh(), fresh()};
    MPI_Isend(out, 3, type[0], peer, 1, comm, &r[0]);
    int code = MPI_Recv(in, 2, type[0], peer, 1, comm, &s[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    say("truncated recv: code %d\n", class_of(code));
    MPI_Irecv(in, 2, type[0], peer, 2, comm, &r[0]);
    MPI_Barrier(comm);
    MPI_Isend(out, 3, type[0], peer, 2, comm, &r[1]);
    code = MPI_Wait(&r[0], &s[0]);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    say("truncated wait: code %d null %d\n", class_of(code), r[0] == MPI_REQUEST_NULL);
    char *good = blank();
    MPI_Irecv(in, 2, type[0], peer, 2, comm, &r[0]);
    MPI_Irecv(good, 2, type[4], peer, 3, comm, &r[1]);
    MPI_Barrier(comm);
    MPI_Send(out, 2, type[4], peer, 3, comm);
    MPI_Send(out, 3, type[0], peer, 2, comm);
    MPI_Barrier(comm);
    s[0] = fresh(); s[1] = fresh();
    code = MPI_Waitall(2, r, s);
    say("truncated waitall: code %d", class_of(code));
    if (how == 0) say(" errors %d %d", class_of(s[0].MPI_ERROR), class_of(s[1].MPI_ERROR));
    say(" null %d %d", r[0] == MPI_REQUEST_NULL, r[1] == MPI_REQUEST_NULL);
    for (int k = 0; k < 2; k++) if (r[k] != MPI_REQUEST_NULL) MPI_Wait(&r[k], MPI_STATUS_IGNORE);
    say(" good %016llx\n", (unsigned long long)hash(good, BUFFER_BYTES));
    /* A message that is too long must not damage a persistent receive: the next message must still
     * arrive. */
    MPI_Recv_init(in, 2, type[0], peer, 4, comm, &r[0]);
    for (int turn = 0; turn < 4; turn++) {
      memset(in, turn, BUFFER_BYTES);
      s[0] = fresh();
      MPI_Start(&r[0]);
      MPI_Barrier(comm);
      MPI_Send(out, turn % 2 ? 2 : 3, type[0], peer, 4, comm);
      code = turn < 2 ? MPI_Wait(&r[0], &s[0]) : MPI_Waitall(1, r, s);
      if (turn % 2) seen("after a refusal", 0, code, &s[0], in);
      else say("truncated persistent: code %d null %d\n", class_of(code), r[0] == MPI_REQUEST_NULL);
    }
    MPI_Request_free(&r[0]);
    /* Make calls with one wrong argument each. Their error codes must be those that the MPI library
     * returns without the preload library. */
    MPI_Comm none = MPI_COMM_NULL;
    int codes[8], n = 0;
    codes[n++] = MPI_Send(out, 3, type[0], size + 7, 1, comm);
    codes[n++] = MPI_Send(out, 3, type[0], peer, -77, comm);
    /* A receive that is refused must not change its status. */
    s[0] = s[1] = fresh();
    codes[n++] = MPI_Recv(in, 3, type[0], size + 7, 1, comm, &s[0]);
    say("status stays %d ", !memcmp(&s[0], &s[1], sizeof s[0]));
    codes[n++] = MPI_Send(out, -1, type[0], peer, 1, comm);
    r[0] = MPI_REQUEST_NULL;
    codes[n++] = MPI_Isend(out, 3, type[0], size + 7, 1, comm, &r[0]);
    codes[n++] = MPI_Irecv(in, 3, type[0], size + 7, 1, comm, &r[0]);
    codes[n++] = MPI_Recv_init(in, 3, type[0], size + 7, 1, comm, &r[0]);
    (void)none;
    for (int k = 0; k < n; k++) say("%d ", class_of(codes[k]));
    say("null %d handled %d\n", r[0] == MPI_REQUEST_NULL, handled);
    free(out); free(in); free(good);
    MPI_Barrier(comm);
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&mine);
}

static void probes(void) {
  for (int i = 0; i < TYPES; i++)
    for (int way = 0; way < 3; way++) {
      char *out = filled(i), *in = blank();
      MPI_Request r, q;
      MPI_Status s = fresh(), p = fresh();
      MPI_Message m;
      MPI_Isend(out, counts[i], type[i], peer, 20 + way, comm, &r);
      int count, code;
      if (way == 0) {
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &p);
        MPI_Get_count(&p, type[i], &count);
        code = MPI_Recv(in, count, type[i], p.MPI_SOURCE, p.MPI_TAG, comm, &s);
      } else {
        MPI_Mprobe(peer, MPI_ANY_TAG, comm, &m, &p);
        MPI_Get_count(&p, type[i], &count);
        if (way == 1) code = MPI_Mrecv(in, count, type[i], &m, &s);
        else { code = MPI_Imrecv(in, count, type[i], &m, &q); code |= MPI_Wait(&q, &s); }
        say("message gone %d ", m == MPI_MESSAGE_NULL);
      }
      seen("probed", i, code, &s, in);
      MPI_Wait(&r, MPI_STATUS_IGNORE);
      free(out); free(in);
    }
}

static void nonblocking(void) {
  for (int way = 0; way < 13; way++)
    for (int kind = 0; kind < 4; kind++) {
      char *out[2 * TYPES], *in[2 * TYPES];
      MPI_Request r[4 * TYPES];
      MPI_Status s[4 * TYPES];
      int n = 0;
      for (int i = 0; i < 4 * TYPES; i++) s[i] = fresh();
      for (int k = 0; k < 2 * TYPES; k++) { out[k] = filled(k + rank); in[k] = blank(); }
      /* Start the receives in one half and the sends in the other. If the sends come first, most
       * messages arrive before their receives are started. If the receives come first, few messages
       * have arrived when a receive is started, and none has if a barrier follows the receives
       * (kind 1). */
      for (int half = 0; half < 2; half++) {
        if ((half + kind) % 2) {
          for (int k = 0; k < 2 * TYPES; k++)
            MPI_Irecv(in[k], counts[k % TYPES], type[k % TYPES], k % 3 ? peer : MPI_ANY_SOURCE, 40 + k, comm, &r[k]);
          if (kind == 1) MPI_Barrier(comm);
        } else {
          for (int k = 0; k < 2 * TYPES; k++) {
            int i = k % TYPES;
            if (kind == 2) MPI_Issend(out[k], counts[i], type[i], peer, 40 + k, comm, &r[2 * TYPES + k]);
            else if (kind == 1) MPI_Irsend(out[k], counts[i], type[i], peer, 40 + k, comm, &r[2 * TYPES + k]);
            else MPI_Isend(out[k], counts[i], type[i], peer, 40 + k, comm, &r[2 * TYPES + k]);
          }
        }
      }
      n = 4 * TYPES;
      int code = complete(way, n, r, s);
      for (int k = 0; k < 2 * TYPES; k++) {
        if (way < 8) seen("nonblocking", k % TYPES, code, &s[k], in[k]);
        else say("looked %016llx\n", (unsigned long long)hash(in[k], BUFFER_BYTES));
        /* The receive is complete, so the buffer belongs to the program and the preload library
         * must not write to it again. Set its beginning to 0, which is checked below. */
        memset(in[k], 0, 64);
      }
      if (way >= 8) code |= MPI_Waitall(n, r, s);
      for (int k = 0; k < 2 * TYPES; k++) say("%d%d ", r[k] == MPI_REQUEST_NULL, in[k][0]);
      say("way %d kind %d code %d\n", way, kind, class_of(code));
      for (int k = 0; k < 2 * TYPES; k++) { free(out[k]); free(in[k]); }
    }
}

static void given_up(void) {
  char *in = blank(), *out = filled(3);
  MPI_Request r, d;
  MPI_Status s = fresh();
  int flag;
  MPI_Irecv(in, 3, type[0], peer, 77, comm, &r);
  MPI_Test(&r, &flag, &s);
  say("unmatched %d ", flag);
  MPI_Cancel(&r);
  MPI_Wait(&r, &s);
  MPI_Test_cancelled(&s, &flag);
  say("cancelled %d data %016llx\n", flag, (unsigned long long)hash(in, BUFFER_BYTES));
  for (int i = 0; i < TYPES; i++) {
    MPI_Irecv(in, counts[i], type[i], peer, 78, comm, &d);
    MPI_Barrier(comm);
    MPI_Isend(out, counts[i], type[i], peer, 78, comm, &r);
    MPI_Request_free(&r);
    say("freed %d ", r == MPI_REQUEST_NULL);
    MPI_Wait(&d, &s);
    seen("after", i, 0, &s, in);
    MPI_Barrier(comm);
    memset(in, 0xAB, BUFFER_BYTES);
    MPI_Irecv(in, counts[i], type[i], peer, 79, comm, &r);
    MPI_Request_free(&r);
    MPI_Barrier(comm);
    MPI_Send(out, counts[i], type[i], peer, 79, comm);
    /* Make other calls until the message of the freed receive has come, since any call makes
     * progress. The first byte of the buffer shows whether the message has come. */
    char *sample = blank();
    for (int turn = 0; turn < 100000 && !memcmp(in, sample, 1); turn++) {
      MPI_Irecv(sample, 1, type[i], MPI_PROC_NULL, 80, comm, &d);
      MPI_Wait(&d, MPI_STATUS_IGNORE);
      MPI_Irecv(sample, 1, type[4], peer, 81, comm, &d);
      MPI_Test(&d, &flag, MPI_STATUS_IGNORE);
      MPI_Cancel(&d);
      MPI_Wait(&d, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(comm);
    say("freed receive %016llx\n", (unsigned long long)hash(in, 2));
    MPI_Barrier(comm);
    free(sample);
  }
  free(in); free(out);
}

static void persistent(void) {
  char *out[TYPES], *in[TYPES];
  MPI_Request r[2 * TYPES];
  MPI_Status s[2 * TYPES];
  for (int i = 0; i < TYPES; i++) {
    out[i] = filled(0); in[i] = blank();
    MPI_Datatype t;
    MPI_Type_dup(type[i], &t);
    MPI_Recv_init(in[i], counts[i], t, peer, 50 + i, comm, &r[i]);
    if (i % 3 == 1) MPI_Ssend_init(out[i], counts[i], t, peer, 50 + i, comm, &r[TYPES + i]);
    else if (i % 3 == 2) MPI_Rsend_init(out[i], counts[i], t, peer, 50 + i, comm, &r[TYPES + i]);
    else MPI_Send_init(out[i], counts[i], t, peer, 50 + i, comm, &r[TYPES + i]);
    MPI_Type_free(&t);
  }
  for (int turn = 0; turn < 16; turn++) {
    for (int i = 0; i < TYPES; i++) { memset(in[i], turn, BUFFER_BYTES); for (int k = 0; k < BUFFER_BYTES; k += 61) out[i][k] += turn + 1; }
    MPI_Startall(TYPES, r);
    MPI_Barrier(comm);
    for (int i = 0; i < TYPES; i++) MPI_Start(&r[TYPES + i]);
    for (int i = 0; i < 2 * TYPES; i++) s[i] = fresh();
    int way = turn % 13, code = 0;
    /* Way 1 of `complete` tests requests one after another and relies on handles that become null,
     * which the handles of persistent requests do not. So test all requests at once instead. */
    if (way == 1) { int f; do code |= MPI_Testall(2 * TYPES, r, &f, s); while (!f); }
    else code = complete(way, 2 * TYPES, r, s);
    for (int i = 0; i < TYPES; i++)
      say("persistent %d %d: %016llx ", turn, class_of(code), (unsigned long long)hash(in[i], BUFFER_BYTES));
    for (int i = 0; i < TYPES; i++) memset(in[i], 0x77, 64);
    code = MPI_Waitall(2 * TYPES, r, s);
    /* Wait again for the requests, which are inactive now. This must not unpack anything again. */
    for (int i = 0; i < TYPES; i++) { MPI_Wait(&r[i], &s[i]); seen("inactive", i, code, &s[i], in[i]); }
  }
  /* Free the request of a persistent send while it is active. The message must still be sent. */
  char *last = blank();
  MPI_Request d;
  MPI_Irecv(last, counts[0], type[0], peer, 50, comm, &d);
  MPI_Barrier(comm);
  MPI_Start(&r[TYPES]);
  MPI_Request_free(&r[TYPES]);
  MPI_Wait(&d, &s[0]);
  seen("last", 0, 0, &s[0], last);
  for (int i = 0; i < 2 * TYPES; i++) if (r[i] != MPI_REQUEST_NULL) MPI_Request_free(&r[i]);
  for (int i = 0; i < TYPES; i++) { free(out[i]); free(in[i]); }
  free(last);
}

static void others(void) {
  char *out = filled(9), *in = blank();
  MPI_Request r[2];
  MPI_Status s = fresh();
  for (int i = 0; i < TYPES; i++) {
    MPI_Irecv(in, counts[i], type[i], 0, 1, MPI_COMM_SELF, &r[0]);
    MPI_Send(out, counts[i], type[i], 0, 1, MPI_COMM_SELF);
    MPI_Wait(&r[0], &s);
    seen("self", i, 0, &s, in);
  }
  /* Free the type of a receive before the receive is complete, and make another type, which may get
   * the same handle. */
  for (int i = 0; i < TYPES; i++) {
    MPI_Datatype t, u;
    memset(in, 0xAB, BUFFER_BYTES);
    MPI_Type_dup(type[i], &t);
    MPI_Irecv(in, counts[i], t, peer, 2, comm, &r[0]);
    MPI_Type_free(&t);
    MPI_Type_vector(5, 1, 2 + i, MPI_CHAR, &u);
    MPI_Type_commit(&u);
    MPI_Barrier(comm);
    MPI_Type_dup(type[i], &t);
    MPI_Isend(out, counts[i], t, peer, 2, comm, &r[1]);
    MPI_Type_free(&t);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Type_free(&u);
    say("freed type %016llx\n", (unsigned long long)hash(in, BUFFER_BYTES));
  }
  MPI_Comm half, inter;
  MPI_Comm_split(comm, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, comm, 1 - rank % 2, 5, &inter);
  for (int i = 0; i < TYPES; i++) {
    memset(in, 0xAB, BUFFER_BYTES);
    s = fresh();
    int code = MPI_Sendrecv(out, counts[i], type[i], rank / 2, 6, in, counts[i], type[i], rank / 2, 6, inter, &s);
    seen("inter", i, code, &s, in);
  }
  MPI_Comm_free(&inter); MPI_Comm_free(&half);
#ifdef LARGE_COUNTS
  for (int i = 0; i < TYPES; i++) {
    memset(in, 0xAB, BUFFER_BYTES);
    s = fresh();
    MPI_Irecv_c(in, counts[i], type[i], peer, 7, comm, &r[0]);
    MPI_Isend_c(out, counts[i], type[i], peer, 7, comm, &r[1]);
    MPI_Wait(&r[0], &s);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    seen("large", i, 0, &s, in);
    MPI_Sendrecv_c(out, counts[i], type[i], peer, 3, in, counts[i], type[i], peer, 3, comm, &s);
    MPI_Sendrecv_replace_c(in, counts[i], type[i], peer, 3, peer, 3, comm, &s);
    seen("large", i, 0, &s, in);
    MPI_Recv_init_c(in, counts[i], type[i], peer, 8, comm, &r[0]);
    MPI_Send_init_c(out, counts[i], type[i], peer, 8, comm, &r[1]);
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    say("large %016llx\n", (unsigned long long)hash(in, BUFFER_BYTES));
    MPI_Request_free(&r[0]); MPI_Request_free(&r[1]);
  }
#endif
  /* Start 200 small receives and 200 small sends at once. */
  MPI_Request all[400];
  for (int k = 0; k < 200; k++) { MPI_Irecv(in + 1024 * k, 1, type[0], peer, k % 7, comm, &all[k]); }
  for (int k = 0; k < 200; k++) { MPI_Isend(out + 64 * k, 1, type[0], peer, k % 7, comm, &all[200 + k]); }
  MPI_Waitall(400, all, MPI_STATUSES_IGNORE);
  say("many %016llx\n", (unsigned long long)hash(in, BUFFER_BYTES));
  free(out); free(in);
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  blocking(); MPI_Barrier(comm);
  partial(); MPI_Barrier(comm);
#ifndef NO_ERRORS
  truncation(); MPI_Barrier(comm);
#endif
  probes(); MPI_Barrier(comm);
  nonblocking(); MPI_Barrier(comm);
  given_up(); MPI_Barrier(comm);
  persistent(); MPI_Barrier(comm);
  others(); MPI_Barrier(comm);
  end();
  return 0;
}
