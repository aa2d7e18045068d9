/* Data layouts of applications, for ddtbench.c. A `struct kind` says how an application's datatypes
 * are made, and has loops that move the same bytes by hand. A `struct row` is a kind with certain
 * sizes and its arrays.
 *
 * The cases and their sizes are those of DDTBench (Schneider, Gerstenberger, Hoefler:
 * Application-oriented ping-pong benchmarking), whose C version makes the same constructor calls.
 * The code was written anew. Rows use MPI_BOTTOM and absolute addresses where DDTBench does.
 *
 * With -DSIMPLE there are other rows instead, which are simple to write by hand: structures,
 * listed blocks and strided blocks of 8 B, in messages of 64 KiB and 1 MiB. */
#ifndef DDTBENCH_H
#define DDTBENCH_H
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AREAS = 9, NUMBERS = 8, PING_PONG = 0, TRANSPOSE = 1 };

struct row;
struct kind {
  const char *name;
  int numbers; /* number of entries of `n` in a row that are used */
  int way;
  /* allocates the arrays of a row, and sets the number of bytes of its message and the buffers */
  void (*open)(struct row *);
  void (*lists)(struct row *, unsigned seed); /* draws new lists of indices; may be null */
  /* creates and commits the types of the sender, t[0], and the receiver, t[1], or one type for
   * both */
  void (*make)(const struct row *, MPI_Datatype t[2]);
  void (*pack)(const struct row *, void *to);
  void (*unpack)(const struct row *, const void *from);
};
struct row {
  const struct kind *kind;
  int n[NUMBERS];
  int areas;
  void *area[AREAS];
  size_t area_bytes[AREAS];
  void *from, *to; /* MPI_BOTTOM if the types have absolute addresses */
  size_t bytes;
  int *list[2];
};

static void *array(struct row *r, size_t bytes) {
  void *p = malloc(bytes);
  if (!p) { fprintf(stderr, "ddtbench: no memory for %zu bytes\n", bytes); MPI_Abort(MPI_COMM_WORLD, 1); }
  r->area[r->areas] = p;
  r->area_bytes[r->areas++] = bytes;
  return p;
}
static MPI_Aint address(const void *p) { MPI_Aint a; MPI_Get_address(p, &a); return a; }

/* Draws `n` different numbers below `m` in random order. */
static void draw(int *list, int n, int m, unsigned seed) {
  int *all = malloc(m * sizeof *all);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < m; i++) all[i] = i;
  for (int i = 0; i < n; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int k = i + (int)((state >> 33) % (unsigned)(m - i)), swapped = all[i];
    all[i] = all[k];
    all[k] = swapped;
  }
  memcpy(list, all, n * sizeof *list);
  free(all);
}

/* Layouts of WRF: the message has one patch, a rectangle of the horizontal plane, of each of four
 * 2-D, three 3-D and two 4-D arrays of floats. A 4-D array has two volumes, of which the patch has
 * the second one. The eight numbers of a row are ims, ime, jms and jme, which are the first and
 * last indices of the arrays, and is, ie, js and je, which are those of the patch. */
