/* Tests Open MPI's convertors when they are used again, as the convertors of its requests are. A
 * convertor is the object in which Open MPI keeps the state of packing or unpacking one message.
 *
 * Usage: reused
 *
 * Every trial makes the same calls with two convertors: with one through Open MPI's own functions,
 * and with the other through the preload library. First both convertors serve a type that the
 * preload library moves. Then they are prepared for something else, cleaned up or cloned. After
 * that they are placed, listed and moved, and all results of the calls are compared. Runs in one
 * process. With -DSINCE_6, convertors are those of a replacement for Open MPI 6.0 (see
 * convertors.h). */
#define _GNU_SOURCE
#include "convertors.h"
#include <mpi.h>
#include <unistd.h>

static int wrong;

/* A type, and the number of instances for which a convertor is prepared. */
struct use {
  const char *name;
  MPI_Datatype type;
  size_t count;
};

/* Kinds of types that the preload library moves. KNOWN: it has decoded the type. DESCRIBED: it
 * knows the type only by the description in Open MPI's object. COMPARED: it knows the type by its
 * description, but Open MPI still moves the bytes while the preload library compares the
 * results. */
enum { KNOWN, DESCRIBED, COMPARED, KINDS };
static struct use ours[KINDS];

enum { MEMORY = 1 << 17, STREAM = 1 << 16, MAX_ENTRIES = 64 };
static char *user[2], *packed[2];

static MPI_Datatype committed(MPI_Datatype t, int is_seen) {
  if (is_seen) MPI_Type_commit(&t);
  else PMPI_Type_commit(&t);
  return t;
}

static MPI_Datatype column(int rows, int stride, int is_seen) {
  MPI_Datatype t;
  MPI_Type_vector(rows, 1, stride, MPI_DOUBLE, &t);
  return committed(t, is_seen);
}

/* Makes a type of 48 contiguous bytes that are followed by a gap of 16 bytes. */
static MPI_Datatype block(int is_seen) {
  MPI_Datatype six, t;
  MPI_Type_contiguous(6, MPI_DOUBLE, &six);
  MPI_Type_create_resized(six, 0, 64, &t);
  MPI_Type_free(&six);
  return committed(t, is_seen);
}

static MPI_Datatype contiguous(int n, int is_seen) {
  MPI_Datatype t;
  MPI_Type_contiguous(n, MPI_DOUBLE, &t);
  return committed(t, is_seen);
}

/* Packs with a type in an MPI call of the program. After this call the preload library has decoded
 * the type. */
static void packs(MPI_Datatype t) {
  char *stream = malloc(STREAM);
  int size, position = 0;
  MPI_Type_size(t, &size);
  if (size) MPI_Pack(user[1], 1, t, stream, STREAM, &position, MPI_COMM_SELF);
  free(stream);
}

/* The flags of a convertor that was just created. If such a convertor is copied to another one
 * before a preparation, the preparation begins with these flags. */
static uint32_t new_flags;

static void *made(void) {
  void *c = create(architecture, 0);
  new_flags = flags(c);
  return c;
}

static void put(void *c, int at, size_t w) { memcpy((char *)c + at, &w, 8); }

/* Cleans up a convertor with a small stack, as the inline function opal_convertor_cleanup in Open
 * MPI's header does. The position in the stack, which that function also sets, is left as it is,
 * since it is not read before it is set again. */
static void clean_up(void *c) {
  put(c, TYPE, 0);
#ifdef SINCE_6
  put(c, PLACER, 0);
#endif
  set_flags(c, NO_GAPS | COMPLETED);
}

static int moved_by(int receives, void *c, char *stream, size_t length, size_t *bytes) {
  struct iovec part = {stream, length};
  uint32_t n = 1;
  *bytes = 0;
  return move[receives](c, &part, &n, bytes);
}

static size_t description_of(const struct use *u) { return (size_t)u->type + OPTIMIZED; }

/* Functions that move the bytes of a convertor, [0] for packing and [1] for unpacking: `generic` is
 * Open MPI's, and `comparing` is the preload library's for types whose results it compares. */
static size_t generic[2], comparing[2];

/* Returns whether the preload library has stored its mover for types of the kind `kind` in
 * convertor `c`, which was prepared for `u`. */
