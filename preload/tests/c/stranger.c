/* Two libraries that are loaded together with the preload library.
 *
 * With -DTOOL, the library stores movers of its own in Open MPI's convertors, as Open MPI's message
 * logging does. A mover is the function that moves the bytes of a convertor; those of this library
 * count the bytes and call the movers that were there before. With -DDISGUISE=\"...\", the library
 * makes the MPI library appear as another version. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#ifdef DISGUISE
int PMPI_Get_library_version(char *version, int *length) {
  strcpy(version, DISGUISE);
  *length = (int)strlen(DISGUISE);
  return MPI_SUCCESS;
}
int MPI_Get_library_version(char *version, int *length) { return PMPI_Get_library_version(version, length); }
#endif

#ifdef TOOL
typedef int prepare_fn(void *, const void *, size_t, const void *);
typedef int mover_fn(void *, struct iovec *, uint32_t *, size_t *);
enum { FLAGS = 0x14, MOVER = 0x58, NO_OP = 0x100000, PLACES = 1 << 16 };
static struct { void *convertor; mover_fn *mover; } stood[2][PLACES];
static mover_fn *last[2];
static size_t moved;

static mover_fn **place(int receives, void *convertor) {
  size_t at = ((uintptr_t)convertor >> 4) % PLACES;
  while (stood[receives][at].convertor && stood[receives][at].convertor != convertor) at = (at + 1) % PLACES;
  stood[receives][at].convertor = convertor;
  return &stood[receives][at].mover;
}

static int move(int receives, void *convertor, struct iovec *list, uint32_t *n, size_t *bytes) {
  mover_fn **mover = place(receives, convertor);
  int done = (*mover ? *mover : last[receives])(convertor, list, n, bytes);
  moved += *bytes;
  return done;
}
static int sends(void *c, struct iovec *list, uint32_t *n, size_t *bytes) { return move(0, c, list, n, bytes); }
static int receives(void *c, struct iovec *list, uint32_t *n, size_t *bytes) { return move(1, c, list, n, bytes); }

static int prepare(const char *name, int is_receive, void *convertor, const void *type, size_t count, const void *buffer) {
  prepare_fn *next = (prepare_fn *)dlsym(RTLD_NEXT, name);
  int code = next(convertor, type, count, buffer);
  mover_fn *own = is_receive ? receives : sends, *there;
  uint32_t flags;
  memcpy(&flags, (char *)convertor + FLAGS, 4);
  memcpy(&there, (char *)convertor + MOVER, 8);
  if (!(flags & NO_OP) && there && there != own) {
    *place(is_receive, convertor) = last[is_receive] = there;
    memcpy((char *)convertor + MOVER, &own, 8);
  }
  return code;
}
int opal_convertor_prepare_for_send(void *c, const void *t, size_t n, const void *b) { return prepare(__func__, 0, c, t, n, b); }
int opal_convertor_prepare_for_recv(void *c, const void *t, size_t n, const void *b) { return prepare(__func__, 1, c, t, n, b); }

__attribute__((destructor)) static void say(void) { fprintf(stderr, "the tool moved %zu bytes\n", moved); }
#endif
