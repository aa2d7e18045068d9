/* A small MPI library of one process in MPICH's ABI. It says that the process is rank 1 of a world
 * of two ranks. The program decides how each call ends: with which error code, whether its requests
 * end or go on after the error, and whether internal operations go on although the call has
 * returned. The library uses its request objects again at once. After move_elsewhere(1), it moves
 * the bytes of its own packs and messages to other places than the type map says.
 *
 * All messages go from the process to itself. A receive takes the first message with its tag.
 * Collective calls receive messages with the tag COLLECTIVE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "endings.h"

#define BOTH(name, args) int P##name args __attribute__((visibility("default"))); \
  int name args __attribute__((weak, alias("P" #name))); int P##name args

enum { COLLECTIVE = 77, FILE_BYTES = 1 << 20, WINDOW_BYTES = 1 << 20, TYPES = 256, OPERATIONS = 1024, MESSAGES = 256 };

/* A derived type: `n` blocks of `bytes` bytes at distances of `stride` bytes. */
static struct type { int n, old, ints[3], combiner; long bytes, stride, extent; void *attribute; } types[TYPES];
/* The first type gets index 16, since handles with smaller indices would be those of MPICH's named
 * pair types. */
static int made = 15, elsewhere;

void move_elsewhere(int on) { elsewhere = on; }

static struct type shape(Handle t) {
  struct type basic = {.n = 1, .bytes = t == INT ? 4 : 1, .stride = 4};
  basic.extent = basic.bytes;
  return (t & 0xff000000) == 0x4c000000 ? basic : types[t & 0xffff];
}
static long bytes_of(Handle t, int count) { return count * shape(t).n * shape(t).bytes; }

static Handle new_type(int combiner, int n, long bytes, long stride, const int *ints, int old) {
  struct type *t = &types[++made];
  *t = (struct type){.n = n, .bytes = bytes, .stride = stride, .extent = (n - 1) * stride + bytes, .old = old, .combiner = combiner};
  memcpy(t->ints, ints, sizeof t->ints);
  return (Handle)(0x8c000000u | made);
}

/* Moves the first `all` bytes of `count` instances to memory from a packed stream if `to_memory` is
 * true, and from memory to the stream otherwise. */
static void move(char *memory, int count, Handle type, char *stream, long all, int to_memory) {
  struct type t = shape(type);
  for (int i = 0; i < count; i++)
    for (int k = 0; k < t.n && all > 0; k++) {
      long n = all < t.bytes ? all : t.bytes;
      char *at = memory + i * t.extent + (elsewhere ? t.n - 1 - k : k) * t.stride;
      memcpy(to_memory ? at : stream, to_memory ? stream : at, n);
      stream += n;
      all -= n;
    }
}