struct wrf { int d1, d2, d3, s1, s2, s3, i, j; };
static struct wrf wrf(const struct row *r) {
  const int *n = r->n;
  return (struct wrf){n[1] - n[0] + 1, 65, n[3] - n[2] + 1, n[5] - n[4] + 1, 65, n[7] - n[6] + 1, n[4] - n[0], n[6] - n[2]};
}
static void wrf_open(struct row *r) {
  struct wrf w = wrf(r);
  size_t plane = (size_t)w.d1 * w.d3 * sizeof(float), patch = (size_t)w.s1 * w.s3 * sizeof(float);
  for (int k = 0; k < 9; k++) array(r, k < 4 ? plane : k < 7 ? plane * w.d2 : 2 * plane * w.d2);
  r->bytes = 4 * patch + 5 * patch * w.s2;
  r->from = r->to = MPI_BOTTOM;
}
/* Returns a pointer to the first float of the patch in array `k`. */
static float *wrf_at(const struct row *r, int k) {
  struct wrf w = wrf(r);
  float *p = r->area[k];
  if (k < 4) return p + w.i + w.d1 * w.j;
  p += w.i + w.d1 * w.d2 * w.j;
  return k < 7 ? p : p + w.d1 * w.d2 * w.d3;
}
static void wrf_struct(const struct row *r, MPI_Datatype of[9], int whole, MPI_Datatype t[2]) {
  int lengths[9];
  MPI_Aint at[9];
  for (int k = 0; k < 9; k++) { lengths[k] = 1; at[k] = address(whole ? r->area[k] : (void *)wrf_at(r, k)); }
  MPI_Type_create_struct(9, lengths, at, of, &t[0]);
  MPI_Type_commit(&t[0]);
  t[1] = t[0];
}
static void wrf_vec(const struct row *r, MPI_Datatype t[2]) {
  struct wrf w = wrf(r);
  MPI_Datatype of[9], flat, slab, deep;
  MPI_Aint stride = (MPI_Aint)w.d1 * w.d2 * sizeof(float);
  MPI_Type_vector(w.s3, w.s1, w.d1, MPI_FLOAT, &flat);
  MPI_Type_vector(w.s2, w.s1, w.d1, MPI_FLOAT, &slab);
  MPI_Type_create_hvector(w.s3, 1, stride, slab, &deep);
  MPI_Type_free(&slab);
  for (int k = 0; k < 7; k++) of[k] = k < 4 ? flat : deep;
  for (int k = 7; k < 9; k++) MPI_Type_create_hvector(1, 1, stride * w.d3, deep, &of[k]);
  wrf_struct(r, of, 0, t);
  MPI_Type_free(&flat);
  MPI_Type_free(&deep);
  MPI_Type_free(&of[7]);
  MPI_Type_free(&of[8]);
}
static void wrf_sa(const struct row *r, MPI_Datatype t[2]) {
  struct wrf w = wrf(r);
  MPI_Datatype of[9], flat, deep;
  int flat_sizes[] = {w.d3, w.d1}, flat_part[] = {w.s3, w.s1}, flat_start[] = {w.j, w.i};
  int sizes[] = {2, w.d3, w.d2, w.d1}, part[] = {1, w.s3, w.s2, w.s1}, start[] = {1, w.j, 0, w.i};
  MPI_Type_create_subarray(2, flat_sizes, flat_part, flat_start, MPI_ORDER_C, MPI_FLOAT, &flat);
  MPI_Type_create_subarray(3, sizes + 1, part + 1, start + 1, MPI_ORDER_C, MPI_FLOAT, &deep);
  for (int k = 0; k < 7; k++) of[k] = k < 4 ? flat : deep;
  for (int k = 7; k < 9; k++) MPI_Type_create_subarray(4, sizes, part, start, MPI_ORDER_C, MPI_FLOAT, &of[k]);
  wrf_struct(r, of, 1, t);
  MPI_Type_free(&flat);
  MPI_Type_free(&deep);
  MPI_Type_free(&of[7]);
  MPI_Type_free(&of[8]);
}
static void wrf_pack(const struct row *r, void *to) {
  struct wrf w = wrf(r);
  float *b = to;
  for (int k = 0; k < 9; k++) {
    const float *a = wrf_at(r, k);
    int levels = k < 4 ? 1 : w.s2, far = w.d1 * (k < 4 ? 1 : w.d2);
    for (int z = 0; z < w.s3; z++)
      for (int y = 0; y < levels; y++)
        for (int x = 0; x < w.s1; x++) *b++ = a[z * far + y * w.d1 + x];
  }
}
static void wrf_unpack(const struct row *r, const void *from) {
  struct wrf w = wrf(r);
  const float *b = from;
  for (int k = 0; k < 9; k++) {
    float *a = wrf_at(r, k);
    int levels = k < 4 ? 1 : w.s2, far = w.d1 * (k < 4 ? 1 : w.d2);
    for (int z = 0; z < w.s3; z++)
      for (int y = 0; y < levels; y++)
        for (int x = 0; x < w.s1; x++) a[z * far + y * w.d1 + x] = *b++;
  }
}

/* Layout of MILC: the message has the colour vectors, of 6 floats each, of one half of each of two
 * 3-D boundaries of a 4-D lattice. The four numbers of a row are the sides of the lattice: x, y, z
 * and t. */
