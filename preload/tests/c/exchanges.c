/* Tests MPI_Isendrecv and MPI_Isendrecv_replace, which send and receive under one request, and
 * buffered sends from a buffer that the program attaches. The output is the text that the functions
 * of output.h write.
 *
 * Argument: `exchanges` or `buffered` for one of the two, nothing for both. */
#include "output.h"

#ifdef OPEN_MPI
#define KINDS 3
#else
/* Number of kinds of exchanges. The third kind, MPI_Isendrecv_replace, is left out under MPICH
 * 5.0.2 and Intel MPI 2021.18. In this call, these libraries send bytes from beyond a buffer of
 * their own, as replaced.c shows. */
#define KINDS 2
#endif
/* Leave out sends from an attached buffer that is too small. Under Open MPI such a send may
 * succeed, since MPI_BSEND_OVERHEAD is more than Open MPI needs. With NO_ERRORS, the error of such
 * a send would abort the program. */
#if defined OPEN_MPI || defined NO_ERRORS
#define TOO_LITTLE_IS_UNKNOWN 1
#endif

#ifdef HAS_MPI_4
/* Writes down the result of one exchange of type i. MPICH and Intel MPI make the status of an
 * exchange empty or leave it unchanged, so the status is written only under Open MPI. */
static void exchanged(const char *what, int i, int code, const MPI_Status *s, char *buffer) {
#ifdef OPEN_MPI
  seen(what, i, code, s, buffer);
#else
  (void)s;
  say("%s type %d code %d data %016llx\n", what, i, class_of(code), (unsigned long long)hash(buffer, BUFFER_BYTES));
#endif
}

/* Tests MPI_Isendrecv and MPI_Isendrecv_replace, which send and receive under one request, with all
 * ways to complete requests. */
