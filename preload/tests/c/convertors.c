/* Tests of the preload library's hook inside Open MPI. A convertor is the object in which Open MPI
 * keeps the state of packing or unpacking one message, and its mover is the function that moves the
 * bytes. The hook replaces Open MPI's movers in convertors by those of the preload library. The
 * mode `movers` moves the same data by both kinds of movers in one process, and compares the
 * results. The other modes test further things that happen only inside Open MPI.
 *
 * Usage:
 *   convertors movers ROUNDS SEED   random types, cuts, positions and clones; both results are
 *                                   compared
 *   convertors planted              wrong offsets of Open MPI's structures leave the hook disabled
 *   convertors messages ROUNDS [alone]
 *                                   pairs of ranks exchange {int, long double complex} and other
 *                                   types, freed early, persistent, with forks; with `alone`, one
 *                                   of the two ranks may lack the preload library
 *   convertors spoiled ROUNDS       the same while the library spoils pieces that it has moved, for
 *                                   DDTC_HOOK=check, which repairs them
 *   convertors counted              a tool's variables count the bytes that the hook moves
 *   convertors pass                 nanoseconds of the preparation of a convertor, without and with
 *                                   the preload library
 *
 * With -DSINCE_6, the first two modes run with a replacement for Open MPI 6.0 (see
 * convertors.h). */
#define _GNU_SOURCE
#include "convertors.h"
#include "flat.h"
#include <complex.h>
#include <mpi.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int wrong;
enum { PIECES = 4 };

/* The packed bytes of the current instances, computed from the type map alone. What both movers
 * pack is compared with these bytes. */
static char *stream;

static int same_lists(const struct iovec *a, const struct iovec *b, uint32_t n, ptrdiff_t apart) {
  for (uint32_t i = 0; i < n; i++) if ((char *)a[i].iov_base + apart != b[i].iov_base || a[i].iov_len != b[i].iov_len) return 0;
  return 1;
}

/* Makes the same call to pack or unpack a list of `n` pieces on two convertors and compares the
 * results: c[0] has Open MPI's mover, and c[1] has the preload library's. If `receives` is true,
 * the call unpacks. Returns whether everything has been moved. Also returns true after a
 * difference. */
static int step(int receives, void *c[2], char *packed[2], size_t *at, const size_t *lengths, int n, const char *what) {
  struct iovec list[2][PIECES];
  uint32_t used[2];
  size_t bytes[2] = {0, 0};
  int done[2];
  for (int all = 0; all < 2; all++) {
    size_t from = *at;
    for (int i = 0; i < n; i++) {
      list[all][i].iov_base = packed[all] + from;
      list[all][i].iov_len = lengths[i];
      from += lengths[i];
    }
    used[all] = (uint32_t)n;
    done[all] = move[receives](c[all], list[all], &used[all], &bytes[all]);
  }
  int same = done[0] == done[1] && used[0] == used[1] && bytes[0] == bytes[1] && flags(c[0]) == flags(c[1]) && word(c[0], MOVED) == word(c[1], MOVED);
  for (uint32_t i = 0; i < used[0] && same; i++) same &= list[0][i].iov_len == list[1][i].iov_len;
  if (!same) {
    printf("%s %s at %zu: %d %d, %u %u entries, %zu %zu bytes, %zu %zu moved, flags %x %x\n", what, receives ? "unpack" : "pack", *at, done[0], done[1],
           used[0], used[1], bytes[0], bytes[1], word(c[0], MOVED), word(c[1], MOVED), flags(c[0]), flags(c[1]));
    wrong++;
    return 1;
  }
  size_t from = *at;
  for (uint32_t i = 0; i < used[1]; i++) {
    if (!receives && word(c[0], MOVER) != word(c[1], MOVER) && !same_bytes(list[1][i].iov_base, stream + from, list[1][i].iov_len, 0x5a)) {
      size_t k = 0;
      while (((char *)list[1][i].iov_base)[k] == stream[from + k]) k++;
      printf("%s: other bytes packed at %zu, %02x is %02x\n", what, from + k, stream[from + k] & 255, ((char *)list[1][i].iov_base)[k] & 255);
      wrong++;
    }
    from += list[1][i].iov_len;
  }
  /* Read the new position from the convertor. It cannot be computed from the lengths: if a piece of
   * the list ended inside an element, the packed bytes of the list are not contiguous. */
  *at = word(c[0], MOVED);
  return done[0];
}