static void milc_open(struct row *r) {
  const int *n = r->n;
  r->from = r->to = array(r, (size_t)6 * n[0] * n[1] * n[2] * n[3] * sizeof(float));
  r->bytes = (size_t)2 * n[3] * (n[0] * n[1] / 2) * 6 * sizeof(float);
}
static void milc_make(const struct row *r, MPI_Datatype t[2]) {
  const int *n = r->n;
  MPI_Datatype site, slices;
  int size;
  MPI_Type_contiguous(6, MPI_FLOAT, &site);
  MPI_Type_vector(n[3], n[0] * n[1] / 2, n[0] * n[1] * n[2] / 2, site, &slices);
  MPI_Type_size(site, &size);
  MPI_Type_create_hvector(2, 1, (MPI_Aint)size * n[0] * n[1] * n[2] * n[3] / 2, slices, &t[0]);
  MPI_Type_commit(&t[0]);
  MPI_Type_free(&site);
  MPI_Type_free(&slices);
  t[1] = t[0];
}
static void milc_pack(const struct row *r, void *to) {
  const int *n = r->n;
  int row = 6 * (n[0] * n[1] / 2), far = row * n[2];
  float *b = to;
  for (int half = 0; half < 2; half++)
    for (int k = 0; k < n[3]; k++) {
      const float *a = (const float *)r->area[0] + (size_t)half * far * n[3] + (size_t)k * far;
      for (int x = 0; x < row; x++) *b++ = a[x];
    }
}
static void milc_unpack(const struct row *r, const void *from) {
  const int *n = r->n;
  int row = 6 * (n[0] * n[1] / 2), far = row * n[2];
  const float *b = from;
  for (int half = 0; half < 2; half++)
    for (int k = 0; k < n[3]; k++) {
      float *a = (float *)r->area[0] + (size_t)half * far * n[3] + (size_t)k * far;
      for (int x = 0; x < row; x++) a[x] = *b++;
    }
}

/* A face of an array of doubles: `wide` doubles in a row, `high` rows at distances of `near`, and
 * `deep` groups of rows at distances of `far`. It begins at the double with the index `from` where
 * it is sent, and at the index `to` where it is received. */
struct face { size_t from, to; int wide, high, near, deep, far; };
static void face_pack(const struct row *r, struct face f, void *to) {
  const double *a = (const double *)r->area[0] + f.from;
  double *b = to;
  for (int z = 0; z < f.deep; z++)
    for (int y = 0; y < f.high; y++)
      for (int x = 0; x < f.wide; x++) *b++ = a[(size_t)z * f.far + (size_t)y * f.near + x];
}
static void face_unpack(const struct row *r, struct face f, const void *from) {
  double *a = (double *)r->area[0] + f.to;
  const double *b = from;
  for (int z = 0; z < f.deep; z++)
    for (int y = 0; y < f.high; y++)
      for (int x = 0; x < f.wide; x++) a[(size_t)z * f.far + (size_t)y * f.near + x] = *b++;
}
static void face_open(struct row *r, struct face f, size_t doubles) {
  double *a = array(r, doubles * sizeof *a);
  r->from = a + f.from;
  r->to = a + f.to;
  r->bytes = (size_t)f.wide * f.high * f.deep * sizeof *a;
}
#define FACE_OF(name)                                                                                             \
  static void name##_pack(const struct row *r, void *to) { face_pack(r, name##_face(r), to); }                    \
  static void name##_unpack(const struct row *r, const void *from) { face_unpack(r, name##_face(r), from); }

/* Layouts of NAS LU: five doubles for each point of a plane that has a border of one point. The
 * number of a row is the number of points on a side of the plane, without the border. */
static size_t lu_all(const struct row *r) { return (size_t)5 * (r->n[0] + 2) * (r->n[0] + 2); }
static struct face lu_x_face(const struct row *r) {
  int line = 5 * (r->n[0] + 2);
  return (struct face){5 + (size_t)line * r->n[0], 5, 5 * r->n[0], 1, 0, 1, 0};
}
static struct face lu_y_face(const struct row *r) {
  int line = 5 * (r->n[0] + 2);
  return (struct face){(size_t)5 * r->n[0] + line, line, 5, r->n[0], line, 1, 0};
}
static void lu_x_open(struct row *r) { face_open(r, lu_x_face(r), lu_all(r)); }
static void lu_y_open(struct row *r) { face_open(r, lu_y_face(r), lu_all(r)); }
FACE_OF(lu_x)
FACE_OF(lu_y)
static void lu_x_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Type_contiguous(5 * r->n[0], MPI_DOUBLE, &t[0]);
  MPI_Type_commit(&t[0]);
  t[1] = t[0];
}
static void lu_y_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Datatype point;
  MPI_Type_contiguous(5, MPI_DOUBLE, &point);
  MPI_Type_vector(r->n[0], 1, r->n[0] + 2, point, &t[0]);
  MPI_Type_commit(&t[0]);
  MPI_Type_free(&point);
  t[1] = t[0];
}