BOTH(MPI_Type_vector, (int n, int b, int s, Handle o, Handle *t)) { *t = new_type(4, n, 4L * b, 4L * s, (int[]){n, b, s}, o); return 0; }
BOTH(MPI_Type_contiguous, (int n, Handle o, Handle *t)) { *t = new_type(3, 1, bytes_of(o, n), 0, (int[]){n, 0, 0}, o); return 0; }
BOTH(MPI_Type_commit, (Handle *t)) { (void)t; return 0; }
BOTH(MPI_Type_free, (Handle *t)) { *t = 0x0c000000; return 0; }
BOTH(MPI_Type_size, (Handle t, int *n)) { *n = bytes_of(t, 1); return 0; }
BOTH(MPI_Type_get_extent, (Handle t, long *lb, long *e)) { *lb = 0; *e = shape(t).extent; return 0; }
BOTH(MPI_Type_get_envelope, (Handle t, int *i, int *a, int *d, int *c)) {
  *c = shape(t).combiner ? shape(t).combiner : 1;
  *i = *c == 1 ? 0 : *c == 3 ? 1 : 3; *a = 0; *d = *c != 1;
  return 0;
}
BOTH(MPI_Type_get_contents, (Handle t, int ni, int na, int nd, int *i, long *a, Handle *d)) {
  (void)na; (void)nd; (void)a;
  memcpy(i, shape(t).ints, ni * sizeof *i);
  d[0] = shape(t).old;
  return 0;
}
BOTH(MPI_Type_create_keyval, (void *c, void *d, int *k, void *e)) { (void)c; (void)d; (void)e; *k = 1; return 0; }
BOTH(MPI_Type_set_attr, (Handle t, int k, void *v)) { (void)k; types[t & 0xffff].attribute = v; return 0; }
BOTH(MPI_Type_get_attr, (Handle t, int k, void **v, int *f)) { (void)k; *v = shape(t).attribute; *f = *v != 0; return 0; }
BOTH(MPI_Comm_create_keyval, (void *c, void *d, int *k, void *e)) { (void)c; (void)d; (void)e; *k = 1; return 0; }
BOTH(MPI_Comm_set_attr, (Handle c, int k, void *v)) { (void)c; (void)k; (void)v; return 0; }
BOTH(MPI_Comm_test_inter, (Handle c, int *f)) { (void)c; *f = 0; return 0; }
BOTH(MPI_Comm_rank, (Handle c, int *r)) { *r = c == WORLD; return 0; }
BOTH(MPI_Comm_size, (Handle c, int *n)) { *n = c == WORLD ? 2 : 1; return 0; }
BOTH(MPI_Pack_size, (int n, Handle t, Handle c, int *size)) { (void)c; *size = bytes_of(t, n); return 0; }
BOTH(MPI_Pack, (const void *u, int count, Handle t, void *p, int size, int *at, Handle comm)) {
  (void)size; (void)comm;
  move((char *)u, count, t, (char *)p + *at, bytes_of(t, count), 0);
  *at += bytes_of(t, count);
  return 0;
}
BOTH(MPI_Unpack, (const void *p, int size, int *at, void *u, int count, Handle t, Handle comm)) {
  (void)size; (void)comm;
  move(u, count, t, (char *)p + *at, bytes_of(t, count), 1);
  *at += bytes_of(t, count);
  return 0;
}

/* How the next communication call ends, as next_ends has set it. */
static struct { int how, code, which, in_status; } next;
void next_ends(int how, int code, int which, int in_status) { next.how = how; next.code = code; next.which = which; next.in_status = in_status; }

static struct { int tag; long bytes; char *stream; } messages[MESSAGES];
static int waiting;

static void send_now(const void *buf, int count, Handle type, int tag) {
  long bytes = bytes_of(type, count);
  messages[waiting].tag = tag; messages[waiting].bytes = bytes; messages[waiting].stream = malloc(bytes + 1);
  move((char *)buf, count, type, messages[waiting++].stream, bytes, 0);
}

/* Operations that the library has not ended. The handle of a request contains the index of its
 * operation. */
static struct operation { int used, request, persistent, active, receives, done, count, tag; Handle type; char *buf; long bytes; } operations[OPERATIONS];
static int last;
/* Indices of the operations on the window that the next fence will end. */
static int epoch[OPERATIONS], open_ones;

static Handle begin(int request, int persistent, int receives, void *buf, int count, Handle type, int tag) {
  int i = 1;
  while (operations[i].used) if (++i == OPERATIONS) abort();
  if (i > last) last = i;
  operations[i] = (struct operation){1, request, persistent, !persistent, receives, 0, count, tag, type, buf, 0};
  return (Handle)(0xac000000u | i);
}
static struct operation *of(Handle h) { return h == NO_REQUEST ? NULL : &operations[h & 0xffffff]; }

static void progress(void) {
  for (int i = 1; i <= last; i++) {
    struct operation *o = &operations[i];
    if (!o->used || !o->request || !o->active || o->done) continue;
    if (!o->receives) { send_now(o->buf, o->count, o->type, o->tag); o->done = 1; continue; }
    for (int m = 0; m < waiting; m++) {
      if (messages[m].tag != o->tag) continue;
      o->bytes = messages[m].bytes; o->done = 1;
      move(o->buf, o->count, o->type, messages[m].stream, o->bytes, 1);
      free(messages[m].stream);
      memmove(&messages[m], &messages[m + 1], (--waiting - m) * sizeof *messages);
      break;
    }
  }
}

void touch_what_is_alive(void) {
  static char scrap[1 << 20];
  for (int i = 1; i <= last; i++) {
    struct operation *o = &operations[i];
    if (!o->used || !o->active || o->done) continue;
    memset(scrap, 0xee, bytes_of(o->type, o->count));
    move(o->buf, o->count, o->type, scrap, bytes_of(o->type, o->count), o->receives);
  }
}