static void exchanges(void) {
  for (int way = 0; way < 13; way++)
    for (int kind = 0; kind < KINDS; kind++) {
      char *out[TYPES], *in[TYPES];
      MPI_Request r[TYPES];
      MPI_Status s[TYPES];
      for (int i = 0; i < TYPES; i++) {
        s[i] = fresh();
        out[i] = filled(i + rank); in[i] = blank();
        if (kind == 2) MPI_Isendrecv_replace(out[i], counts[i], type[i], peer, 60 + i, i % 2 ? peer : MPI_ANY_SOURCE, 60 + i, comm, &r[i]);
        /* In exchanges of kind 1, either the send or the receive has the derived type, and the
         * other has packed bytes. */
        else if (kind == 1 && i % 2) MPI_Isendrecv(out[i], counts[i] * bytes[i], MPI_PACKED, peer, 60 + i, in[i], counts[i], type[i], peer, 60 + i, comm, &r[i]);
        else if (kind == 1) MPI_Isendrecv(out[i], counts[i], type[i], peer, 60 + i, in[i], counts[i] * bytes[i], MPI_PACKED, peer, MPI_ANY_TAG, comm, &r[i]);
        else MPI_Isendrecv(out[i], counts[i], type[i], peer, 60 + i, in[i], counts[i] + (i < 2), type[i], peer, 60 + i, comm, &r[i]);
        /* A receive with MPI_ANY_TAG takes the first message that arrives, so wait for this
         * exchange before the next message is sent. */
        if (kind == 1) MPI_Wait(&r[i], &s[i]);
      }
      int code = complete(kind == 1 ? 4 : way, TYPES, r, s);
      if (way >= 8) code |= MPI_Waitall(TYPES, r, s);
      for (int i = 0; i < TYPES; i++) {
        char *got = kind == 2 ? out[i] : in[i];
        if (way < 8 && kind != 1) exchanged("exchange", i, code, &s[i], got);
        else say("exchanged %016llx\n", (unsigned long long)hash(got, BUFFER_BYTES));
      }
      for (int i = 0; i < TYPES; i++) { say("%d ", r[i] == MPI_REQUEST_NULL); free(out[i]); free(in[i]); }
      say("way %d kind %d code %d\n", way, kind, class_of(code));
    }
  char *out = filled(5), *in = blank();
  for (int i = 0; i < TYPES; i++)
    for (int sides = 0; sides < 4; sides++) {
      MPI_Request r[3];
      MPI_Status s = fresh();
      int to = sides & 1 ? peer : MPI_PROC_NULL, from = sides & 2 ? peer : MPI_PROC_NULL;
      memset(in, 0xAB, BUFFER_BYTES);
      MPI_Isendrecv(out, counts[i], type[i], to, 90, in, counts[i], type[i], from, 90, comm, &r[0]);
      /* If only one side of the exchange is the peer and the other side is MPI_PROC_NULL, do the
       * other half by a separate receive or send. */
      if (sides == 1) MPI_Irecv(in, counts[i], type[i], peer, 90, comm, &r[1]);
      if (sides == 2) MPI_Isend(out, counts[i], type[i], peer, 90, comm, &r[1]);
      int code = MPI_Wait(&r[0], &s);
      if (sides == 1 || sides == 2) MPI_Wait(&r[1], MPI_STATUS_IGNORE);
      if (sides & 2) exchanged("one side", i, code, &s, in);
      else say("no source %016llx\n", (unsigned long long)hash(in, BUFFER_BYTES));
      if (sides == 3 && KINDS < 3) continue;
      MPI_Isendrecv_replace(out, counts[i], type[i], to, 91, from, 91, comm, &r[0]);
      if (sides == 1) MPI_Irecv(in, counts[i], type[i], peer, 91, comm, &r[1]);
      if (sides == 2) MPI_Isend(in, counts[i], type[i], peer, 91, comm, &r[1]);
      code |= MPI_Wait(&r[0], MPI_STATUS_IGNORE);
      if (sides == 1 || sides == 2) MPI_Wait(&r[1], MPI_STATUS_IGNORE);
      say("replaced %d %016llx %016llx\n", code, (unsigned long long)hash(in, BUFFER_BYTES), (unsigned long long)hash(out, BUFFER_BYTES));
    }
#ifdef LARGE_COUNTS
  for (int i = 0; i < TYPES; i++) {
    MPI_Request r[2];
    MPI_Status s[2] = {fresh(), fresh()};
    memset(in, 0xAB, BUFFER_BYTES);
    MPI_Isendrecv_c(out, counts[i], type[i], peer, 92, in, counts[i], type[i], peer, 92, comm, &r[0]);
    MPI_Wait(&r[0], &s[0]);
    MPI_Isendrecv_replace_c(in, counts[i], type[i], MPI_PROC_NULL, 93, MPI_PROC_NULL, 93, comm, &r[1]);
    MPI_Wait(&r[1], &s[1]);
    exchanged("large exchange", i, 0, &s[0], in);
    exchanged("large exchange", i, 0, &s[1], in);
  }
#endif
  /* Start 200 exchanges at once. Some of them are already complete when the call that starts them
   * returns. */
  MPI_Request all[200];
  for (int k = 0; k < 200; k++) MPI_Isendrecv(out + 64 * k, 1, type[0], k % 2 ? peer : rank, k % 7, in + 1024 * k, 1, type[0], k % 2 ? peer : rank, k % 7, comm, &all[k]);
  MPI_Waitall(200, all, MPI_STATUSES_IGNORE);
  say("many exchanges %016llx\n", (unsigned long long)hash(in, BUFFER_BYTES));
  free(out); free(in);
}

/* Makes exchanges that fail, and writes down the classes of their errors. */
__attribute__((unused)) static void exchange_errors(void) {
  MPI_Errhandler mine;
  MPI_Comm_create_errhandler(handler, &mine);
  for (int how = 0; how < 2; how++) {
    MPI_Comm_set_errhandler(comm, how ? mine : MPI_ERRORS_RETURN);
    handled = 0;
    char *out = filled(1), *in = blank();
    MPI_Request r = MPI_REQUEST_NULL;
    int codes[6], n = 0;
    codes[n++] = MPI_Isendrecv(out, 3, type[0], size + 7, 1, in, 3, type[0], peer, 1, comm, &r);
    codes[n++] = MPI_Isendrecv(out, 3, type[0], peer, -77, in, 3, type[0], peer, 1, comm, &r);
    codes[n++] = MPI_Isendrecv(out, 3, type[0], peer, 1, in, -1, type[0], peer, 1, comm, &r);
    codes[n++] = MPI_Isendrecv_replace(out, 3, type[0], peer, 1, size + 7, 1, comm, &r);
    for (int k = 0; k < n; k++) say("%d ", class_of(codes[k]));
    say("null %d handled %d\n", r == MPI_REQUEST_NULL, handled);
    MPI_Barrier(comm);
#ifdef OPEN_MPI
    /* Exchange a message that is longer than the receive, only under Open MPI. MPICH 5.0.2 and
     * Intel MPI 2021.18 return success for such an exchange and then have a corrupt heap. */
    for (int kind = 0; kind < 2; kind++) {
      MPI_Status s = fresh();
      MPI_Isendrecv(out, kind ? 24 : 3, kind ? MPI_DOUBLE : type[0], peer, 2, in, 2, type[0], peer, 2, comm, &r);
      int code = MPI_Wait(&r, &s);
      say("truncated exchange: code %d null %d handled %d\n", class_of(code), r == MPI_REQUEST_NULL, handled);
      MPI_Barrier(comm);
    }
#endif
    free(out); free(in);
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&mine);
}