/* Layouts of NAS MG: faces of a grid of doubles with a border. The three numbers of a row are the
 * sides of the grid with its border; the index along the first side varies fastest in memory. */
static struct face mg_x_face(const struct row *r) {
  int a = r->n[0], b = r->n[1], c = r->n[2];
  size_t first = (size_t)a * b + a;
  return (struct face){first + a - 2, first + a - 1, 1, b - 2, a, c - 2, a * b};
}
static struct face mg_y_face(const struct row *r) {
  int a = r->n[0], b = r->n[1], c = r->n[2];
  size_t first = (size_t)a * b + 1;
  return (struct face){first + (size_t)a * (b - 2), first + (size_t)a * (b - 1), a - 2, 1, 0, c - 2, a * b};
}
static struct face mg_z_face(const struct row *r) {
  int a = r->n[0], b = r->n[1];
  size_t first = (size_t)a + 1;
  return (struct face){first + (size_t)a * b, first, a - 2, b - 2, a, 1, 0};
}
static size_t mg_all(const struct row *r) { return (size_t)r->n[0] * r->n[1] * r->n[2]; }
static void mg_x_open(struct row *r) { face_open(r, mg_x_face(r), mg_all(r)); }
static void mg_y_open(struct row *r) { face_open(r, mg_y_face(r), mg_all(r)); }
static void mg_z_open(struct row *r) { face_open(r, mg_z_face(r), mg_all(r)); }
FACE_OF(mg_x)
FACE_OF(mg_y)
FACE_OF(mg_z)
static void mg_x_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Datatype line;
  MPI_Type_vector(r->n[1] - 2, 1, r->n[0], MPI_DOUBLE, &line);
  MPI_Type_create_hvector(r->n[2] - 2, 1, (MPI_Aint)r->n[0] * r->n[1] * sizeof(double), line, &t[0]);
  MPI_Type_commit(&t[0]);
  MPI_Type_free(&line);
  t[1] = t[0];
}
static void mg_y_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Type_vector(r->n[2] - 2, r->n[0] - 2, r->n[0] * r->n[1], MPI_DOUBLE, &t[0]);
  MPI_Type_commit(&t[0]);
  t[1] = t[0];
}
static void mg_z_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Type_vector(r->n[1] - 2, r->n[0] - 2, r->n[0], MPI_DOUBLE, &t[0]);
  MPI_Type_commit(&t[0]);
  t[1] = t[0];
}

/* Layouts of LAMMPS: positions and five properties (LAMMPS_full) or three (LAMMPS_atomic) of the
 * atoms in a list, which are received after the rank's own atoms. The two numbers of a row are the
 * number of own atoms and the number of atoms in the list. */
static void lammps_open(struct row *r, int properties) {
  size_t atoms = (size_t)r->n[0] + r->n[1];
  array(r, 3 * atoms * sizeof(double));
  for (int k = 0; k < properties; k++) array(r, atoms * sizeof(double));
  r->bytes = (size_t)r->n[1] * (3 + properties) * sizeof(double);
  r->from = r->to = MPI_BOTTOM;
  r->list[0] = malloc(r->n[1] * sizeof(int));
}
static void lammps_full_open(struct row *r) { lammps_open(r, 5); }
static void lammps_atomic_open(struct row *r) { lammps_open(r, 3); }
static void lammps_lists(struct row *r, unsigned seed) { draw(r->list[0], r->n[1], r->n[0], seed); }
static void lammps_struct(const struct row *r, size_t first, MPI_Datatype three, MPI_Datatype one, MPI_Datatype *t) {
  int lengths[AREAS];
  MPI_Aint at[AREAS];
  MPI_Datatype of[AREAS];
  for (int k = 0; k < r->areas; k++) {
    lengths[k] = 1;
    at[k] = address((double *)r->area[k] + (k ? first : 3 * first));
    of[k] = k ? one : three;
  }
  MPI_Type_create_struct(r->areas, lengths, at, of, t);
  MPI_Type_commit(t);
  MPI_Type_free(&one);
  MPI_Type_free(&three);
}
static void lammps_make(const struct row *r, MPI_Datatype t[2]) {
  int n = r->n[1], *thrice = malloc(n * sizeof *thrice);
  MPI_Datatype one, three;
  MPI_Type_create_indexed_block(n, 1, r->list[0], MPI_DOUBLE, &one);
  for (int k = 0; k < n; k++) thrice[k] = 3 * r->list[0][k];
  MPI_Type_create_indexed_block(n, 3, thrice, MPI_DOUBLE, &three);
  free(thrice);
  lammps_struct(r, 0, three, one, &t[0]);
  MPI_Type_contiguous(n, MPI_DOUBLE, &one);
  MPI_Type_contiguous(3 * n, MPI_DOUBLE, &three);
  lammps_struct(r, r->n[0], three, one, &t[1]);
}
/* Packs the properties of one atom after another, as LAMMPS does. */
static void lammps_pack(const struct row *r, void *to) {
  double *b = to;
  const double *x = r->area[0];
  for (int k = 0; k < r->n[1]; k++) {
    int atom = r->list[0][k];
    for (int i = 0; i < 3; i++) *b++ = x[3 * atom + i];
    for (int i = 1; i < r->areas; i++) *b++ = ((const double *)r->area[i])[atom];
  }
}
static void lammps_unpack(const struct row *r, const void *from) {
  const double *b = from;
  double *x = r->area[0];
  for (int k = 0; k < r->n[1]; k++) {
    int atom = r->n[0] + k;
    for (int i = 0; i < 3; i++) x[3 * atom + i] = *b++;
    for (int i = 1; i < r->areas; i++) ((double *)r->area[i])[atom] = *b++;
  }
}