/* Returns the end of an element near `at`, at which a piece of a message may end. Open MPI's
 * receiver is wrong for a piece that ends inside a wide element, since it joins the two halves of
 * the element in memory that is too small for it. */
static size_t cut(void *sender, size_t at) {
  size_t end = at;
  far(0, sender, &end);
  return end;
}

static long served, judged, listed;

/* Copies instances of a type from buffer to buffer, once with Open MPI's function and once with the
 * preload library's, and compares the results. The buffers are separate or overlap. */
static void copies(MPI_Datatype t, int size, int count, const char *memory, size_t span, size_t base) {
  char *to[2], *from = memcpy(malloc(span), memory, span);
  for (int all = 0; all < 2; all++) to[all] = malloc(span);
  /* Copy often enough for the preload library to compile a kernel for copies of this type, and then
   * pass the type to an MPI call of the program. */
  for (long bytes = 0; bytes < 8192; bytes += (long)size * count) copy_of[1](t, count, to[1] + base, from + base);
  MPI_Sendrecv(from + base, 1, t, 0, 0, to[1] + base, 1, t, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  for (int overlap = 0; overlap < 2; overlap++) {
    int codes[2], by = below(64);
    for (int all = 0; all < 2; all++) {
      for (size_t i = 0; i < span; i++) to[all][i] = (char)(0x80 | ((i * 7) & 0x3f));
      codes[all] = copy_of[all](t, count, to[all] + base, overlap ? to[all] + base - by : from + base);
    }
    if (codes[0] != codes[1] || memcmp(to[0], to[1], span)) {
      printf("copies%s by %d: %d and %d, other bytes\n", overlap ? ", overlapping" : "", by, codes[0], codes[1]);
      wrong++;
    }
  }
  free(from);
  for (int all = 0; all < 2; all++) free(to[all]);
}

static void one(int receives) {
  is_padded = 0;
  struct flat map = {0};
  MPI_Datatype t = random_type(1 + below(4), &map);
  MPI_Aint lb, extent, true_lb, true_extent;
  int size, count = 1 + below(below(4) ? 5 : 200);
  MPI_Type_size(t, &size);
  MPI_Type_get_extent(t, &lb, &extent);
  MPI_Type_get_true_extent(t, &true_lb, &true_extent);
  size_t total = (size_t)size * count;
  if (size <= 0 || total > 400000 || extent * count > 4000000 || !is_apart(&map, extent, count)) {
    committed(0, t);
    free(map.bytes);
    free(map.at);
    return;
  }
  MPI_Type_commit(&t);
  /* Use the type in a call of the program, so that the preload library knows the type from now
   * on. */
  char *some = calloc(1, 64 + 2 * labs(true_lb) + true_extent), *to = malloc(size);
  int position = 0;
  MPI_Pack(some + labs(true_lb), 1, t, to, size, &position, MPI_COMM_SELF);
  free(some);
  free(to);
  size_t span = 128 + 2 * labs(true_lb) + true_extent + extent * count;
  char *user[3], *packed[2];
  void *c[2];
  char *memory = malloc(span);
  stream = malloc(total + 4096);
  /* Fill the memory and the stream so that each long double in them is a number, since an MPI
   * library may load and store long doubles as numbers. */
  for (size_t i = 0; i < span; i++) memory[i] = (char)(receives ? 0x5a : 0x80 | (next() & 0x3f));
  for (size_t i = 0; i < total + 4096; i++) stream[i] = (char)(receives ? 0x80 | (next() & 0x3f) : 0x5a);
  for (int all = 0; all < 3; all++) user[all] = memcpy(malloc(span), memory, span);
  size_t base = 64 + labs(true_lb);
  laid_out(&map, receives, user[2] + base, extent, stream, count);
  free(map.bytes);
  free(map.at);
  for (int all = 0; all < 2; all++) {
    packed[all] = malloc(total + 4096);
    memcpy(packed[all], stream, total + 4096);
    if (!receives) memset(packed[all], 0x5a, total + 4096);
    c[all] = create(architecture, 0);
    prepare[all][receives](c[all], t, count, user[all] + base);
  }
  void *sender = create(architecture, 0), *other = create(architecture, 0);
  prepare[0][0](sender, t, count, user[0]);
  prepare[0][receives](other, t, count, user[0]);
  judged++;
  served += word(c[0], MOVER) != word(c[1], MOVER);
  char what[80];
  snprintf(what, sizeof what, "seed %llu", (unsigned long long)state);
  size_t at = 0;
  int before = wrong, skipped = 0;
  if (word(c[0], SIZE) != total || flags(c[0]) != flags(c[1])) { printf("%s: prepared otherwise\n", what); wrong++; }
  /* Each turn moves a list of pieces and then may change the position or the convertor. For dense
   * types (flag NO_OP) no turn is made: the preload library leaves them to Open MPI, and their
   * convertors have no mover that could be called. */
  for (int turn = 0; turn < 3000 && wrong == before && !(flags(c[0]) & NO_OP); turn++) {
    size_t lengths[PIECES], left = total - at;
    int n = below(8) ? 1 : 1 + below(PIECES), big = below(3);
    size_t end = at;
    for (int i = 0; i < n; i++) {
      size_t length = 1 + below(big == 0 ? 40 : big == 1 ? 700 : (int)(left > 3000 ? left / 2 : 3000));
      if (receives) {
        /* In an unpack, cut the piece at the end of an element. The last piece ends at the end of
         * the stream, which is the end of an element too. */
        size_t to = end + length < total ? cut(sender, end + length) : total;
        length = to > end ? to - end : 0;
        if (!length) { n = i; break; }
      }
      if (end + length > total + 4000) { n = i; break; }
      lengths[i] = length;
      end += length;
      if (!receives && n > 1) continue;
    }
    if (n == 0) {
      if (!receives) break;
      /* No piece is left, because the next element is longer than the chosen piece. Move all the
       * rest in one piece instead. */
      lengths[0] = total - at;
      n = 1;
    }
    if (step(receives, c, packed, &at, lengths, n, what)) {
      if (wrong > before || below(3)) break;
      /* Everything has been moved. Start again from the beginning with the same convertors, as Open
       * MPI does for persistent requests. */
      size_t start[2] = {0, 0};
      for (int all = 0; all < 2; all++) place(all, c[all], &start[all]);
      at = skipped = 0;
    }
    int event = below(12);
    if ((event == 0 || event == 1) && word(c[0], MOVER) != word(c[1], MOVER)) {
      size_t to = receives ? cut(sender, next() % total) : next() % total, ends[2] = {to, to};
      /* Place the convertor with the preload library's mover at a random position, either from its
       * current position or, by `far`, from the beginning. */
      (below(2) ? far : place)(1, c[1], &ends[1]);
      /* Bring the convertor with Open MPI's mover to the same position by moving all bytes before
       * that position. When the convertor was placed inside of nested loops instead, Open MPI's own
       * movers went past the end (5.0.11) or crashed (4.1.8) in this program. The reason is not
       * known. */
      /* Prepare Open MPI's convertors again before that. A convertor that was placed often may keep
       * the rest of an element, and then it ends after the right position. */
      prepare[0][receives](other, t, count, user[0]);
      far(0, other, &ends[0]);
      prepare[0][receives](c[0], t, count, user[0] + base);
      struct iovec before_it = {packed[0], ends[0]};
      uint32_t one_more = 1;
      size_t moved = 0;
      if (ends[0]) move[receives](c[0], &before_it, &one_more, &moved);
      if (ends[0] != ends[1] || word(c[0], MOVED) != word(c[1], MOVED)) {
        printf("%s: position %zu ends at %zu and %zu\n", what, to, ends[0], ends[1]);
        wrong++;
      }
      skipped |= ends[0] > at;
      at = ends[0];
    } else if (event == 2 && word(c[0], MOVER) != word(c[1], MOVER)) {
      /* Replace the preload library's convertor by a clone of it. If the clone is made without the
       * stack of its source, it must be placed at the position before it moves bytes. */
      size_t end = at, whole = at;
      if (at < total) far(0, sender, &whole);
      void *clone = create(architecture, 0);
      int with = whole == at && below(2);
      clone_of(c[1], clone, with);
      if (!with) place(1, clone, &end);
      c[1] = clone;
      if (end != at) { printf("%s: a clone ends at %zu, not %zu\n", what, end, at); wrong++; }
    } else if (event == 3 && below(4) == 0 && !receives) {
      struct iovec list[2][8];
      uint32_t n[2] = {8, 8};
      size_t bytes[2];
      int done[2];
      /* List the memory with both convertors. Place them at the beginning before and after that,
       * since Open MPI's own function for lists does not work if the convertor stands inside a
       * loop. */
      for (int all = 0; all < 2; all++) { bytes[all] = 0; place(all, c[all], &bytes[all]); }
      for (int all = 0; all < 2; all++) done[all] = raw[all](c[all], list[all], &n[all], &bytes[all]);
      if (done[0] != done[1] || n[0] != n[1] || bytes[0] != bytes[1] || !same_lists(list[0], list[1], n[0], user[1] - user[0])) {
        printf("%s: lists of %u and %u, %zu and %zu bytes\n", what, n[0], n[1], bytes[0], bytes[1]);
        wrong++;
      }
      if (done[0]) break;
      for (int all = 0; all < 2; all++) { at = skipped = 0; place(all, c[all], &at); }
    } else if (event == 5 && below(4) == 0 && !receives && word(c[0], MOVER) != word(c[1], MOVER) && at < total) {
      /* Let the preload library's convertor list the memory of the next bytes, from a position in
       * the middle of the stream. The listed memory must hold the bytes that come next in the
       * stream. Then move as many bytes with Open MPI's convertor, so that both go on at the same
       * position. */
      struct iovec list[40];
      uint32_t n = 1 + below(40), some = 1;
      size_t bytes = 0, to = at, moved = 0;
      int done = raw[1](c[1], list, &n, &bytes);
      for (uint32_t i = 0; i < n; to += list[i++].iov_len)
        if (!same_bytes(list[i].iov_base, stream + to, list[i].iov_len, 0x5a)) { printf("%s: other memory is listed for %zu\n", what, to); wrong++; break; }
      struct iovec next_bytes = {packed[0] + at, bytes};
      int theirs = move[0](c[0], &next_bytes, &some, &moved);
      if (moved != bytes || to != at + bytes || theirs != done || flags(c[0]) != flags(c[1]) || word(c[0], MOVED) != word(c[1], MOVED)) {
        printf("%s: %zu bytes are listed from %zu, the host moves %zu\n", what, bytes, at, moved);
        wrong++;
      }
      at = word(c[0], MOVED);
      listed++;
      if (done) break;
    } else if (event == 4 && below(8) == 0) {
      /* Place both convertors at the beginning with Open MPI's own function, so that the preload
       * library does not see the call. What the convertors move after that must be right all the
       * same. */
      size_t to = 0;
      for (int all = 0; all < 2; all++) { to = 0; place(0, c[all], &to); }
      at = skipped = 0;
    }
  }
  if (wrong == before) copies(t, size, count, memory, span, base);
  /* Compare the unpacked bytes with those of the type map, unless some bytes were skipped or the
   * end was not reached. */
  if (receives && at == total && !skipped && word(c[0], MOVER) != word(c[1], MOVER) && !same_bytes(user[1], user[2], span, 0x5a)) {
    for (size_t i = 0, k = 0; i < span && k < 20; i++) if (user[1][i] != user[2][i]) { k++; printf("%zu: %02x %02x\n", i, user[1][i] & 255, user[2][i] & 255); }
    printf("%s: other bytes unpacked\n", what);
    wrong++;
  }
  if (wrong > before) { printf("  size %d, count %d, extent %ld, padded %d\n", size, count, (long)extent, is_padded); }
  for (int all = 0; all < 3; all++) free(user[all]);
  for (int all = 0; all < 2; all++) free(packed[all]);
  free(memory);
  free(stream);
  MPI_Type_free(&t);
}

/* The right offsets of the fields of Open MPI's structures, in the order of the preload library's
 * list of offsets. */
enum { OFFSETS = 11, SIZE_OF_ALL = 1, SIZE_THERE = 2 };
#ifdef SINCE_6
static const uint32_t offsets[OFFSETS] = {0x70, 0x50, 0x28, 0x10, 0x18, 0x20, 0x58, 0x38, 0x88, 0x40, 168};
#else
static const uint32_t offsets[OFFSETS] = {0x14, 0x18, 0x20, 0x28, 0x30, 0x38, 0x48, 0x58, 0, 0x78, 168};
#endif

static const char *(*refuses)(const uint32_t *);

static int leaves_disabled(const uint32_t *planted, const char *what, int a, int b) {
  const char *why = refuses(planted);
  if (!why) printf("%s %d, %d: enabled\n", what, a, b);
  return why != NULL;
}

static void planted(void) {
  refuses = (const char *(*)(const uint32_t *))dlsym(RTLD_DEFAULT, "ddtc_hook_refuses");
  if (!refuses) { puts("there is no library of tests"); exit(3); }
  int disabled = 0, tried = 0;
  static const int by[] = {-24, -16, -8, -4, 4, 8, 16, 24, 1, -1, 40};
  printf("right: %s\n", refuses(offsets) ? refuses(offsets) : "enabled");
  for (int field = 0; field < OFFSETS; field++)
    for (int k = 0; k < 11; k++) {
      uint32_t planted[OFFSETS];
      memcpy(planted, offsets, sizeof planted);
      if ((int)planted[field] + by[k] < 0) continue;
      planted[field] += by[k];
      tried++;
      disabled += leaves_disabled(planted, "field by", field, by[k]);
    }
  /* In builds of Open MPI for debugging, objects begin with a longer header, so that offsets are
   * larger. Try such wrong lists: in a list, all offsets are larger by `more`, or all except the
   * last one, which is the offset inside Open MPI's object for a type. */
  for (int more = 8; more <= 40; more += 8)
    for (int some = OFFSETS - 1; some <= OFFSETS; some++) {
      uint32_t planted[OFFSETS];
      for (int field = 0; field < OFFSETS; field++) planted[field] = offsets[field] + (field < some ? more : 0);
      tried++;
      disabled += leaves_disabled(planted, "all by", more, some);
    }
  for (int a = 0; a < OFFSETS - 1; a++)
    for (int b = 0; b < a; b++) {
      uint32_t planted[OFFSETS];
      /* Try lists in which two offsets are exchanged, but not the offsets of a convertor's two
       * sizes, SIZE_OF_ALL and SIZE_THERE. These sizes differ only if sender and receiver have
       * different architectures, and the preload library leaves such convertors to Open MPI. So it
       * does no harm to take one size for the other. */
      if (b == SIZE_OF_ALL && a == SIZE_THERE) continue;
      memcpy(planted, offsets, sizeof planted);
      planted[a] = offsets[b];
      planted[b] = offsets[a];
      tried++;
      disabled += leaves_disabled(planted, "fields for each other", a, b);
    }
  printf("disabled %d of %d\nright: %s\n", disabled, tried, refuses(offsets) ? refuses(offsets) : "enabled");
}

/* Checks which mover a convertor gets when it is prepared for a type that the preload library
 * moves. Convertors for another architecture and convertors with a checksum must keep Open MPI's
 * mover. */
static void kept(void) {
  MPI_Datatype column;
  static double memory[64 * 3];
  char packed[512];
  int position = 0;
  MPI_Type_vector(64, 1, 3, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Pack(memory, 1, column, packed, 512, &position, MPI_COMM_SELF);
  static const int32_t other[3] = {0, 8, 0};
  static const uint32_t with[3] = {0, 0, 0x200000};
  for (int k = 0; k < 3; k++)
    for (int receives = 0; receives < 2; receives++) {
      void *c[2];
      for (int all = 0; all < 2; all++) {
        c[all] = create(architecture ^ other[k], 0);
        set_flags(c[all], flags(c[all]) | with[k]);
        prepare[all][receives](c[all], column, 7, memory);
      }
      int same = word(c[0], MOVER) == word(c[1], MOVER) && flags(c[0]) == flags(c[1]);
      if (same != (k > 0)) { printf("convertor %d, %s: %s mover\n", k, receives ? "receives" : "sends", same ? "the host's" : "another"); wrong++; }
    }
  MPI_Type_free(&column);
}

static int rank, peer;

struct wide { int i; long double complex z; };

static void messages(int rounds, int alone) {
  MPI_Datatype wide, mixed, column, all[3];
  int one[2] = {1, 1}, three[3] = {1, 1, 3};
  MPI_Aint at[2] = {offsetof(struct wide, i), offsetof(struct wide, z)}, places[3] = {0, 8, 16};
  MPI_Datatype of[2] = {MPI_INT, MPI_C_LONG_DOUBLE_COMPLEX}, members[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, t;
  MPI_Type_create_struct(2, one, at, of, &t);
  MPI_Type_create_resized(t, 0, sizeof(struct wide), &wide);
  MPI_Type_free(&t);
  MPI_Type_create_struct(3, three, places, members, &t);
  MPI_Type_create_resized(t, 0, 32, &mixed);
  MPI_Type_free(&t);
  MPI_Type_vector(64, 1, 3, MPI_DOUBLE, &column);
  all[0] = wide; all[1] = mixed; all[2] = column;
  static const int extents[3] = {sizeof(struct wide), 32, (63 * 3 + 1) * 8}, sizes[3] = {36, 24, 512};
  for (int i = 0; i < 3; i++) MPI_Type_commit(&all[i]);
  for (int r = 0; r < rounds; r++) {
    int i = r % 3, count = 1 + below((r % 7 ? 3000 : 600000) / sizes[i]), way = below(5);
    /* Do not send wide elements as a buffered message (way 3) if one of the ranks may lack the
     * preload library. Open MPI sends a buffered message as bytes and may cut it inside an element.
     * Its own receiver then joins the two halves of the element in memory that is too small for
     * it. */
    if (alone && i == 0 && way == 3) way = 0;
    MPI_Datatype used;
    MPI_Type_dup(all[i], &used);
    size_t bytes = (size_t)extents[i] * count;
    char *out = malloc(bytes), *in = malloc(bytes), *expected = malloc(bytes);
    /* Fill the send buffer with values that depend only on the place and the round, so that they
     * are the same on both ranks and this rank knows what it must receive. */
    for (size_t k = 0; k < bytes; k++) { out[k] = (char)(0x80 | ((k * 31 + r) & 0x3f)); in[k] = 7; }
    memset(expected, 7, bytes);
    for (int n = 0; n < count; n++) {
      size_t base = (size_t)n * extents[i];
      if (i == 0) { memcpy(expected + base, out + base, 4); for (int half = 0; half < 2; half++) memcpy(expected + base + 16 + 16 * half, out + base + 16 + 16 * half, 10); }
      if (i == 1) { memcpy(expected + base, out + base, 4); memcpy(expected + base + 8, out + base + 8, 20); }
      if (i == 2) for (int k = 0; k < 64; k++) memcpy(expected + base + 24 * k, out + base + 24 * k, 8);
    }
    MPI_Request q[2];
    if (way == 0) {
      MPI_Sendrecv(out, count, used, peer, r, in, count, used, peer, r, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (way == 1) {
      MPI_Irecv(in, count, used, peer, r, MPI_COMM_WORLD, &q[0]);
      MPI_Isend(out, count, used, peer, r, MPI_COMM_WORLD, &q[1]);
      /* Free the type while the send and the receive may still be moving data. */
      MPI_Type_free(&used);
      MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
      MPI_Type_dup(all[i], &used);
    } else if (way == 2) {
      MPI_Recv_init(in, count, used, peer, r, MPI_COMM_WORLD, &q[0]);
      MPI_Send_init(out, count, used, peer, r, MPI_COMM_WORLD, &q[1]);
      for (int again = 0; again < 3; again++) {
        if (again == 2) memset(in, 7, bytes);
        MPI_Startall(2, q);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
      }
      MPI_Request_free(&q[0]);
      MPI_Request_free(&q[1]);
    } else if (way == 3) {
      int size;
      MPI_Pack_size(count, used, MPI_COMM_WORLD, &size);
      char *attached_memory = malloc(size + MPI_BSEND_OVERHEAD + 1000);
      int attached = size + MPI_BSEND_OVERHEAD + 1000;
      MPI_Buffer_attach(attached_memory, attached);
      MPI_Bsend(out, count, used, peer, r, MPI_COMM_WORLD);
      MPI_Recv(in, count, used, peer, r, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      void *old;
      MPI_Buffer_detach(&old, &attached);
      free(attached_memory);
    } else {
      /* If the round's number is 4 modulo 50, fork a process while the send and the receive may
       * still be moving data. */
      MPI_Irecv(in, count, used, peer, r, MPI_COMM_WORLD, &q[0]);
      MPI_Isend(out, count, used, peer, r, MPI_COMM_WORLD, &q[1]);
      if (r % 50 == 4) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
      }
      MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
    }
    /* The padding of a long double may have any value after a receive, so set it to the expected
     * value before the comparison. */
    if (i == 0) for (int n = 0; n < 2 * count; n++) memset(in + (size_t)(n / 2) * extents[0] + 16 + n % 2 * 16 + 10, 7, 6);
    if (memcmp(in, expected, bytes)) { printf("round %d of type %d, way %d, count %d: wrong bytes\n", r, i, way, count); wrong++; }
    MPI_Type_free(&used);
    free(out); free(in); free(expected);
  }
  for (int i = 0; i < 3; i++) MPI_Type_free(&all[i]);
}

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }

/* Measures how many nanoseconds the preparation of a convertor takes by Open MPI's own function and
 * through that of the preload library, and prints the minimum of each. */
static void pass(void) {
  MPI_Datatype column, t;
  MPI_Type_vector(64, 1, 3, MPI_DOUBLE, &column);
  MPI_Type_vector(64, 1, 5, MPI_DOUBLE, &t);
  MPI_Type_commit(&column);
  static char memory[64 * 24], packed[512];
  void *c = create(architecture, 0);
  const char *names[3] = {"served", "not known", "dense"};
  MPI_Datatype types[3] = {column, t, MPI_DOUBLE};
  int position = 0;
  MPI_Pack(memory, 1, column, packed, 512, &position, MPI_COMM_SELF);
  MPI_Type_commit(&t);
  for (int k = 0; k < 3; k++) {
    prepare[0][0](c, types[k], 1, memory);
    printf("flags %x\n", flags(c));
    double best[2] = {1e9, 1e9};
    for (int round = 0; round < 400; round++) {
      int all = round % 2;
      double start = now();
      for (int i = 0; i < 10000; i++) prepare[all][0](c, types[k], 1, memory);
      double each = (now() - start) / 10000;
      if (each < best[all]) best[all] = each;
    }
    printf("%s: %.1f ns by the host, %.1f through the library\n", names[k], best[0], best[1]);
  }
}

/* Makes calls of MPI_Allgather, in which Open MPI copies each rank's own part from buffer to
 * buffer, and checks what each rank has received. */
static void gathers(void) {
  MPI_Datatype column, wide;
  enum { ROWS = 300 };
  MPI_Type_vector(ROWS, 1, 2, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, ROWS * 16, &wide);
  MPI_Type_commit(&wide);
  double *out = malloc(ROWS * 16), *in = malloc(ROWS * 16 * 4);
  for (int i = 0; i < ROWS * 2; i++) out[i] = rank * 10000 + i;
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < 20; round++) {
    memset(in, 0, ROWS * 16 * 4);
    MPI_Allgather(out, 1, wide, in, 1, wide, MPI_COMM_WORLD);
    for (int i = 0; i < ranks * ROWS * 2; i++) {
      double expected = i % 2 ? 0 : i / (ROWS * 2) * 10000 + i % (ROWS * 2);
      if (in[i] != expected) { printf("round %d: %d is %f\n", round, i, in[i]); wrong++; return; }
    }
  }
  free(out);
  free(in);
  MPI_Type_free(&column);
  MPI_Type_free(&wide);
}

/* Checks that the preload library's variables for tools count the bytes that are packed and
 * unpacked inside Open MPI during messages and gathers: at least 100,000 in either direction. */
static void counted(void) {
  MPI_T_pvar_session session;
  MPI_T_pvar_handle handles[2];
  const char *names[2] = {"ddtc_pack_bytes", "ddtc_unpack_bytes"};
  unsigned long long values[2];
  int provided, count;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_T_pvar_session_create(&session);
  for (int i = 0; i < 2; i++) {
    int index;
    if (MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_AGGREGATE, &index)) { printf("there is no %s\n", names[i]); exit(3); }
    MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count);
    MPI_T_pvar_start(session, handles[i]);
  }
  messages(40, 0);
  gathers();
  for (int i = 0; i < 2; i++) {
    MPI_T_pvar_read(session, handles[i], &values[i]);
    if (values[i] < 100000) { printf("%s %llu\n", names[i], values[i]); wrong++; }
  }
  MPI_T_pvar_session_free(&session);
  MPI_T_finalize();
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  peer = rank ^ 1;
  has_basics();
  const char *mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "messages") || !strcmp(mode, "spoiled")) {
    if (*mode == 's') ((void (*)(uint64_t))named(RTLD_DEFAULT, "ddtc_hook_spoils"))(5);
    messages(atoi(argv[2]), argc > 3);
  } else if (!strcmp(mode, "counted")) {
    counted();
  } else {
    functions();
    if (!strcmp(mode, "planted")) planted();
    if (!strcmp(mode, "pass")) pass();
    if (!strcmp(mode, "movers")) {
      int rounds = atoi(argv[2]);
      kept();
#ifdef SINCE_6
      /* Copy more instances than 32 bits can count. The replacement for Open MPI 6.0, since6.c,
       * must get the whole number. */
      size_t *instances = named(RTLD_DEFAULT, "since_6_instances");
      copy_of[1](NULL, (size_t)5 << 32, NULL, NULL);
      if (*instances != (size_t)5 << 32) { printf("%zu instances\n", *instances); wrong++; }
#endif
      state ^= strtoull(argv[3], 0, 10) * 0x9e3779b97f4a7c15ull;
      for (int i = 0; i < rounds && wrong < 5; i++) one(i % 2);
      printf("served %ld of %ld, listed %ld\n", served, judged, listed);
    }
  }
  int sum = 0;
  MPI_Reduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d\n", sum);
  MPI_Finalize();
  return 0;
}
