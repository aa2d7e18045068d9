/* Finds Open MPI's functions on convertors by their names, and has the offsets of a convertor's
 * fields, since Open MPI does not install the headers of convertors. A convertor is the object with
 * the state of packing or unpacking one message. With -DSINCE_6, convertors are those of Open MPI
 * 6.0, which the library since6.c implements, and the environment variable DDTC_REPLACEMENT has the
 * path of that library. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* Pointers to functions on convertors. The first index of `prepare`, and the only index of
 * `place_fn`, `raw` and `copy_of`, is 0 for Open MPI's own function. It is 1 for the function that
 * calls inside Open MPI reach, which may be the preload library's. The second index of `prepare`,
 * and the only index of `move`, is 0 for packing and 1 for unpacking. */
typedef int prepare_fn(void *, const void *, size_t, const void *);
typedef int move_fn(void *, struct iovec *, uint32_t *, size_t *);
typedef int position_fn(void *, size_t *);
typedef int clone_fn(const void *, void *, int32_t);
typedef void *create_fn(int32_t, int32_t);
#ifdef SINCE_6
typedef int32_t copy_type_fn(const void *, size_t, void *, void *);
#else
typedef int32_t copy_type_fn(const void *, int32_t, void *, void *);
#endif
static prepare_fn *prepare[2][2];
#ifndef SINCE_6
static position_fn *place_fn[2];
#endif
static move_fn *raw[2], *move[2];
static copy_type_fn *copy_of[2];
static clone_fn *clone_of;
static create_fn *create;
static int32_t architecture;

static void *named(void *scope, const char *name) {
  void *found = dlsym(scope, name);
  if (!found) { printf("there is no %s\n", name); exit(3); }
  return found;
}

static void functions(void) {
#ifdef SINCE_6
  void *host = dlopen(getenv("DDTC_REPLACEMENT"), RTLD_NOLOAD | RTLD_LAZY);
#else
  void *host = dlopen("libopen-pal.so.80", RTLD_NOLOAD | RTLD_LAZY);
  if (!host) host = dlopen("libopen-pal.so.40", RTLD_NOLOAD | RTLD_LAZY);
#endif
  if (!host) { puts("there is no Open MPI"); exit(3); }
  for (int all = 0; all < 2; all++) {
    void *scope = all ? RTLD_DEFAULT : host;
    prepare[all][0] = named(scope, "opal_convertor_prepare_for_send");
    prepare[all][1] = named(scope, "opal_convertor_prepare_for_recv");
#ifndef SINCE_6
    place_fn[all] = named(scope, "opal_convertor_set_position_nocheck");
#endif
    raw[all] = named(scope, "opal_convertor_raw");
    copy_of[all] = named(scope, "opal_datatype_copy_content_same_ddt");
  }
  move[0] = named(host, "opal_convertor_pack");
  move[1] = named(host, "opal_convertor_unpack");
  clone_of = named(host, "opal_convertor_clone");
  create = named(host, "opal_convertor_create");
  architecture = *(int32_t *)named(RTLD_DEFAULT, "opal_local_arch");
}

#ifdef SINCE_6
enum { FLAGS = 0x70, SIZE = 0x50, TYPE = 0x10, DESCRIPTION = 0x18, COUNT = 0x20, BUFFER = 0x58, MOVER = 0x38, PLACER = 0x88, MOVED = 0x40 };
enum { NO_OP = 0x2000000, COMPLETED = 0x4000000 };
#else
enum { FLAGS = 0x14, SIZE = 0x18, TYPE = 0x28, DESCRIPTION = 0x30, COUNT = 0x38, BUFFER = 0x48, MOVER = 0x58, MOVED = 0x78 };
enum { NO_OP = 0x100000, COMPLETED = 0x8000000 };
#endif
/* NO_GAPS is a flag of a convertor, in the half of its flags that comes from the type. OPTIMIZED is
 * an offset in Open MPI's object for a type. At this offset is the description of the type that
 * convertors use if the data need not be converted to another representation. */
enum { NO_GAPS = 0x20, OPTIMIZED = 168 };
static size_t word(void *c, int at) { size_t w; memcpy(&w, (char *)c + at, 8); return w; }
static uint32_t flags(void *c) { uint32_t w; memcpy(&w, (char *)c + FLAGS, 4); return w; }
static void set_flags(void *c, uint32_t w) { memcpy((char *)c + FLAGS, &w, 4); }

/* Places a convertor at the position `*at`, as the inline function opal_convertor_set_position in
 * Open MPI's header does. `all` selects Open MPI's function (0) or the one that calls inside Open
 * MPI reach (1). */
static void place(int all, void *c, size_t *at) {
  if (word(c, SIZE) <= *at) {
    set_flags(c, flags(c) | COMPLETED);
    *at = word(c, SIZE);
    memcpy((char *)c + MOVED, at, 8);
    return;
  }
  if (*at == word(c, MOVED)) return;
  set_flags(c, flags(c) & ~COMPLETED);
#ifdef SINCE_6
  position_fn *placer;
  (void)all;
  memcpy(&placer, (char *)c + PLACER, 8);
  if (placer) placer(c, at);
  else memcpy((char *)c + MOVED, at, 8);
#else
  place_fn[all](c, at);
#endif
}

/* Places a convertor at the beginning, and from there at the position `*at`. If a convertor stands
 * inside a loop, Open MPI's own function does not find positions after the loop, and may not
 * return. */
static void far(int all, void *c, size_t *at) {
  size_t start = 0;
  place(all, c, &start);
  place(all, c, at);
}

