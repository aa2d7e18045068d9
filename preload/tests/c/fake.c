/* A small MPI library with MPICH's handles, whose only derived types are vectors of int. It writes
 * a header of 4 bytes before the data that it packs. With -DPROGRAM, the file is the program that
 * uses the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Handle;
#ifdef PROGRAM
int MPI_Type_vector(int, int, int, Handle, Handle *);
int MPI_Type_commit(Handle *);
int MPI_Pack(const void *, int, Handle, void *, int, int *, Handle);
int MPI_T_cvar_get_num(int *);
int MPI_T_pvar_get_num(int *);
int MPI_T_category_get_num(int *);
int MPI_T_enum_get_info(void *, int *, char *, int *);
int MPI_Finalize(void);
int main(void) {
  int cvars = 0, pvars = 0, categories = 0, items = 0;
  MPI_T_cvar_get_num(&cvars);
  MPI_T_pvar_get_num(&pvars);
  MPI_T_category_get_num(&categories);
  MPI_T_enum_get_info(&items, &items, 0, 0);
  printf("tool %d %d %d %d ", cvars, pvars, categories, items);
  int user[100], packed[100], wrong = 0;
  for (int i = 0; i < 100; i++) user[i] = i;
  Handle t;
  MPI_Type_vector(5, 1, 3, 0x4c000405, &t);
  MPI_Type_commit(&t);
  for (int k = 0; k < 5; k++) {
    int at = 0;
    memset(packed, 0, sizeof packed);
    MPI_Pack(user, 1, t, packed, sizeof packed, &at, 0x44000000);
    if (at != 24 || packed[0] != 0x4d50) wrong++;
    for (int i = 0; i < 5; i++) if (packed[1 + i] != 3 * i) wrong++;
  }
  MPI_Finalize();
  printf("wrong %d\n", wrong);
  return wrong;
}
#else
#define BOTH(ret, name, args) ret P##name args __attribute__((visibility("default"))); \
  ret name args __attribute__((weak, alias("P" #name))); ret P##name args
static struct { int n, b, s; void *attr; } types[100];
static int made;
static int at(Handle t) { return t & 0xffff; }

BOTH(int, MPI_Type_vector, (int n, int b, int s, Handle o, Handle *t)) {
  (void)o; made++; types[made].n = n; types[made].b = b; types[made].s = s; types[made].attr = 0;
  *t = (Handle)(0x8c000000u | made);
  return 0;
}
BOTH(int, MPI_Type_commit, (Handle *t)) { (void)t; return 0; }
BOTH(int, MPI_Type_free, (Handle *t)) { *t = 0x0c000000; return 0; }
BOTH(int, MPI_Type_size, (Handle t, int *n)) { *n = t == 0x4c000405 ? 4 : 4 * types[at(t)].n * types[at(t)].b; return 0; }
BOTH(int, MPI_Type_get_extent, (Handle t, long *lb, long *e)) {
  *lb = 0;
  *e = t == 0x4c000405 ? 4 : 4 * ((types[at(t)].n - 1) * types[at(t)].s + types[at(t)].b);
  return 0;
}
BOTH(int, MPI_Type_get_envelope, (Handle t, int *i, int *a, int *d, int *c)) {
  int named = t == 0x4c000405;
  *i = named ? 0 : 3; *a = 0; *d = named ? 0 : 1; *c = named ? 1 : 4;
  return 0;
}
BOTH(int, MPI_Type_get_contents, (Handle t, int ni, int na, int nd, int *i, long *a, Handle *d)) {
  (void)ni; (void)na; (void)nd; (void)a;
  i[0] = types[at(t)].n; i[1] = types[at(t)].b; i[2] = types[at(t)].s; d[0] = 0x4c000405;
  return 0;
}
BOTH(int, MPI_Type_create_keyval, (void *c, void *d, int *k, void *e)) { (void)c; (void)d; (void)e; *k = 1; return 0; }
BOTH(int, MPI_Type_set_attr, (Handle t, int k, void *v)) { (void)k; types[at(t)].attr = v; return 0; }
BOTH(int, MPI_Type_get_attr, (Handle t, int k, void **v, int *f)) { (void)k; *v = types[at(t)].attr; *f = *v != 0; return 0; }
BOTH(int, MPI_Comm_create_keyval, (void *c, void *d, int *k, void *e)) { (void)c; (void)d; (void)e; *k = 1; return 0; }
BOTH(int, MPI_Comm_set_attr, (Handle t, int k, void *v)) { (void)t; (void)k; (void)v; return 0; }
BOTH(int, MPI_Pack, (const int *u, int count, Handle t, char *p, int size, int *pos, Handle comm)) {
  (void)size; (void)comm;
  int mark = 0x4d50, i = at(t);
  memcpy(p + *pos, &mark, 4); *pos += 4;
  for (int c = 0; c < count; c++)
    for (int k = 0; k < types[i].n; k++) { memcpy(p + *pos, u + k * types[i].s, 4 * types[i].b); *pos += 4 * types[i].b; }
  return 0;
}
BOTH(int, MPI_Unpack, (const char *p, int size, int *pos, int *u, int count, Handle t, Handle comm)) {
  (void)p; (void)size; (void)pos; (void)u; (void)count; (void)t; (void)comm;
  return 0;
}
BOTH(int, MPI_T_cvar_get_num, (int *n)) { *n = 3; return 0; }
BOTH(int, MPI_T_pvar_get_num, (int *n)) { *n = 4; return 0; }
BOTH(int, MPI_T_category_get_num, (int *n)) { *n = 5; return 0; }
BOTH(int, MPI_T_enum_get_info, (void *e, int *n, char *name, int *len)) { (void)e; (void)name; (void)len; *n = 6; return 0; }
BOTH(int, MPI_Finalize, (void)) { return 0; }
/* The preload library recognizes MPICH's ABI by this function. */
int MPIR_Dup_fn(void) { return 0; }
BOTH(int, MPI_Get_library_version, (char *text, int *n)) {
  strcpy(text, getenv("FAKE_VERSION"));
  *n = strlen(text);
  return 0;
}
#endif
