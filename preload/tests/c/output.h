/* Functions for programs that exchange messages of derived types and print what they saw. The text
 * must be the same with the preload library on all ranks, on some and on none.
 *
 * Ranks work in pairs. Each rank writes down codes, statuses, counts and hashes of its buffers, and
 * rank 0 prints what all ranks have written. */
#ifndef OUTPUT_H
#define OUTPUT_H
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "versions.h"

enum { TYPES = 6, BUFFER_BYTES = 640 << 10 };
static int rank, size, peer;
static MPI_Comm comm;
static MPI_Datatype type[TYPES];
static int counts[TYPES] = {3, 5, 2, 1, 2, 1}, bytes[TYPES];
static char *text;
static size_t used, space;

static void say(const char *format, ...) {
  va_list list;
  if (space - used < 4096) { space = 2 * space + 8192; text = realloc(text, space); }
  va_start(list, format);
  used += vsnprintf(text + used, 4096, format, list);
  va_end(list);
}
static uint64_t hash(const void *at, size_t n) {
  const unsigned char *p = at;
  uint64_t h = 0xcbf29ce484222325u;
  for (; n >= 8; n -= 8, p += 8) { uint64_t w; memcpy(&w, p, 8); h = (h ^ w) * 0x100000001b3u; h ^= h >> 29; }
  for (; n; n--, p++) h = (h ^ *p) * 0x100000001b3u;
  return h;
}
static char *filled(int seed) {
  uint64_t *p = malloc(BUFFER_BYTES);
  for (size_t i = 0; i < BUFFER_BYTES / 8; i++) p[i] = (i * 7919 + seed + 1) * 0x9e3779b97f4a7c15u;
  return (char *)p;
}
__attribute__((unused)) static char *blank(void) { char *p = malloc(BUFFER_BYTES); memset(p, 0xAB, BUFFER_BYTES); return p; }
static int class_of(int code) { int c; MPI_Error_class(code, &c); return c; }
static MPI_Status fresh(void) { MPI_Status s; memset(&s, 0x11, sizeof s); s.MPI_ERROR = 4711; return s; }

/* Writes down the result of one received message of type i: the code, the status, the counts and a
 * hash of the buffer. */
__attribute__((unused)) static void seen(const char *what, int i, int code, const MPI_Status *s, char *buffer) {
  int count = -1, elements = -1, cancelled = -1;
  MPI_Get_count(s, type[i], &count);
  if (count != MPI_UNDEFINED) MPI_Get_elements(s, type[i], &elements);
  MPI_Test_cancelled(s, &cancelled);
  say("%s type %d code %d source %d tag %d error %d count %d elements %d cancelled %d data %016llx\n", what, i, class_of(code),
      s->MPI_SOURCE, s->MPI_TAG, s->MPI_ERROR, count, elements, cancelled, (unsigned long long)hash(buffer, BUFFER_BYTES));
}