static int is_of(int kind, int receives, void *c, const struct use *u) {
  size_t mover = word(c, MOVER), description = word(c, DESCRIPTION);
  if (mover == generic[receives]) return 0;
  if (kind == KNOWN) return description == description_of(u);
  return description != description_of(u) && (mover == comparing[receives]) == (kind == COMPARED);
}

/* Prepares a convertor for a type again and again, until the preload library serves the type as one
 * of the kind `kind`. Ends the program if that does not happen. */
static void until(int kind, int receives, const struct use *u) {
  void *c = made();
  for (int turn = 0; turn < 20000; turn++) {
    size_t bytes;
    set_flags(c, new_flags);
    prepare[1][receives](c, u->type, u->count, user[1]);
    int is_new = word(c, MOVER) != generic[receives] && word(c, DESCRIPTION) != description_of(u);
    if (is_new && !comparing[receives]) comparing[receives] = word(c, MOVER);
    if (is_of(kind, receives, c, u)) return;
    if (kind == DESCRIBED) moved_by(receives, c, packed[1], STREAM, &bytes);
    /* Give the preload library an occasion to compile. It compiles in MPI calls of the program, and
     * only as far as the run time of the program so far allows. */
    packs(ours[KNOWN].type);
    usleep(500);
  }
  printf("kind %d is never served, %s\n", kind, receives ? "receives" : "sends");
  exit(3);
}

static const char *what[4];
static int trials, served;

static void differ(const char *where, size_t theirs, size_t here) {
  printf("%s, then %s, %s%s: %s: %zx is %zx\n", what[0], what[1], what[2], what[3], where, theirs, here);
  wrong++;
}

static void same(const char *where, size_t theirs, size_t here) {
  if (theirs != here) differ(where, theirs, here);
}

static void same_words(void *c[2], const char *where) {
  same(where, word(c[0], SIZE), word(c[1], SIZE));
  same(where, word(c[0], MOVED), word(c[1], MOVED));
  same(where, word(c[0], TYPE), word(c[1], TYPE));
  same(where, word(c[0], COUNT), word(c[1], COUNT));
  same(where, word(c[0], BUFFER) - (size_t)user[0], word(c[1], BUFFER) - (size_t)user[1]);
  same(where, flags(c[0]), flags(c[1]));
}

static void places(void *c[2], size_t to, int is_exported) {
  size_t at[2] = {to, to};
  for (int all = 0; all < 2; all++) {
#ifndef SINCE_6
    if (is_exported) place_fn[all](c[all], &at[all]);
    else
#endif
    far(all, c[all], &at[all]);
  }
  same("a place", at[0], at[1]);
  same_words(c, "placed");
}

static void moves(int receives, void *c[2], size_t length) {
  int done[2];
  size_t bytes[2], at = word(c[0], MOVED);
  /* Move the next bytes from the position of the convertors, not from the sum of earlier lengths:
   * if a part ended inside an element, the position is not the end of the part. */
  for (int all = 0; all < 2; all++) done[all] = moved_by(receives, c[all], packed[all] + at, length, &bytes[all]);
  same("a result", done[0], done[1]);
  same("bytes", bytes[0], bytes[1]);
  same_words(c, "moved");
}

static void lists(void *c[2]) {
  struct iovec list[2][MAX_ENTRIES];
  uint32_t n[2] = {MAX_ENTRIES, MAX_ENTRIES};
  size_t bytes[2] = {0, 0};
  int done[2];
  memset(list, 0, sizeof list);
  for (int all = 0; all < 2; all++) done[all] = raw[all](c[all], list[all], &n[all], &bytes[all]);
  same("a result of a list", done[0], done[1]);
  same("entries", n[0], n[1]);
  same("listed bytes", bytes[0], bytes[1]);
  for (uint32_t i = 0; i < n[0] && i < n[1]; i++) {
    same("an entry", (size_t)list[0][i].iov_base - (size_t)user[0], (size_t)list[1][i].iov_base - (size_t)user[1]);
    same("a length", list[0][i].iov_len, list[1][i].iov_len);
  }
  same_words(c, "listed");
}

