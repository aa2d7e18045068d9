/* A replacement for the convertors of Open MPI 6.0, which are the objects with the state of packing
 * or unpacking one message. The preload library and convertors.c are tested with it, since no Open
 * MPI 6.0 is built here.
 *
 * A convertor of this library calls a convertor of the installed release. Its fields have the
 * places of 6.0's header, and one of them is the function that places the convertor. A call to move
 * bytes or to place the convertor begins at the position in these fields. If the convertor of the
 * installed release has another position, the process ends, because 6.0 would move other bytes than
 * those asked for. Convertors that Open MPI makes for itself are left alone. The library is loaded
 * after the preload library. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct convertor;
typedef int move_fn(void *, struct iovec *, uint32_t *, size_t *);
typedef int position_fn(void *, size_t *);
typedef int prepare_fn(void *, const void *, size_t, const void *);

struct convertor {
  void *object[2];
  const void *type, *description;
  size_t count, size_there;
  void *master;
  move_fn *mover;
  size_t moved, part, size;
  const unsigned char *buffer;
  void *stack, *copy;
  uint32_t flags, depth, deepest, architecture;
  const size_t *sizes;
  position_fn *placer;
  char stacks[5 * 32];
  void *stream;
  /* A field that 6.0 does not have: the convertor of the installed release that does the work. */
  char *below;
};
_Static_assert(offsetof(struct convertor, mover) == 0x38 && offsetof(struct convertor, moved) == 0x40 && offsetof(struct convertor, size) == 0x50 &&
                   offsetof(struct convertor, flags) == 0x70 && offsetof(struct convertor, placer) == 0x88,
               "the layout of 6.0");

enum { FLAGS = 0x14, SIZE = 0x18, SIZE_THERE = 0x20, TYPE = 0x28, DESCRIPTION = 0x30, COUNT = 0x38, BUFFER = 0x48, MOVED = 0x78 };
enum { CONTIGUOUS = 0x10, NO_OP = 0x2000000, COMPLETED = 0x4000000, OF_TYPE = 0xffff };
static const uint32_t bits[6][2] = {{0x20000, 0x400000}, {0x40000, 0x800000}, {0x80000, 0x1000000}, {0x100000, NO_OP}, {0x8000000, COMPLETED}, {0x20000000, 0x8000000}};

#define BELOW(name, type) ((__typeof__(type) *)found(name))
static void *found(const char *name) {
  void *f = dlsym(RTLD_NEXT, name);
  if (!f) { fprintf(stderr, "there is no %s\n", name); _exit(9); }
  return f;
}
static size_t word(const char *c, int at) { size_t w; memcpy(&w, c + at, 8); return w; }

enum { PLACES = 1 << 20 };
static struct convertor *made[PLACES];
static struct convertor **place_of(const void *c) {
  size_t at = ((uintptr_t)c >> 4) % PLACES;
  while (made[at] && made[at] != c) at = (at + 1) % PLACES;
  return &made[at];
}
static struct convertor *of_6(const void *c) { return *place_of(c); }

void *opal_convertor_create(int32_t architecture, int32_t mode) {
  void *below = BELOW("opal_convertor_create", void *(int32_t, int32_t))(architecture, mode);
  Dl_info caller;
  /* Open MPI makes this convertor for itself, so return that of the installed release. */
  if (dladdr(__builtin_return_address(0), &caller) && (strstr(caller.dli_fname, "libmpi.") || strstr(caller.dli_fname, "libopen-pal."))) return below;
  struct convertor *c = calloc(1, sizeof *c);
  c->below = below;
  c->flags = 0x1000000;
  *place_of(c) = c;
  return c;
}

/* Copies the flags and the position from the installed release's convertor to that of 6.0. */
static void take(struct convertor *c) {
  uint32_t flags, old = c->flags & ~OF_TYPE;
  memcpy(&flags, c->below + FLAGS, 4);
  c->flags = flags & OF_TYPE;
  for (int i = 0; i < 6; i++) {
    old &= ~bits[i][1];
    if (flags & bits[i][0]) c->flags |= bits[i][1];
  }
  c->flags |= old;
  c->moved = word(c->below, MOVED);
}

static void complete(char *below, int is_complete) {
  uint32_t flags;
  memcpy(&flags, below + FLAGS, 4);
  flags = is_complete ? flags | bits[4][0] : flags & ~bits[4][0];
  memcpy(below + FLAGS, &flags, 4);
}

static void checked(struct convertor *c, const char *what) {
  if (c->flags & NO_OP) {
    /* A convertor with the flag NO_OP needs no stack, so its position is only the number `moved`.
     * The convertor of the installed release has not been told of that number, so copy it there. */
    memcpy(c->below + MOVED, &c->moved, 8);
    complete(c->below, (c->flags & COMPLETED) != 0);
    return;
  }
  if (word(c->below, MOVED) == c->moved) return;
  fprintf(stderr, "%s at %zu where the stack is at %zu\n", what, c->moved, word(c->below, MOVED));
  _exit(9);
}