void end_what_has_no_request(void) {
  touch_what_is_alive();
  for (int i = 1; i <= last; i++) operations[i].used &= operations[i].request;
  open_ones = 0;
}

static void set(Status *s, struct operation *o, int error) {
  if (s == IGNORED) return;
  s->bytes = o && o->active ? o->bytes : 0;
  s->source = o && o->active ? 0 : ANY_SOURCE;
  s->tag = o ? o->tag : -1;
  if (error >= 0) s->error = error;
}
static void end(Handle *h) {
  struct operation *o = of(*h);
  if (!o) return;
  o->done = 0;
  if (o->persistent) { o->active = 0; return; }
  o->used = 0;
  *h = NO_REQUEST;
}
static int ended(Handle h) { return !of(h) || !of(h)->active || of(h)->done; }
static int take_how(void) { int how = next.how; next.how = WELL; return how; }

/* Waits for one request, or tests it if `flag` is not null. A wait for a request that is not
 * complete would hang, so it aborts. */
static int one(Handle *h, int *flag, Status *s) {
  int how = take_how(), there;
  progress();
  if (how != WELL) { if (how == ENDED) end(h); return next.code; }
  there = ended(*h);
  if (!there && !flag) abort();
  if (flag) *flag = there;
  if (there) { set(s, of(*h), -1); end(h); }
  return 0;
}
BOTH(MPI_Wait, (Handle *h, Status *s)) { return one(h, NULL, s); }
BOTH(MPI_Test, (Handle *h, int *flag, Status *s)) { return one(h, flag, s); }

static int any(int n, Handle *h, int *index, int *flag, Status *s) {
  if (next.how != WELL) { *index = next.which; return one(&h[*index], NULL, s); }
  progress();
  *index = UNDEFINED;
  for (int i = 0; i < n; i++)
    if (of(h[i]) && of(h[i])->active && of(h[i])->done) { *index = i; if (flag) *flag = 1; return one(&h[i], NULL, s); }
  if (flag) *flag = 0; else abort();
  return 0;
}
BOTH(MPI_Waitany, (int n, Handle *h, int *index, Status *s)) { return any(n, h, index, NULL, s); }
BOTH(MPI_Testany, (int n, Handle *h, int *index, int *flag, Status *s)) { return any(n, h, index, flag, s); }

static int all(int n, Handle *h, int *flag, Status *s) {
  int how = take_how(), there = 1;
  progress();
  for (int i = 0; i < n; i++) there &= ended(h[i]);
  if (how == WELL) {
    if (flag) *flag = there; else if (!there) abort();
    for (int i = 0; i < n && there; i++) { set(s == IGNORED ? s : &s[i], of(h[i]), -1); end(&h[i]); }
    return 0;
  }
  for (int i = 0; i < n; i++) {
    int failed = i == next.which, done = ended(h[i]);
    if (next.in_status) set(s == IGNORED ? s : &s[i], of(h[i]), failed ? next.code : done ? 0 : PENDING);
    if (failed ? how == ENDED : done) end(&h[i]);
  }
  return next.in_status ? IN_STATUS : next.code;
}
BOTH(MPI_Waitall, (int n, Handle *h, Status *s)) { return all(n, h, NULL, s); }
BOTH(MPI_Testall, (int n, Handle *h, int *flag, Status *s)) { return all(n, h, flag, s); }

static int some(int n, Handle *h, int *out, int *indices, Status *s) {
  int how = take_how(), k = 0;
  progress();
  for (int i = 0; i < n; i++) {
    int failed = how != WELL && i == next.which;
    if (!failed && (!of(h[i]) || !of(h[i])->active || !of(h[i])->done)) continue;
    if (how == WELL || next.in_status) { indices[k] = i; set(s == IGNORED ? s : &s[k], of(h[i]), how == WELL ? -1 : failed ? next.code : 0); k++; }
    if (!failed || how == ENDED) end(&h[i]);
  }
  if (how != WELL && !next.in_status) return next.code;
  *out = k;
  return how == WELL ? 0 : IN_STATUS;
}
BOTH(MPI_Waitsome, (int n, Handle *h, int *out, int *indices, Status *s)) { return some(n, h, out, indices, s); }
BOTH(MPI_Testsome, (int n, Handle *h, int *out, int *indices, Status *s)) { return some(n, h, out, indices, s); }