/* Layout of SPECFEM3D_oc: floats of an array at the indices in a list. The two numbers of a row are
 * the number of floats in the array and the number of indices in the list. */
static void oc_open(struct row *r) {
  r->from = r->to = array(r, (size_t)r->n[0] * sizeof(float));
  r->bytes = (size_t)r->n[1] * sizeof(float);
  r->list[0] = malloc(r->n[1] * sizeof(int));
}
static void oc_lists(struct row *r, unsigned seed) { draw(r->list[0], r->n[1], r->n[0], seed); }
static void oc_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Type_create_indexed_block(r->n[1], 1, r->list[0], MPI_FLOAT, &t[0]);
  MPI_Type_commit(&t[0]);
  t[1] = t[0];
}
static void oc_pack(const struct row *r, void *to) {
  const float *a = r->area[0];
  float *b = to;
  for (int k = 0; k < r->n[1]; k++) b[k] = a[r->list[0][k]];
}
static void oc_unpack(const struct row *r, const void *from) {
  float *a = r->area[0];
  const float *b = from;
  for (int k = 0; k < r->n[1]; k++) a[r->list[0][k]] = b[k];
}

/* Layout of SPECFEM3D_cm: triples of floats of two arrays at the indices in two lists. The four
 * numbers of a row are the numbers of triples in the first array and in the second, and the numbers
 * of indices in the first list and in the second. */
static void cm_open(struct row *r) {
  for (int k = 0; k < 2; k++) { array(r, (size_t)3 * r->n[k] * sizeof(float)); r->list[k] = malloc(r->n[2 + k] * sizeof(int)); }
  r->bytes = (size_t)3 * (r->n[2] + r->n[3]) * sizeof(float);
  r->from = r->to = MPI_BOTTOM;
}
static void cm_lists(struct row *r, unsigned seed) {
  for (int k = 0; k < 2; k++) draw(r->list[k], r->n[2 + k], r->n[k], seed * 2 + k);
}
static void cm_make(const struct row *r, MPI_Datatype t[2]) {
  int lengths[2] = {1, 1}, *thrice = malloc((r->n[2] > r->n[3] ? r->n[2] : r->n[3]) * sizeof *thrice);
  MPI_Aint at[2] = {address(r->area[0]), address(r->area[1])};
  MPI_Datatype of[2];
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < r->n[2 + k]; i++) thrice[i] = 3 * r->list[k][i];
    MPI_Type_create_indexed_block(r->n[2 + k], 3, thrice, MPI_FLOAT, &of[k]);
  }
  MPI_Type_create_struct(2, lengths, at, of, &t[0]);
  MPI_Type_commit(&t[0]);
  MPI_Type_free(&of[0]);
  MPI_Type_free(&of[1]);
  free(thrice);
  t[1] = t[0];
}
static void cm_pack(const struct row *r, void *to) {
  float *b = to;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < r->n[2 + k]; i++) {
      const float *a = (const float *)r->area[k] + 3 * (size_t)r->list[k][i];
      *b++ = a[0], *b++ = a[1], *b++ = a[2];
    }
}
static void cm_unpack(const struct row *r, const void *from) {
  const float *b = from;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < r->n[2 + k]; i++) {
      float *a = (float *)r->area[k] + 3 * (size_t)r->list[k][i];
      a[0] = *b++, a[1] = *b++, a[2] = *b++;
    }
}