/* Places both convertors, moves with them and lists their memory, and compares all results. */
static void all_calls(int receives, void *c[2]) {
  size_t total = word(c[0], SIZE);
  if (!word(c[0], TYPE)) {
    /* The convertors were cleaned up and not prepared again. No state of their earlier use may be
     * left. */
    moves(receives, c, 64);
    lists(c);
    return;
  }
  if (total) {
    /* Place the convertors at ends of elements, since Open MPI's own receiver takes no other
     * positions, unless everything is one contiguous piece (flag NO_OP). */
    size_t to[] = {8, total / 2 / 8 * 8, 0, total - 8, flags(c[0]) & NO_OP ? 13 : 16};
    for (int i = 0; i < 5; i++) places(c, to[i], 0);
    for (int i = 0; i < 2; i++) places(c, 8 * i, 1);
  }
  places(c, 0, 0);
  moves(receives, c, 24);
  moves(receives, c, 40);
  moves(receives, c, STREAM / 2);
  places(c, total, 0);
  lists(c);
  places(c, 0, 0);
  lists(c);
  places(c, 0, 0);
  moves(receives, c, STREAM / 2);
}

static void fill(int receives) {
  static char from[MEMORY];
  for (size_t i = 0; !from[1] && i < MEMORY; i++) from[i] = (char)(i * 7 + i / 253);
  for (int all = 0; all < 2; all++) {
    if (receives) memcpy(packed[all], from, STREAM);
    else memcpy(user[all], from, MEMORY);
    memset(receives ? user[all] : packed[all], 0x5a, receives ? MEMORY : STREAM);
  }
}

/* How a convertor is prepared again: as it is, with the flags of a new one, cleaned up, or
 * cleaned up and for the other direction. */
enum { AGAIN, COPIED, CLEANED, TURNED, AGAINS };
static const char *const agains[AGAINS] = {"prepared again", "copied and prepared", "cleaned up", "turned"};
/* The convertor that is used after the preparation. ITSELF: the prepared convertor. PLACED: a clone
 * of it without its stack. WHOLE: a clone with its stack. OVER: a clone that overwrites another
 * convertor, which was prepared for the first type of the trial. */
enum { ITSELF, PLACED, WHOLE, OVER, CLONES };
static const char *const clones[CLONES] = {"", ", cloned", ", cloned with its stack", ", cloned over another"};
enum { NOTHING, PART, ALL, PARTS };

/* The uses for which convertors are prepared after they have served a type. A use is a type and a
 * number of instances. The preload library serves the types of the first OURS entries, too. */
enum { OURS = 4, MAX_AFTER = 32 };
static struct use after[MAX_AFTER];

static void trial(int receives, int kind, int part, const struct use *then, int again, int clone) {
  void *c[2], *others[2];
  what[0] = ours[kind].name;
  what[1] = then ? then->name : "nothing";
  what[2] = agains[again];
  what[3] = clones[clone];
  fill(receives);
  for (int all = 0; all < 2; all++) {
    size_t bytes;
    c[all] = made();
    prepare[all][receives](c[all], ours[kind].type, ours[kind].count, user[all]);
    if (all && !is_of(kind, receives, c[all], &ours[kind])) { differ("it is not served", 0, 0); return; }
    if (part) moved_by(receives, c[all], packed[all], part == PART ? 64 : STREAM, &bytes);
    others[all] = made();
    prepare[all][receives](others[all], ours[kind].type, ours[kind].count, user[all]);
    if (again >= CLEANED) clean_up(c[all]);
    if (again >= COPIED && then) set_flags(c[all], new_flags);
  }
  receives ^= again == TURNED;
  fill(receives);
  for (int all = 0; all < 2 && then; all++) prepare[all][receives](c[all], then->type, then->count, user[all]);
  served += then && then < &after[OURS] && word(c[0], MOVER) != word(c[1], MOVER);
  for (int all = 0; all < 2 && clone; all++) {
    void *source = c[all];
    c[all] = clone == OVER ? others[all] : made();
    size_t start = 0;
    clone_of(source, c[all], clone != PLACED);
    if (clone == PLACED && then) place(all, c[all], &start);
  }
  same_words(c, "prepared");
  all_calls(receives, c);
  if (memcmp(user[0], user[1], MEMORY)) differ("memory", 0, 0);
  if (memcmp(packed[0], packed[1], STREAM)) differ("packed bytes", 0, 0);
  trials++;
}