BOTH(MPI_Request_get_status, (Handle h, int *flag, Status *s)) {
  progress();
  *flag = ended(h);
  if (*flag) set(s, of(h), -1);
  return 0;
}
BOTH(MPI_Request_free, (Handle *h)) {
  if (of(*h)->active) of(*h)->request = 0; else of(*h)->used = 0;
  *h = NO_REQUEST;
  return 0;
}
BOTH(MPI_Cancel, (Handle *h)) { (void)h; return 0; }
BOTH(MPI_Test_cancelled, (const Status *s, int *flag)) { (void)s; *flag = 0; return 0; }
BOTH(MPI_Get_count, (const Status *s, Handle t, int *n)) { *n = s->bytes / bytes_of(t, 1); return 0; }
BOTH(MPI_Status_set_elements, (Status *s, Handle t, int n)) { s->bytes = n * bytes_of(t, 1); return 0; }
BOTH(MPI_Error_class, (int code, int *class)) { *class = code; return 0; }

BOTH(MPI_Isend, (const void *b, int n, Handle t, int to, int tag, Handle c, Handle *h)) { (void)to; (void)c; *h = begin(1, 0, 0, (void *)b, n, t, tag); return 0; }
BOTH(MPI_Irecv, (void *b, int n, Handle t, int from, int tag, Handle c, Handle *h)) { (void)from; (void)c; *h = begin(1, 0, 1, b, n, t, tag); return 0; }
BOTH(MPI_Send_init, (const void *b, int n, Handle t, int to, int tag, Handle c, Handle *h)) { (void)to; (void)c; *h = begin(1, 1, 0, (void *)b, n, t, tag); return 0; }
BOTH(MPI_Recv_init, (void *b, int n, Handle t, int from, int tag, Handle c, Handle *h)) { (void)from; (void)c; *h = begin(1, 1, 1, b, n, t, tag); return 0; }
BOTH(MPI_Start, (Handle *h)) { of(*h)->active = 1; of(*h)->done = 0; return 0; }

/* Returns whether the current call, which has no request, must fail. If it must fail with ALIVE,
 * begins an operation that goes on after the error. */
static int fails(int receives, const void *buf, int count, Handle type) {
  int how = take_how();
  if (how == ALIVE) begin(0, 0, receives, (void *)buf, count, type, 0);
  return how != WELL;
}
static int take_message(void *buf, int count, Handle type, int tag, Status *s) {
  Handle h = begin(1, 0, 1, buf, count, type, tag);
  return one(&h, NULL, s);
}
BOTH(MPI_Send, (const void *b, int n, Handle t, int to, int tag, Handle c)) {
  (void)to; (void)c;
  if (fails(0, b, n, t)) return next.code;
  send_now(b, n, t, tag);
  return 0;
}
BOTH(MPI_Recv, (void *b, int n, Handle t, int from, int tag, Handle c, Status *s)) {
  (void)from; (void)c;
  return fails(1, b, n, t) ? next.code : take_message(b, n, t, tag, s);
}
BOTH(MPI_Sendrecv, (const void *sb, int sn, Handle st, int to, int stag, void *b, int n, Handle t, int from, int tag, Handle c, Status *s)) {
  (void)to; (void)from; (void)c;
  if (fails(1, b, n, t)) { begin(0, 0, 0, (void *)sb, sn, st, 0); return next.code; }
  send_now(sb, sn, st, stag);
  return take_message(b, n, t, tag, s);
}
BOTH(MPI_Sendrecv_replace, (void *b, int n, Handle t, int to, int stag, int from, int tag, Handle c, Status *s)) {
  (void)to; (void)from; (void)c;
  if (fails(1, b, n, t)) return next.code;
  send_now(b, n, t, stag);
  return take_message(b, n, t, tag, s);
}
BOTH(MPI_Bcast, (void *b, int n, Handle t, int root, Handle c)) {
  (void)root; (void)c;
  return fails(1, b, n, t) ? next.code : take_message(b, n, t, COLLECTIVE, IGNORED);
}
BOTH(MPI_Alltoall, (const void *sb, int sn, Handle st, void *b, int n, Handle t, Handle c)) {
  (void)sb; (void)sn; (void)st; (void)c;
  if (fails(1, b, 2 * n, t)) { begin(0, 0, 0, (void *)sb, 2 * sn, st, 0); return next.code; }
  for (int i = 0; i < 2; i++) take_message((char *)b + i * n * shape(t).extent, n, t, COLLECTIVE, IGNORED);
  return 0;
}