/* Layout of SPECFEM3D_mt: every other triple of floats of an array, received without gaps. The
 * number of a row is the number of triples that are sent. */
static void mt_open(struct row *r) {
  r->from = array(r, (size_t)6 * r->n[0] * sizeof(float));
  r->to = array(r, (size_t)3 * r->n[0] * sizeof(float));
  r->bytes = (size_t)3 * r->n[0] * sizeof(float);
}
static void mt_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Datatype triple;
  MPI_Type_contiguous(3, MPI_FLOAT, &triple);
  MPI_Type_vector(r->n[0], 1, 2, triple, &t[0]);
  MPI_Type_commit(&t[0]);
  MPI_Type_free(&triple);
  MPI_Type_contiguous(3 * r->n[0], MPI_FLOAT, &t[1]);
  MPI_Type_commit(&t[1]);
}
static void mt_pack(const struct row *r, void *to) {
  for (int k = 0; k < r->n[0]; k++) memcpy((float *)to + 3 * k, (const float *)r->area[0] + 6 * k, 3 * sizeof(float));
}
/* Nothing has to be unpacked for SPECFEM3D_mt, since the message is received in its final place. */
#define mt_unpack NULL

/* Layout of FFT2: a matrix of complex numbers, distributed over two ranks by rows, which is
 * transposed there and back. The number of a row is the number of rows of the whole matrix. */
enum { RANKS = 2 };
static void fft_open(struct row *r) {
  r->bytes = (size_t)r->n[0] * (r->n[0] / RANKS) * 2 * sizeof(double);
  r->from = array(r, r->bytes);
  r->to = array(r, r->bytes);
}
static void fft_make(const struct row *r, MPI_Datatype t[2]) {
  int n = r->n[0], q = n / RANKS;
  MPI_Datatype complex, lines, column;
  MPI_Type_contiguous(2, MPI_DOUBLE, &complex);
  MPI_Type_vector(q, 1, n, complex, &lines);
  MPI_Type_create_resized(lines, 0, 2 * sizeof(double), &column);
  MPI_Type_contiguous(q, column, &t[1]);
  MPI_Type_commit(&t[1]);
  MPI_Type_free(&lines);
  MPI_Type_free(&column);
  MPI_Type_vector(q, q, n, complex, &lines);
  MPI_Type_create_resized(lines, 0, q * 2 * sizeof(double), &t[0]);
  MPI_Type_commit(&t[0]);
  MPI_Type_free(&lines);
  MPI_Type_free(&complex);
}
static void fft_blocks(int n, const double *matrix, double *to) {
  int q = n / RANKS;
  for (int p = 0; p < RANKS; p++)
    for (int l = 0; l < q; l++, to += 2 * q) memcpy(to, matrix + 2 * ((size_t)l * n + p * q), 2 * q * sizeof(double));
}
static void fft_columns(int n, const double *from, double *matrix) {
  int q = n / RANKS;
  for (int j = 0; j < q; j++)
    for (int i = 0; i < n; i++) memcpy(matrix + 2 * ((size_t)j * n + i), from + 2 * ((size_t)i * q + j), 2 * sizeof(double));
}

#ifdef SIMPLE
/* Structures of an int, a double and three floats. The number of a row is the number of structures,
 * each of which has 24 B of payload. */
struct mixed { int i; double d; float f[3]; };
static void mixed_open(struct row *r) {
  r->from = array(r, r->n[0] * sizeof(struct mixed));
  r->to = array(r, r->n[0] * sizeof(struct mixed));
  r->bytes = (size_t)24 * r->n[0];
}
static void mixed_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Datatype members, one, parts[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
  int lengths[3] = {1, 1, 3};
  MPI_Aint places[3] = {offsetof(struct mixed, i), offsetof(struct mixed, d), offsetof(struct mixed, f)};
  MPI_Type_create_struct(3, lengths, places, parts, &members);
  MPI_Type_create_resized(members, 0, sizeof(struct mixed), &one);
  MPI_Type_contiguous(r->n[0], one, &t[0]);
  MPI_Type_commit(&t[0]);
  t[1] = t[0];
  MPI_Type_free(&members);
  MPI_Type_free(&one);
}
static void mixed_pack(const struct row *r, void *to) {
  const struct mixed *a = r->from;
  char *b = to;
  for (int k = 0; k < r->n[0]; k++, b += 24) memcpy(b, &a[k].i, 4), memcpy(b + 4, &a[k].d, 8), memcpy(b + 12, a[k].f, 12);
}
static void mixed_unpack(const struct row *r, const void *from) {
  struct mixed *a = r->to;
  const char *b = from;
  for (int k = 0; k < r->n[0]; k++, b += 24) memcpy(&a[k].i, b, 4), memcpy(&a[k].d, b + 4, 8), memcpy(a[k].f, b + 12, 12);
}