/* Tries a convertor for a type of one block with a gap, after the convertor was used for a
 * described type. The preload library replaces the function that places such a convertor, but the
 * convertor's description is Open MPI's. Code that takes this description for one of the preload
 * library's would read beyond those parts of Open MPI's object that convertors read. So the type of
 * the trial is a copy of those parts. After the copy there are numbers that are no addresses, and
 * then zeros. */
static void block_in_memory_of_others(int receives) {
  enum { READ = OPTIMIZED + 24, COPY_BYTES = 1024 };
  char copy[COPY_BYTES];
  MPI_Datatype of = block(0);
  for (size_t end = READ; end < COPY_BYTES && wrong < 20; end += 8) {
    memset(copy, 0, COPY_BYTES);
    memset(copy, 3, end);
    memcpy(copy, of, READ);
    struct use block = {"one block with a gap in the memory of others", (MPI_Datatype)copy, 1};
    trial(receives, DESCRIBED, NOTHING, &block, COPIED, ITSELF);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  functions();
  for (int all = 0; all < 2; all++) {
    user[all] = malloc(MEMORY);
    packed[all] = malloc(STREAM);
  }
  fill(0);
  ours[KNOWN] = (struct use){"a decoded type", column(64, 3, 1), 40};
  ours[DESCRIBED] = (struct use){"a described type", column(4096, 2, 0), 1};
  ours[COMPARED] = (struct use){"a compared type", column(8191, 2, 0), 1};
  struct use known = {"another decoded type", column(50, 5, 1), 30}, described = {"another described type", column(3000, 4, 0), 1};
  packs(ours[KNOWN].type);
  packs(known.type);
  for (int receives = 0; receives < 2; receives++) {
    void *c = made();
    prepare[0][receives](c, ours[KNOWN].type, 1, user[0]);
    generic[receives] = word(c, MOVER);
    for (int kind = 0; kind < KINDS; kind++) until(kind, receives, &ours[kind]);
    until(KNOWN, receives, &known);
    until(DESCRIBED, receives, &described);
  }
  struct use all[] = {
      known,
      described,
      ours[KNOWN],
      ours[DESCRIBED],
      {"a named type", MPI_DOUBLE, 10},
      {"a contiguous type", contiguous(3, 1), 5},
      {"a contiguous type, not seen", contiguous(4, 0), 5},
      {"one block with a gap", block(1), 1},
      {"one block with a gap, not seen", block(0), 1},
      {"blocks with gaps", block(1), 4},
      {"blocks with gaps, not seen", block(0), 4},
      {"no instances of a decoded type", ours[KNOWN].type, 0},
      {"no instances of a described type", ours[DESCRIBED].type, 0},
      {"no instances of a named type", MPI_DOUBLE, 0},
      {"instances of no bytes", contiguous(0, 1), 3},
      {"a new type", column(5, 9, 1), 2},
  };
  int uses = sizeof all / sizeof *all;
  memcpy(after, all, sizeof all);
  /* Pack with these types, so that the preload library decodes and knows them too. */
  packs(after[5].type);
  packs(after[7].type);
  packs(after[9].type);
  for (int receives = 0; receives < 2; receives++) block_in_memory_of_others(receives);
  for (int receives = 0; receives < 2; receives++)
    for (int kind = 0; kind < KINDS; kind++)
      /* Do not move a whole instance (part ALL) of a compared type: after one instance with equal
       * results, the preload library moves the type itself, and the type is no longer compared. */
      for (int part = 0; part < (kind == COMPARED ? ALL : PARTS); part++)
        for (int again = 0; again < AGAINS; again++)
          for (int clone = 0; clone < CLONES && wrong < 20; clone++) {
#ifdef SINCE_6
            /* since6.c, the replacement for Open MPI 6.0, does not see that a convertor was cleaned
             * up. The convertor of the installed release, which does its work, keeps its
             * direction. */
            if (again == TURNED) continue;
#endif
            for (int i = 0; i < uses; i++) trial(receives, kind, part, &after[i], again, clone);
            if (again == CLEANED) trial(receives, kind, part, NULL, again, clone);
          }
  printf("trials %d, served again %d, wrong %d\n", trials, served, wrong);
  MPI_Finalize();
  return 0;
}
