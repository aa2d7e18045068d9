/* Makes random datatypes together with their type maps. Test programs compare the bytes that were
 * moved with the type map, which is computed independently of the code that moves bytes. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252ull;

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static int below(int n) { return (int)(next() % (uint64_t)n); }

/* A type map: the sizes of a type's `n` basic elements and their displacements, in bytes and in the
 * order of the map. */
struct flat { int n; int *bytes; MPI_Aint *at; };

static void append(struct flat *to, const struct flat *from, MPI_Aint by) {
  to->bytes = realloc(to->bytes, sizeof(int) * (to->n + from->n));
  to->at = realloc(to->at, sizeof(MPI_Aint) * (to->n + from->n));
  for (int i = 0; i < from->n; i++) {
    to->bytes[to->n] = from->bytes[i];
    to->at[to->n++] = from->at[i] + by;
  }
}

static MPI_Datatype basics[9];
static int is_padded;

/* Appends a random basic type to the type map and returns the type. Sets `is_padded` if the basic
 * type has padding. */
static MPI_Datatype basic(struct flat *f) {
  int i = below(9);
  is_padded |= i >= 7;
  int size;
  MPI_Type_size(basics[i], &size);
  append(f, &(struct flat){1, &size, &(MPI_Aint){0}}, 0);
  return basics[i];
}

static MPI_Datatype committed(MPI_Datatype t, MPI_Datatype used) {
  int n, a, d, how;
  MPI_Type_get_envelope(used, &n, &a, &d, &how);
  if (how != MPI_COMBINER_NAMED) MPI_Type_free(&used);
  return t;
}

static MPI_Datatype random_type(int depth, struct flat *all) {
  if (depth == 0) return basic(all);
  struct flat one = {0};
  MPI_Datatype t, of = random_type(depth - 1, &one);
  MPI_Aint lb, extent, places[12], end;
  int lengths[12], n = 1 + below(12), at = 0;
  MPI_Type_get_extent(of, &lb, &extent);
  int length = 1 + below(4), stride = length + below(3);
  switch (below(6)) {
  case 0:
    MPI_Type_vector(n, length, stride, of, &t);
    for (int i = 0; i < n; i++) for (int k = 0; k < length; k++) append(all, &one, (i * stride + k) * extent);
    break;
  case 1:
    end = length * extent + below(40);
    MPI_Type_create_hvector(n, length, end, of, &t);
    for (int i = 0; i < n; i++) for (int k = 0; k < length; k++) append(all, &one, i * end + k * extent);
    break;
  case 2: {
    int begins[12];
    for (int i = 0; i < n; i++) {
      begins[i] = at += below(3);
      at += lengths[i] = 1 + below(4);
      for (int k = 0; k < lengths[i]; k++) append(all, &one, (begins[i] + k) * extent);
    }
    MPI_Type_indexed(n, lengths, begins, of, &t);
    break;
  }
  case 3:
    end = below(9);
    for (int i = 0; i < n; i++) {
      places[i] = end += below(20);
      end += (lengths[i] = 1 + below(3)) * extent;
      for (int k = 0; k < lengths[i]; k++) append(all, &one, places[i] + k * extent);
    }
    MPI_Type_create_hindexed(n, lengths, places, of, &t);
    break;
  case 4: {
    MPI_Datatype members[12];
    end = below(9);
    n = 1 + below(5);
    for (int i = 0; i < n; i++) {
      struct flat other = {0};
      int same = below(2);
      members[i] = same ? of : basic(&other);
      MPI_Aint l, e;
      MPI_Type_get_extent(members[i], &l, &e);
      places[i] = (end += below(20)) - l;
      end += (lengths[i] = 1 + below(3)) * e;
      for (int k = 0; k < lengths[i]; k++) append(all, same ? &one : &other, places[i] + k * e);
      free(other.bytes);
      free(other.at);
    }
    MPI_Type_create_struct(n, lengths, places, members, &t);
    break;
  }
  default: {
    MPI_Aint true_lb, true_extent;
    MPI_Type_get_true_extent(of, &true_lb, &true_extent);
    MPI_Type_create_resized(of, true_lb - below(9), true_extent + 9 + below(30), &t);
    append(all, &one, 0);
  }
  }
  free(one.bytes);
  free(one.at);
  return committed(t, of);
}

static void has_basics(void) {
  MPI_Datatype all[9] = {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_FLOAT, MPI_DOUBLE, MPI_LONG, MPI_C_DOUBLE_COMPLEX, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX};
  memcpy(basics, all, sizeof all);
}

/* Returns whether `n` bytes are equal to the expected ones. If the type has padded elements (long
 * doubles), the MPI library may copy the padding or leave it as it is. So with such a type, a byte
 * may have any value if its expected value is `before`, which is the value from before the move. */
static int same_bytes(const char *a, const char *expected, size_t n, char before) {
  if (!is_padded) return !memcmp(a, expected, n);
  for (size_t i = 0; i < n; i++) if (a[i] != expected[i] && expected[i] != before) return 0;
  return 1;
}

/* Returns whether no byte of memory belongs to two elements of the instances. In some releases of
 * MPI libraries the bounds of types with wide elements are wrong, so that elements that were placed
 * by these bounds overlap. */
static int is_apart(const struct flat *map, MPI_Aint extent, int count) {
  MPI_Aint low = map->at[0], high = low;
  for (int i = 0; i < map->n; i++) {
    if (map->at[i] < low) low = map->at[i];
    if (map->at[i] + map->bytes[i] > high) high = map->at[i] + map->bytes[i];
  }
  char *seen = calloc(1, high - low);
  int apart = count == 1 || extent >= high - low;
  for (int i = 0; i < map->n && apart; i++)
    for (int k = 0; k < map->bytes[i]; k++) apart &= !seen[map->at[i] - low + k]++;
  free(seen);
  return apart;
}

/* Moves instances between memory and their packed bytes, by the type map: to memory if `receives`
 * is true, and from memory otherwise. */
static void laid_out(const struct flat *map, int receives, char *memory, MPI_Aint extent, char *packed, int count) {
  for (int i = 0; i < count; i++)
    for (int k = 0; k < map->n; k++, packed += map->bytes[k - 1]) {
      char *there = memory + i * extent + map->at[k];
      /* The value of a long double has 10 bytes. The rest of its 16 bytes is padding, which may
       * have any value and is not moved. */
      int step = map->bytes[k] >= 16 && is_padded ? 16 : map->bytes[k];
      for (int from = 0; from < map->bytes[k]; from += step) {
        int n = step == 16 && is_padded ? 10 : step;
        memcpy(receives ? there + from : packed + from, receives ? packed + from : there + from, n);
      }
    }
}
