/* The tool interface under the preload library: the host's variables first, then those of ddtc, before and after MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;
#define OK(condition) do { if (!(condition)) { wrong++; printf("line %d\n", __LINE__); } } while (0)

static int info(int i, char *name, char *description, MPI_Datatype *type) {
  int n = 256, d = 4096, verbosity, bind, scope;
  MPI_T_enum e;
  *description = 0;
  return MPI_T_cvar_get_info(i, name, &n, &verbosity, type, &e, description, &d, &bind, &scope);
}

/* Every variable has an index that is its name's; returns that of ddtc's first. */
static int look(int *ours) {
  int n, host, first = -1, at;
  char name[256], text[4096];
  MPI_Datatype type;
  OK(MPI_T_cvar_get_num(&n) == 0 && PMPI_T_cvar_get_num(&host) == 0);
  OK(n == host + 7);
  *ours = 0;
  for (int i = 0; i < n; i++) {
    if (info(i, name, text, &type)) continue; /* Open MPI hides some of its own. */
    if (!strncmp(name, "ddtc_", 5)) { if (first < 0) first = i; (*ours)++; }
    OK(MPI_T_cvar_get_index(name, &at) == 0);
    if (!strncmp(name, "ddtc_", 5)) OK(at == i && *text);
  }
  OK(MPI_T_cvar_get_index("nobody_has_this", &at) != 0);
  return first;
}

static int packs(void) {
  /* A new layout each time; the caller reads the report. */
  static int n = 5;
  MPI_Datatype t;
  char in[4096] = "abcdefgh", out[4096];
  int at = 0;
  MPI_Type_vector(n++, 1, 2, MPI_CHAR, &t);
  MPI_Type_commit(&t);
  MPI_Pack(in, 1, t, out, sizeof out, &at, MPI_COMM_SELF);
  at = 0;
  MPI_Pack(in, 1, t, out, sizeof out, &at, MPI_COMM_SELF);
  MPI_Type_free(&t);
  return at;
}

int main(int argc, char **argv) {
  int provided, n, ours, before, count, value, at;
  char name[256], text[4096];
  MPI_Datatype type;
  OK(MPI_T_cvar_get_num(&n) != 0);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  before = look(&ours);
  OK(ours == 7 && before >= 0);
  MPI_Init(&argc, &argv);
  OK(look(&ours) == before && ours == 7);
  OK(MPI_T_cvar_get_index("ddtc_mode", &at) == 0 && info(at, name, text, &type) == 0 && !strcmp(name, "ddtc_mode") && type == MPI_INT);
  int room = 5, length = 5;
  char small[6] = "#####";
  OK(MPI_T_cvar_get_info(at, small, &room, NULL, NULL, NULL, NULL, &length, NULL, NULL) == 0 && !strcmp(small, "ddtc") && room == 10 && small[5] == 0);
  /* A category of ours, after the host's. */
  int categories, host, category, cvars = -1, pvars = -1, inner = -1, list[16];
  OK(MPI_T_category_get_num(&categories) == 0 && PMPI_T_category_get_num(&host) == 0 && categories == host + 1);
  OK(MPI_T_category_get_index("ddtc", &category) == 0);
  n = sizeof name;
  OK(MPI_T_category_get_info(category, name, &n, NULL, NULL, &cvars, &pvars, &inner) == 0 && !strcmp(name, "ddtc") && cvars == 7 && !pvars && !inner);
  OK(MPI_T_category_get_cvars(category, 16, list) == 0);
  for (int i = 0; i < 7; i++) OK(info(list[i], name, text, &type) == 0 && !strncmp(name, "ddtc_", 5));
  /* Members of the host's categories keep their names. */
  for (int c = 0; c < host; c++) {
    int members = 0, many = 0;
    MPI_T_category_get_info(c, NULL, NULL, NULL, NULL, &members, NULL, NULL);
    int *shown = calloc(members + 1, sizeof *shown), *theirs = calloc(members + 1, sizeof *theirs);
    MPI_T_category_get_cvars(c, members, shown);
    PMPI_T_category_get_cvars(c, members, theirs);
    for (int i = 0; i < members; i++) {
      char a[256] = "", b[256] = "";
      int la = sizeof a, lb = sizeof b;
      MPI_T_cvar_get_info(shown[i], a, &la, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
      PMPI_T_cvar_get_info(theirs[i], b, &lb, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
      many += !strcmp(a, b);
    }
    OK(many == members);
    free(shown); free(theirs);
  }
  /* Handles: ours and the host's. */
  MPI_T_cvar_handle h;
  OK(MPI_T_cvar_handle_alloc(at, NULL, &h, &count) == 0 && count == 1);
  OK(MPI_T_cvar_read(h, &value) == 0 && value == 3);
  packs();
  value = 0;
  OK(MPI_T_cvar_write(h, &value) == 0 && MPI_T_cvar_read(h, &value) == 0 && value == 0);
  packs();
  packs();
  value = 99;
  OK(MPI_T_cvar_write(h, &value) != 0);
  value = 3;
  OK(MPI_T_cvar_write(h, &value) == 0);
  packs();
  OK(MPI_T_cvar_handle_free(&h) == 0 && h == MPI_T_CVAR_HANDLE_NULL);
  for (int i = 0; i < 3; i++) {
    char value[4096];
    if (info(i, name, text, &type) || MPI_T_cvar_handle_alloc(i, NULL, &h, &count) || count > 16) continue;
    OK(MPI_T_cvar_read(h, value) == 0 && MPI_T_cvar_handle_free(&h) == 0);
  }
  MPI_Finalize();
  MPI_T_finalize();
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