/* Doubles of an array: every other one, or one of each pair, drawn at random. The number of a row
 * is the number of these doubles. */
static void pairs_open(struct row *r) {
  r->from = array(r, (size_t)2 * r->n[0] * sizeof(double));
  r->to = array(r, (size_t)2 * r->n[0] * sizeof(double));
  r->bytes = r->n[0] * sizeof(double);
}
static void listed_lists(struct row *r, unsigned seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  r->list[0] = realloc(r->list[0], r->n[0] * sizeof(int));
  if (!r->list[0]) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int k = 0; k < r->n[0]; k++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    r->list[0][k] = 2 * k + (int)(state >> 63);
  }
}
static void listed_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Type_create_indexed_block(r->n[0], 1, r->list[0], MPI_DOUBLE, &t[0]);
  MPI_Type_commit(&t[0]);
  t[1] = t[0];
}
static void listed_pack(const struct row *r, void *to) {
  for (int k = 0; k < r->n[0]; k++) ((double *)to)[k] = ((const double *)r->from)[r->list[0][k]];
}
static void listed_unpack(const struct row *r, const void *from) {
  for (int k = 0; k < r->n[0]; k++) ((double *)r->to)[r->list[0][k]] = ((const double *)from)[k];
}
static void strided_make(const struct row *r, MPI_Datatype t[2]) {
  MPI_Type_vector(r->n[0], 1, 2, MPI_DOUBLE, &t[0]);
  MPI_Type_commit(&t[0]);
  t[1] = t[0];
}
static void strided_pack(const struct row *r, void *to) {
  for (int k = 0; k < r->n[0]; k++) ((double *)to)[k] = ((const double *)r->from)[2 * k];
}
static void strided_unpack(const struct row *r, const void *from) {
  for (int k = 0; k < r->n[0]; k++) ((double *)r->to)[2 * k] = ((const double *)from)[k];
}
static const struct kind MIXED = {"structures", 1, PING_PONG, mixed_open, NULL, mixed_make, mixed_pack, mixed_unpack};
static const struct kind LISTED = {"indexed_block", 1, PING_PONG, pairs_open, listed_lists, listed_make, listed_pack, listed_unpack};
static const struct kind STRIDED = {"blocks_8B", 1, PING_PONG, pairs_open, NULL, strided_make, strided_pack, strided_unpack};
static struct row rows[] = {
    {&MIXED, {2731}}, {&LISTED, {8192}}, {&STRIDED, {8192}},
    {&MIXED, {43691}}, {&LISTED, {131072}}, {&STRIDED, {131072}},
};
#else
static const struct kind WRF_VEC_Y = {"WRF_y_vec", 8, PING_PONG, wrf_open, NULL, wrf_vec, wrf_pack, wrf_unpack};
static const struct kind WRF_SA_Y = {"WRF_y_sa", 8, PING_PONG, wrf_open, NULL, wrf_sa, wrf_pack, wrf_unpack};
static const struct kind WRF_VEC_X = {"WRF_x_vec", 8, PING_PONG, wrf_open, NULL, wrf_vec, wrf_pack, wrf_unpack};
static const struct kind WRF_SA_X = {"WRF_x_sa", 8, PING_PONG, wrf_open, NULL, wrf_sa, wrf_pack, wrf_unpack};
static const struct kind MILC = {"MILC_su3_zd", 4, PING_PONG, milc_open, NULL, milc_make, milc_pack, milc_unpack};
static const struct kind LU_X = {"NAS_LU_x", 1, PING_PONG, lu_x_open, NULL, lu_x_make, lu_x_pack, lu_x_unpack};
static const struct kind LU_Y = {"NAS_LU_y", 1, PING_PONG, lu_y_open, NULL, lu_y_make, lu_y_pack, lu_y_unpack};
static const struct kind MG_X = {"NAS_MG_x", 3, PING_PONG, mg_x_open, NULL, mg_x_make, mg_x_pack, mg_x_unpack};
static const struct kind MG_Y = {"NAS_MG_y", 3, PING_PONG, mg_y_open, NULL, mg_y_make, mg_y_pack, mg_y_unpack};
static const struct kind MG_Z = {"NAS_MG_z", 3, PING_PONG, mg_z_open, NULL, mg_z_make, mg_z_pack, mg_z_unpack};
static const struct kind FULL = {"LAMMPS_full", 2, PING_PONG, lammps_full_open, lammps_lists, lammps_make, lammps_pack, lammps_unpack};
static const struct kind ATOMIC = {"LAMMPS_atomic", 2, PING_PONG, lammps_atomic_open, lammps_lists, lammps_make, lammps_pack, lammps_unpack};
static const struct kind OC = {"SPECFEM3D_oc", 2, PING_PONG, oc_open, oc_lists, oc_make, oc_pack, oc_unpack};
static const struct kind CM = {"SPECFEM3D_cm", 4, PING_PONG, cm_open, cm_lists, cm_make, cm_pack, cm_unpack};
static const struct kind MT = {"SPECFEM3D_mt", 1, PING_PONG, mt_open, NULL, mt_make, mt_pack, mt_unpack};
static const struct kind FFT = {"FFT2", 1, TRANSPOSE, fft_open, NULL, fft_make, NULL, NULL};