static char file[FILE_BYTES], window[WINDOW_BYTES];
BOTH(MPI_File_open, (Handle c, const char *name, int mode, Handle info, void **f)) { (void)c; (void)name; (void)mode; (void)info; *f = file; return 0; }
BOTH(MPI_File_close, (void **f)) { *f = NULL; return 0; }
BOTH(MPI_File_set_view, (void *f, Offset at, Handle e, Handle t, const char *rep, Handle info)) { (void)f; (void)at; (void)e; (void)t; (void)rep; (void)info; return 0; }
BOTH(MPI_File_get_size, (void *f, Offset *n)) { (void)f; *n = FILE_BYTES; return 0; }
BOTH(MPI_File_get_position, (void *f, Offset *n)) { (void)f; *n = 0; return 0; }
BOTH(MPI_File_get_byte_offset, (void *f, Offset at, Offset *n)) { (void)f; *n = at; return 0; }
BOTH(MPI_File_read_at, (void *f, Offset at, void *b, int n, Handle t, Status *s)) {
  if (fails(1, b, n, t)) return next.code;
  move(b, n, t, (char *)f + at, bytes_of(t, n), 1);
  if (s != IGNORED) s->bytes = bytes_of(t, n);
  return 0;
}
BOTH(MPI_File_write_at, (void *f, Offset at, const void *b, int n, Handle t, Status *s)) {
  if (fails(0, b, n, t)) return next.code;
  move((char *)b, n, t, (char *)f + at, bytes_of(t, n), 0);
  if (s != IGNORED) s->bytes = bytes_of(t, n);
  return 0;
}

/* Operations on the window go on until a fence ends them. A fence that fails with ALIVE ends none
 * of them, and a fence that fails with ENDED ends all. */
BOTH(MPI_Put, (const void *b, int n, Handle t, int to, ptrdiff_t at, int tn, Handle tt, Handle win)) {
  (void)to; (void)at; (void)tn; (void)tt; (void)win;
  if (fails(0, b, n, t)) return next.code;
  epoch[open_ones++] = begin(0, 0, 0, (void *)b, n, t, 0) & 0xffffff;
  return 0;
}
BOTH(MPI_Rget, (void *b, int n, Handle t, int from, ptrdiff_t at, int tn, Handle tt, Handle win, Handle *h)) {
  (void)from; (void)at; (void)tn; (void)tt; (void)win;
  *h = begin(1, 0, 1, b, n, t, -1);
  epoch[open_ones++] = *h & 0xffffff;
  return 0;
}
BOTH(MPI_Win_fence, (int assertion, Handle win)) {
  int how = take_how();
  (void)assertion; (void)win;
  for (int i = 0; i < open_ones && how != ALIVE; i++) {
    struct operation *o = &operations[epoch[i]];
    if (o->receives) { o->bytes = bytes_of(o->type, o->count); o->done = 1; } else o->used = 0;
    move(o->buf, o->count, o->type, window, bytes_of(o->type, o->count), o->receives);
  }
  if (how != ALIVE) open_ones = 0;
  return how == WELL ? 0 : next.code;
}
BOTH(MPI_Win_flush, (int rank, Handle win)) { (void)rank; (void)win; return 0; }
BOTH(MPI_Win_free, (Handle *win)) { *win = 0x20000000; return 0; }

BOTH(MPI_Init, (void *argc, void *argv)) { (void)argc; (void)argv; return 0; }
BOTH(MPI_Initialized, (int *flag)) { *flag = 1; return 0; }
BOTH(MPI_Finalized, (int *flag)) { *flag = 0; return 0; }
BOTH(MPI_Finalize, (void)) { return 0; }
/* The preload library recognizes MPICH's ABI by this function. */
int MPIR_Dup_fn(void) { return 0; }
BOTH(MPI_Get_library_version, (char *text, int *n)) { strcpy(text, "MPICH Version:      5.0.2"); *n = strlen(text); return 0; }