#endif

/* Tests buffered sends, with an attached buffer that is exactly as long as necessary. After each
 * send, the program overwrites the sent data at once, which it may do. */
static void buffered(void) {
  for (int i = 0; i < TYPES; i++)
    for (int way = 0; way < 4; way++) {
#ifdef OPEN_MPI /* Open MPI 5.0.11 never delivers long messages whose request has completed. */
      if (way % 3 && counts[i] * bytes[i] > 2048) continue;
#endif
      char *out = filled(i + way), *in = blank();
      int length, code = 0;
      MPI_Request r;
      MPI_Status s = fresh();
      MPI_Pack_size(counts[i], type[i], comm, &length);
      length += MPI_BSEND_OVERHEAD;
      char *space = malloc(length);
      void *back;
      MPI_Buffer_attach(space, length);
      for (int turn = 0; turn < (way == 2 ? 3 : 1); turn++) {
        if (way == 0) code = MPI_Bsend(out, counts[i], type[i], peer, 70, comm);
        if (way == 1) { code = MPI_Ibsend(out, counts[i], type[i], peer, 70, comm, &r); code |= MPI_Wait(&r, MPI_STATUS_IGNORE); }
        if (way == 2) {
          if (turn == 0) code = MPI_Bsend_init(out, counts[i], type[i], peer, 70, comm, &r);
          code |= MPI_Start(&r);
          code |= MPI_Wait(&r, MPI_STATUS_IGNORE);
        }
#ifdef LARGE_COUNTS
        if (way == 3) code = MPI_Bsend_c(out, counts[i], type[i], peer, 70, comm);
#else
        if (way == 3) code = MPI_Bsend(out, counts[i], type[i], peer, 70, comm);
#endif
        for (int k = 0; k < BUFFER_BYTES; k += 61) out[k] += turn + 1;
        code |= MPI_Recv(in, counts[i], type[i], peer, 70, comm, &s);
        seen("buffered", i, code, &s, in);
        MPI_Barrier(comm);
        /* Detach the buffer and attach it again. After the detach, no message is left in the
         * buffer, so that the whole buffer is free for the next send. */
        MPI_Buffer_detach(&back, &length);
        MPI_Buffer_attach(back, length);
      }
      if (way == 2) MPI_Request_free(&r);
      MPI_Buffer_detach(&back, &length);
      say("buffer %d\n", back == space);
#ifndef TOO_LITTLE_IS_UNKNOWN
      MPI_Buffer_attach(space, length - MPI_BSEND_OVERHEAD - 1 > 0 ? length - MPI_BSEND_OVERHEAD - 1 : 0);
      if (way == 0) say("too little %d\n", class_of(MPI_Bsend(out, counts[i], type[i], peer, 71, comm)));
      if (way == 1) say("too little %d\n", class_of(MPI_Ibsend(out, counts[i], type[i], peer, 71, comm, &r)));
      MPI_Buffer_detach(&back, &length);
#endif
      free(space); free(out); free(in);
    }
}

int main(int argc, char **argv) {
  begin(&argc, &argv);
  const char *only = argc > 1 ? argv[1] : "";
  if (strcmp(only, "buffered")) {
#ifdef HAS_MPI_4
#ifndef NO_ERRORS
    exchange_errors(); MPI_Barrier(comm);
#endif
    exchanges(); MPI_Barrier(comm);
#endif
  }
  if (strcmp(only, "exchanges")) { buffered(); MPI_Barrier(comm); }
  end();
  return 0;
}