static void types(void) {
  MPI_Datatype t;
  MPI_Type_vector(16, 3, 7, MPI_INT, &type[0]);
  int lengths[3] = {1, 1, 3};
  MPI_Aint at[3] = {0, 8, 16};
  MPI_Datatype of[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
  MPI_Type_create_struct(3, lengths, at, of, &t);
  MPI_Type_create_resized(t, 0, 32, &type[1]);
  MPI_Type_free(&t);
  int places[100];
  for (int i = 0, p = 0; i < 100; i++) { places[i] = p; p += 1 + i % 3 + i * i % 5; }
  MPI_Type_create_indexed_block(100, 1, places, MPI_DOUBLE, &type[2]);
  MPI_Type_vector(1024, 8, 16, MPI_DOUBLE, &type[3]);
  MPI_Type_vector(1000, 1, 3, MPI_SHORT, &type[4]);
  MPI_Type_vector(4096, 8, 16, MPI_DOUBLE, &t);
  MPI_Type_create_resized(t, 0, 512 << 10, &type[5]);
  MPI_Type_free(&t);
  for (int i = 0; i < TYPES; i++) { MPI_Type_commit(&type[i]); MPI_Type_size(type[i], &bytes[i]); }
}

static int handled;
__attribute__((unused)) static void handler(MPI_Comm *c, int *code, ...) { (void)c; handled = handled * 100 + class_of(*code); }

/* Completes n requests in one of several ways. The statuses are in the order of the requests. Ways
 * 8 to 11 only wait until the requests are complete, by asking for their statuses, so the caller
 * must still complete them. Ways 10 and 11 write no statuses. */
__attribute__((unused)) static int complete(int way, int n, MPI_Request *r, MPI_Status *s) {
  int done = 0, code = 0, flag, index, out, indices[64];
  MPI_Status some[64];
  switch (way) {
  case 0: for (int i = n; i--;) code |= MPI_Wait(&r[i], &s[i]); break;
  case 1: for (int i = 0; done < n; i = (i + 1) % n) if (r[i] != MPI_REQUEST_NULL) { code |= MPI_Test(&r[i], &flag, &s[i]); done += flag; } break;
  case 2: for (; done < n; done++) { MPI_Status one = fresh(); code |= MPI_Waitany(n, r, &index, &one); s[index] = one; } break;
  case 3: while (done < n) { MPI_Status one = fresh(); code |= MPI_Testany(n, r, &index, &flag, &one); if (flag) { s[index] = one; done++; } } break;
  case 4: code = MPI_Waitall(n, r, s); break;
  case 5: do code |= MPI_Testall(n, r, &flag, s); while (!flag); break;
  case 6: while (done < n) { for (int k = 0; k < n; k++) some[k] = fresh(); code |= MPI_Waitsome(n, r, &out, indices, some); for (int k = 0; k < out; k++) s[indices[k]] = some[k]; done += out; } break;
  case 7: while (done < n) { for (int k = 0; k < n; k++) some[k] = fresh(); code |= MPI_Testsome(n, r, &out, indices, some); for (int k = 0; k < out; k++) s[indices[k]] = some[k]; done += out; } break;
  case 8:
    for (int i = 0; i < n; i++) { do MPI_Request_get_status(r[i], &flag, i % 2 ? MPI_STATUS_IGNORE : &s[i]); while (!flag); }
    break;
#ifdef GET_STATUS_MANY
  case 9: do MPI_Request_get_status_all(n, r, &flag, s); while (!flag); break;
  case 10: for (int i = 0; i < n; i++) do { MPI_Status one = fresh(); MPI_Request_get_status_any(1, r + i, &index, &flag, &one); } while (!flag); break;
  case 11: for (int i = 0; i < n; i++) do MPI_Request_get_status_some(1, r + i, &out, indices, some); while (out != 1); break;
#endif
  default: code = MPI_Waitall(n, r, s); break;
  }
  return code;
}

/* Initializes MPI, and makes the communicator `comm` and the types `type` of the program's
 * messages. */
static void begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  peer = rank ^ 1;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  types();
}

/* Prints on rank 0 the texts that all ranks have written, and finalizes MPI. */
__attribute__((unused)) static void end(void) {
  int n = (int)used;
  if (rank) { MPI_Send(&n, 1, MPI_INT, 0, 1, MPI_COMM_WORLD); MPI_Send(text, n, MPI_CHAR, 0, 2, MPI_COMM_WORLD); }
  else
    for (int k = 0; k < size; k++) {
      if (k) {
        MPI_Recv(&n, 1, MPI_INT, k, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        text = realloc(text, n + 1);
        MPI_Recv(text, n, MPI_CHAR, k, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      printf("rank %d\n%.*s", k, n, text);
    }
  for (int i = 0; i < TYPES; i++) MPI_Type_free(&type[i]);
  MPI_Comm_free(&comm);
  MPI_Finalize();
}
#endif