#define BOTH(a, b, ...) {&a, {__VA_ARGS__}}, {&b, {__VA_ARGS__}}
#define MG(...) {&MG_X, {__VA_ARGS__}}, {&MG_Y, {__VA_ARGS__}}, {&MG_Z, {__VA_ARGS__}}
static struct row rows[] = {
    BOTH(WRF_VEC_Y, WRF_SA_Y, -4, 27, 34, 85, 1, 23, 41, 43),
    BOTH(WRF_VEC_Y, WRF_SA_Y, 8, 34, 21, 61, 12, 30, 28, 30),
    BOTH(WRF_VEC_Y, WRF_SA_Y, 4, 27, 14, 47, 8, 23, 21, 23),
    BOTH(WRF_VEC_Y, WRF_SA_Y, 10, 31, 10, 39, 14, 27, 17, 19),
    BOTH(WRF_VEC_Y, WRF_SA_Y, 4, 22, 4, 27, 8, 18, 11, 13),
    BOTH(WRF_VEC_X, WRF_SA_X, -4, 27, 34, 85, 18, 20, 38, 81),
    BOTH(WRF_VEC_X, WRF_SA_X, 4, 27, 14, 47, 18, 20, 18, 43),
    BOTH(WRF_VEC_X, WRF_SA_X, 4, 22, 4, 27, 13, 15, 8, 23),
    {&MILC, {16, 16, 16, 16}}, {&MILC, {8, 8, 16, 16}}, {&MILC, {8, 8, 8, 16}}, {&MILC, {8, 8, 8, 8}},
    BOTH(LU_X, LU_Y, 12), BOTH(LU_X, LU_Y, 33), BOTH(LU_X, LU_Y, 64), BOTH(LU_X, LU_Y, 102),
    BOTH(LU_X, LU_Y, 162), BOTH(LU_X, LU_Y, 408), BOTH(LU_X, LU_Y, 1020),
    MG(34, 18, 18), MG(130, 66, 66), MG(258, 130, 130), MG(514, 258, 258),
    {&FULL, {3534, 3062}}, {&FULL, {2597, 2243}}, {&FULL, {1907, 1662}},
    {&ATOMIC, {4084, 243}}, {&ATOMIC, {2157, 145}}, {&ATOMIC, {1217, 114}},
    {&OC, {88881, 3225}}, {&OC, {38585, 1897}}, {&OC, {12857, 877}}, {&OC, {3697, 493}},
    {&CM, {834917, 51153, 11797, 3009}}, {&CM, {396849, 22477, 7125, 1729}}, {&CM, {152001, 7209, 3801, 801}}, {&CM, {39929, 1225, 1957, 245}},
    {&MT, {7600}}, {&MT, {6400}}, {&MT, {5600}}, {&MT, {6200}},
    {&FFT, {256}}, {&FFT, {512}}, {&FFT, {768}}, {&FFT, {1024}}, {&FFT, {1536}},
};
#endif
enum { ROWS = sizeof rows / sizeof rows[0] };
#endif