static int moves(const char *name, struct convertor *c, struct iovec *list, uint32_t *n, size_t *bytes) {
  checked(c, name);
  int done = BELOW(name, move_fn)(c->below, list, n, bytes);
  take(c);
  return done;
}
static int opal_generic_inlined_pack(void *c, struct iovec *l, uint32_t *n, size_t *b) { return moves("opal_convertor_pack", c, l, n, b); }
static int opal_generic_inlined_unpack(void *c, struct iovec *l, uint32_t *n, size_t *b) { return moves("opal_convertor_unpack", c, l, n, b); }
static int contiguous_pack(void *c, struct iovec *l, uint32_t *n, size_t *b) { return moves("opal_convertor_pack", c, l, n, b); }
static int contiguous_unpack(void *c, struct iovec *l, uint32_t *n, size_t *b) { return moves("opal_convertor_unpack", c, l, n, b); }

static int placed(struct convertor *c, size_t *position) {
  position_fn *below = BELOW("opal_convertor_set_position_nocheck", position_fn);
  size_t start = 0;
  complete(c->below, 0);
  if (*position == 0 || *position < c->moved) below(c->below, &start);
  else checked(c, "a place");
  /* Place the convertor of the installed release at the beginning and then at the position, which
   * leads to the same place. If Open MPI 5.0 is asked to go on from inside an element of a loop, it
   * may not come to an end. */
  if (*position) {
    start = 0;
    below(c->below, &start);
    below(c->below, position);
  }
  take(c);
  return 0;
}
int opal_convertor_position_generic(void *c, size_t *position) { return placed(c, position); }
static int position_contiguous(void *c, size_t *position) { return placed(c, position); }

static int prepares(const char *name, int receives, void *convertor, const void *type, size_t count, const void *buffer) {
  struct convertor *c = of_6(convertor);
  prepare_fn *below = BELOW(name, prepare_fn);
  if (!c) return below(convertor, type, count, buffer);
  int code = below(c->below, type, count, buffer);
  c->size = word(c->below, SIZE);
  c->size_there = word(c->below, SIZE_THERE);
  c->type = (const void *)word(c->below, TYPE);
  c->description = (const void *)word(c->below, DESCRIPTION);
  c->count = word(c->below, COUNT);
  c->buffer = (const unsigned char *)word(c->below, BUFFER);
  take(c);
  c->placer = NULL;
  if (c->flags & (NO_OP | COMPLETED)) return code;
  if (c->flags & CONTIGUOUS) {
    c->mover = receives ? contiguous_unpack : contiguous_pack;
    c->placer = position_contiguous;
  } else {
    c->mover = receives ? opal_generic_inlined_unpack : opal_generic_inlined_pack;
    c->placer = opal_convertor_position_generic;
  }
  return code;
}
int opal_convertor_prepare_for_send(void *c, const void *t, size_t n, const void *b) { return prepares(__func__, 0, c, t, n, b); }
int opal_convertor_prepare_for_recv(void *c, const void *t, size_t n, const void *b) { return prepares(__func__, 1, c, t, n, b); }

static int moved_by(const char *name, void *convertor, struct iovec *list, uint32_t *n, size_t *bytes) {
  struct convertor *c = of_6(convertor);
  if (!c) return BELOW(name, move_fn)(convertor, list, n, bytes);
  if (c->flags & COMPLETED) {
    list[0].iov_len = *n = 0;
    *bytes = 0;
    return 1;
  }
  return c->flags & NO_OP ? moves(name, c, list, n, bytes) : c->mover(c, list, n, bytes);
}
int opal_convertor_pack(void *c, struct iovec *l, uint32_t *n, size_t *b) { return moved_by(__func__, c, l, n, b); }
int opal_convertor_unpack(void *c, struct iovec *l, uint32_t *n, size_t *b) { return moved_by(__func__, c, l, n, b); }

int opal_convertor_raw(void *convertor, struct iovec *list, uint32_t *n, size_t *bytes) {
  struct convertor *c = of_6(convertor);
  if (!c) return BELOW(__func__, move_fn)(convertor, list, n, bytes);
  if (c->flags & COMPLETED) {
    list[0] = (struct iovec){NULL, 0};
    *n = 0;
    *bytes = 0;
    return 1;
  }
  return moves(__func__, c, list, n, bytes);
}

int opal_convertor_clone(const void *from, void *to, int32_t stack) {
  struct convertor *a = of_6(from), *b = of_6(to);
  int (*below)(const void *, void *, int32_t) = (int (*)(const void *, void *, int32_t))found(__func__);
  if (!a || !b) return below(from, to, stack);
  char *own = b->below;
  below(a->below, own, stack);
  memcpy(b, a, sizeof *b);
  b->below = own;
  if (!stack) b->moved = (size_t)-1;
  return 0;
}

/* In 6.0, the number of instances is a size_t. If `type` is null, only the number is stored, so
 * that convertors.c can check it. */
size_t since_6_instances;
int32_t opal_datatype_copy_content_same_ddt(const void *type, size_t count, void *to, void *from) {
  if (!type) {
    since_6_instances = count;
    return 0;
  }
  return BELOW(__func__, int32_t(const void *, int32_t, void *, void *))(type, (int32_t)count, to, from);
}
