/* Tests MPI's tool interface (MPI_T) under the preload library: the variables of the MPI library
 * and those of ddtc, before and after MPI_Init. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;
#define OK(condition) do { if (!(condition)) { wrong++; printf("line %d\n", __LINE__); } } while (0)

enum { CONTROLS = 10, MEASURES = 16 };

static int info(int i, char *name, char *description, MPI_Datatype *type) {
  int n = 256, d = 4096, verbosity, bind, scope;
  MPI_T_enum e;
  *description = 0;
  return MPI_T_cvar_get_info(i, name, &n, &verbosity, type, &e, description, &d, &bind, &scope);
}

/* Checks that the index of every control variable is found by the variable's name. Returns the
 * index of the first variable of ddtc, and sets `ours` to the number of ddtc's variables. */
static int look(int *ours) {
  int n, host, first = -1, at;
  char name[256], text[4096];
  MPI_Datatype type;
  OK(MPI_T_cvar_get_num(&n) == 0 && PMPI_T_cvar_get_num(&host) == 0);
  OK(n == host + CONTROLS);
  *ours = 0;
  for (int i = 0; i < n; i++) {
    if (info(i, name, text, &type)) continue; /* Open MPI hides some of its own variables. */
    if (!strncmp(name, "ddtc_", 5)) { if (first < 0) first = i; (*ours)++; }
    OK(MPI_T_cvar_get_index(name, &at) == 0);
    if (!strncmp(name, "ddtc_", 5)) OK(at == i && *text);
  }
  OK(MPI_T_cvar_get_index("nobody_has_this", &at) != 0);
  return first;
}

/* Checks that ddtc's control variables with enumerations refuse values that are no items of the
 * enumeration, and then keep the value from before. Some tools write 123 to every variable of type
 * int. */
static void strangers(int first, int ours) {
  int enumerated = 0;
  for (int i = first; i < first + ours; i++) {
    char name[256];
    int n = sizeof name, verbosity, bind, scope, count, before = -1, after = -2;
    MPI_Datatype type;
    MPI_T_enum items;
    MPI_T_cvar_handle h;
    OK(MPI_T_cvar_get_info(i, name, &n, &verbosity, &type, &items, NULL, NULL, &bind, &scope) == 0);
    if (items == MPI_T_ENUM_NULL) continue;
    enumerated++;
    OK(type == MPI_INT && MPI_T_cvar_handle_alloc(i, NULL, &h, &count) == 0 && MPI_T_cvar_read(h, &before) == 0);
    static const int values[] = {123, -1};
    for (int k = 0; k < 2; k++) {
      OK(MPI_T_cvar_write(h, &values[k]) == MPI_T_ERR_INVALID);
      OK(MPI_T_cvar_read(h, &after) == 0 && after == before);
    }
    OK(MPI_T_cvar_write(h, &before) == 0 && MPI_T_cvar_handle_free(&h) == 0);
  }
  OK(enumerated == 4);
}

static int packs(void) {
  /* Use a new layout in each call of this function, since the caller of this program reads what the
   * preload library's report says about them. */
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

/* Checks that the performance variables of the MPI library keep their order, and that those of ddtc
 * are found by their names and have the right properties. Returns the index of ddtc's first one. */
static int look_measures(int *ours) {
  int n, host, first = -1, at, theirs = 0;
  OK(MPI_T_pvar_get_num(&n) == 0 && PMPI_T_pvar_get_num(&host) == 0 && n == host + MEASURES);
  *ours = 0;
  for (int i = 0; i < n; i++) {
    char name[256] = "", text[4096] = "", unmodified[256] = "";
    int ln = sizeof name, lt = sizeof text, lb = sizeof unmodified, verbosity, class, bind, readonly, continuous, atomic, same;
    MPI_Datatype type;
    MPI_T_enum e;
    int code = MPI_T_pvar_get_info(i, name, &ln, &verbosity, &class, &type, &e, text, &lt, &bind, &readonly, &continuous, &atomic);
    if (strncmp(name, "ddtc_", 5)) {
      /* This is a variable of the MPI library. Such variables must come in the MPI library's own
       * order. */
      OK(code == PMPI_T_pvar_get_info(theirs, unmodified, &lb, NULL, &same, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
      OK(code || (!strcmp(name, unmodified) && class == same));
      theirs++;
      continue;
    }
    int level = class == MPI_T_PVAR_CLASS_LEVEL;
    if (first < 0) first = i;
    (*ours)++;
    OK(code == 0 && *text && ln == (int)strlen(name) + 1 && bind == MPI_T_BIND_NO_OBJECT && verbosity == MPI_T_VERBOSITY_USER_BASIC);
    OK(e == MPI_T_ENUM_NULL && readonly == level && continuous == level && atomic == !level);
    OK(type == (class == MPI_T_PVAR_CLASS_TIMER ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG));
    OK(level || class == MPI_T_PVAR_CLASS_COUNTER || class == MPI_T_PVAR_CLASS_AGGREGATE || class == MPI_T_PVAR_CLASS_TIMER);
    OK(MPI_T_pvar_get_index(name, class, &at) == 0 && at == i);
    OK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_STATE, &at) != 0);
  }
  OK(theirs == host);
  OK(MPI_T_pvar_get_index("nobody_has_this", MPI_T_PVAR_CLASS_COUNTER, &at) != 0);
  return first;
}

static MPI_T_pvar_handle measure(MPI_T_pvar_session session, const char *name, int class) {
  MPI_T_pvar_handle h = MPI_T_PVAR_HANDLE_NULL;
  int at, count = 0;
  OK(MPI_T_pvar_get_index(name, class, &at) == 0);
  OK(MPI_T_pvar_handle_alloc(session, at, NULL, &h, &count) == 0 && count == 1 && h != MPI_T_PVAR_HANDLE_NULL);
  return h;
}

static unsigned long long reads(MPI_T_pvar_session session, MPI_T_pvar_handle h) {
  unsigned long long value = -1;
  OK(MPI_T_pvar_read(session, h, &value) == 0);
  return value;
}

/* Tests sessions of performance variables, with handles of ddtc's variables and of the MPI
 * library's. With -DONE_BY_ONE, no call is made for all handles of a session at once. */
#ifdef ONE_BY_ONE
#define ALL(call, s, a, b) (call(s, a) ? -1 : call(s, b))
#else
#define ALL(call, s, a, b) call(s, MPI_T_PVAR_ALL_HANDLES)
#endif
static void measures(void) {
  MPI_T_pvar_session s, other;
  MPI_T_pvar_handle calls, bytes, level, timer, commits, stale;
  MPI_Datatype t;
  char in[64] = "abcdefgh", out[64];
  unsigned long long value;
  double seconds;
  int at, n, count;
#define PACK(times) for (int i = 0; i < (times); i++) { at = 0; MPI_Pack(in, 2, t, out, sizeof out, &at, MPI_COMM_SELF); }
  MPI_Type_vector(3, 1, 2, MPI_CHAR, &t);
  MPI_Type_commit(&t);
  PACK(2)
  OK(MPI_T_pvar_session_create(&s) == 0 && MPI_T_pvar_session_create(&other) == 0);
  calls = measure(s, "ddtc_pack_calls", MPI_T_PVAR_CLASS_COUNTER);
  bytes = measure(s, "ddtc_pack_bytes", MPI_T_PVAR_CLASS_AGGREGATE);
  level = measure(s, "ddtc_code_bytes", MPI_T_PVAR_CLASS_LEVEL);
  timer = measure(s, "ddtc_compile_time", MPI_T_PVAR_CLASS_TIMER);
  commits = measure(other, "ddtc_commits", MPI_T_PVAR_CLASS_COUNTER);
  PACK(1)
  OK(reads(s, calls) == 0 && reads(s, level) > 0);
  OK(MPI_T_pvar_start(s, calls) == 0 && MPI_T_pvar_start(other, commits) == 0);
  PACK(3)
  OK(reads(s, calls) == 3 && reads(s, bytes) == 0);
  OK(MPI_T_pvar_stop(s, calls) == 0);
  PACK(1)
  OK(reads(s, calls) == 3);
  value = 40;
  OK(MPI_T_pvar_write(s, calls, &value) == 0 && reads(s, calls) == 40);
  /* Start, reset and stop all handles of the session at once: those of ddtc, and whatever handles
   * of the MPI library there are. */
  OK(ALL(MPI_T_pvar_start, s, calls, bytes) == 0);
  PACK(2)
  OK(reads(s, calls) == 42 && reads(s, bytes) == 12);
  OK(ALL(MPI_T_pvar_reset, s, calls, bytes) == 0 && reads(s, calls) == 0 && reads(s, bytes) == 0);
  PACK(1)
  OK(ALL(MPI_T_pvar_stop, s, calls, bytes) == 0);
  PACK(1)
  OK(MPI_T_pvar_readreset(s, calls, &value) == 0 && value == 1 && reads(s, calls) == 0);
  OK(MPI_T_pvar_reset(s, bytes) == 0 && reads(s, bytes) == 0);
  seconds = 1.5;
  OK(MPI_T_pvar_write(s, timer, &seconds) == 0 && MPI_T_pvar_read(s, timer, &seconds) == 0 && seconds == 1.5);
  OK(reads(other, commits) == 0);
  packs();
  OK(reads(other, commits) == 1);
  /* Check that wrong calls are refused with the right error codes: calls that a level variable does
   * not permit, and calls with a handle of another session or a null argument. */
  OK(MPI_T_pvar_start(s, level) == MPI_T_ERR_PVAR_NO_STARTSTOP && MPI_T_pvar_stop(s, level) == MPI_T_ERR_PVAR_NO_STARTSTOP);
  OK(MPI_T_pvar_reset(s, level) == MPI_T_ERR_PVAR_NO_WRITE && MPI_T_pvar_readreset(s, level, &value) == MPI_T_ERR_PVAR_NO_WRITE);
  OK(MPI_T_pvar_write(s, level, &value) == MPI_T_ERR_PVAR_NO_WRITE);
  OK(MPI_T_pvar_read(s, commits, &value) == MPI_T_ERR_INVALID_HANDLE && MPI_T_pvar_start(s, commits) == MPI_T_ERR_INVALID_HANDLE);
  OK(MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, calls, &value) == MPI_T_ERR_INVALID_SESSION);
  OK(MPI_T_pvar_read(s, calls, NULL) == MPI_T_ERR_INVALID);
  stale = calls;
  OK(MPI_T_pvar_handle_free(s, &calls) == 0 && calls == MPI_T_PVAR_HANDLE_NULL);
  OK(MPI_T_pvar_read(s, stale, &value) == MPI_T_ERR_INVALID_HANDLE && MPI_T_pvar_handle_free(s, &stale) == MPI_T_ERR_INVALID_HANDLE);
  /* Read some variables of the MPI library, by the indices that the program sees. */
  int read = 0;
  PMPI_T_pvar_get_num(&n);
  printf("host %d\n", n);
  MPI_T_pvar_get_num(&n);
  for (int i = 0; i < n && read < 8; i++) {
    char name[256] = "", value[8192];
    int ln = sizeof name, bind, continuous;
    MPI_T_pvar_handle h;
    if (MPI_T_pvar_get_info(i, name, &ln, NULL, NULL, NULL, NULL, NULL, NULL, &bind, NULL, &continuous, NULL)) continue;
    if (!strncmp(name, "ddtc_", 5) || bind != MPI_T_BIND_NO_OBJECT) continue;
    if (MPI_T_pvar_handle_alloc(s, i, NULL, &h, &count) || count > 64) continue;
    if (!continuous) MPI_T_pvar_start(s, h);
    OK(MPI_T_pvar_read(s, h, value) == PMPI_T_pvar_read(s, h, value));
    OK(MPI_T_pvar_handle_free(s, &h) == 0 && h == MPI_T_PVAR_HANDLE_NULL);
    read++;
  }
  printf("read %d\n", read);
  /* Check that the handles of a session end with the session, which the MPI library frees. */
  OK(MPI_T_pvar_session_free(&s) == 0 && s == MPI_T_PVAR_SESSION_NULL);
  OK(reads(other, commits) >= 1 && MPI_T_pvar_session_free(&other) == 0);
  MPI_T_pvar_session_create(&s);
  OK(MPI_T_pvar_read(s, commits, &value) == MPI_T_ERR_INVALID_HANDLE && MPI_T_pvar_read(s, bytes, &value) == MPI_T_ERR_INVALID_HANDLE);
  OK(MPI_T_pvar_session_free(&s) == 0);
  MPI_Type_free(&t);
}

/* Checks that the values of ddtc's enumerations have names, and that the MPI library's own
 * enumerations are passed on. */
static void enumerations(void) {
  static const char *modes[] = {"off", "interpret", "lazy", "commit"};
  int n, at, named = 0, theirs = 0;
  MPI_T_cvar_get_num(&n);
  for (int i = 0; i < n; i++) {
    char name[256] = "", kind[256] = "", unmodified[256] = "", item[256] = "";
    int ln = sizeof name, lk = sizeof kind, lb = sizeof unmodified, li = sizeof item, items = 0, same = 0, value = -1;
    MPI_T_enum e = MPI_T_ENUM_NULL;
    if (MPI_T_cvar_get_info(i, name, &ln, NULL, NULL, &e, NULL, NULL, NULL, NULL) || e == MPI_T_ENUM_NULL) continue;
    if (strncmp(name, "ddtc_", 5)) {
      theirs++;
      OK(MPI_T_enum_get_info(e, &items, kind, &lk) == PMPI_T_enum_get_info(e, &same, unmodified, &lb) && items == same && !strcmp(kind, unmodified));
      continue;
    }
    named++;
    OK(MPI_T_enum_get_info(e, &items, kind, &lk) == 0 && items >= 2 && !strncmp(kind, "ddtc_", 5) && lk == (int)strlen(kind) + 1);
    OK(MPI_T_enum_get_item(e, items, &value, item, &li) == MPI_T_ERR_INVALID_INDEX && MPI_T_enum_get_item(e, -1, &value, item, &li) == MPI_T_ERR_INVALID_INDEX);
    for (int k = 0; k < items; k++) {
      li = sizeof item;
      OK(MPI_T_enum_get_item(e, k, &value, item, &li) == 0 && value == k && *item);
      if (!strcmp(name, "ddtc_mode")) OK(items == 4 && !strcmp(item, modes[k]));
    }
  }
  OK(named == 4 && MPI_T_cvar_get_index("ddtc_mode", &at) == 0);
  printf("enumerations %d\n", theirs);
}

/* Checks that the last MPI_T_finalize ends the sessions and handles that the program has left.
 * MPI_Init is not called, since MPI libraries crash in MPI_Init or at exit if a program begins in
 * this way. */
static int again(void) {
  int provided;
  unsigned long long value;
  MPI_T_pvar_session s;
  MPI_T_pvar_handle h;
  for (int i = 0; i < 3; i++) {
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&s);
    h = measure(s, "ddtc_pack_calls", MPI_T_PVAR_CLASS_COUNTER);
    OK(MPI_T_finalize() == 0 && reads(s, h) == 0);
    OK(MPI_T_finalize() == 0 && MPI_T_pvar_read(s, h, &value) == MPI_T_ERR_NOT_INITIALIZED);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    OK(MPI_T_pvar_read(s, h, &value) == MPI_T_ERR_INVALID_SESSION);
    MPI_T_finalize();
  }
  printf("wrong %d\n", wrong);
  return wrong != 0;
}

/* Creates and frees sessions in one of several threads. MPI libraries use the addresses of sessions
 * again, and each handle must stay with its own session. */
static void *hammer(void *failed) {
  int *bad = failed, at, count;
  MPI_T_pvar_get_index("ddtc_pack_bytes", MPI_T_PVAR_CLASS_AGGREGATE, &at);
  for (int i = 1; i <= 2000; i++) {
    MPI_T_pvar_session s;
    MPI_T_pvar_handle h[3];
    unsigned long long value, mark = (size_t)failed + i;
    *bad += MPI_T_pvar_session_create(&s) != 0;
    for (int k = 0; k < 3; k++) *bad += MPI_T_pvar_handle_alloc(s, at, NULL, &h[k], &count) != 0;
    *bad += MPI_T_pvar_write(s, h[1], &mark) != 0;
    *bad += MPI_T_pvar_handle_free(s, &h[2]) != 0;
    *bad += MPI_T_pvar_read(s, h[1], &value) != 0 || value != mark;
    *bad += MPI_T_pvar_read(s, h[0], &value) != 0 || value != 0;
    *bad += MPI_T_pvar_session_free(&s) != 0;
  }
  return NULL;
}

static void threads(void) {
  pthread_t thread[4];
  int bad[4] = {0};
  for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, hammer, &bad[i]);
  for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < 4; i++) OK(bad[i] == 0);
}

int main(int argc, char **argv) {
  int provided, n, ours, before, measures_before, count, value, at;
  char name[256], text[4096];
  MPI_Datatype type;
  if (argc > 1 && !strcmp(argv[1], "again")) return again();
  if (argc > 1) {
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    OK(provided == MPI_THREAD_MULTIPLE);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    threads();
    MPI_T_finalize();
    MPI_Finalize();
    printf("wrong %d\n", wrong);
    return wrong != 0;
  }
  OK(MPI_T_cvar_get_num(&n) != 0 && MPI_T_pvar_get_num(&n) != 0);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  before = look(&ours);
  OK(ours == CONTROLS && before >= 0);
  measures_before = look_measures(&ours);
  OK(ours == MEASURES && measures_before >= 0);
  enumerations();
  MPI_Init(&argc, &argv);
  OK(look_measures(&ours) == measures_before && ours == MEASURES);
  OK(look(&ours) == before && ours == CONTROLS);
  OK(MPI_T_cvar_get_index("ddtc_mode", &at) == 0 && info(at, name, text, &type) == 0 && !strcmp(name, "ddtc_mode") && type == MPI_INT);
  int room = 5, length = 5;
  char small[6] = "#####";
  OK(MPI_T_cvar_get_info(at, small, &room, NULL, NULL, NULL, NULL, &length, NULL, NULL) == 0 && !strcmp(small, "ddtc") && room == 10 && small[5] == 0);
  /* Check the category of ddtc, which comes after the categories of the MPI library. */
  int categories, host, category, cvars = -1, pvars = -1, inner = -1, list[32];
  OK(MPI_T_category_get_num(&categories) == 0 && PMPI_T_category_get_num(&host) == 0 && categories == host + 1);
  OK(MPI_T_category_get_index("ddtc", &category) == 0);
  n = sizeof name;
  OK(MPI_T_category_get_info(category, name, &n, NULL, NULL, &cvars, &pvars, &inner) == 0 && !strcmp(name, "ddtc") && cvars == CONTROLS && pvars == MEASURES && !inner);
  OK(MPI_T_category_get_cvars(category, 32, list) == 0);
  for (int i = 0; i < CONTROLS; i++) OK(info(list[i], name, text, &type) == 0 && !strncmp(name, "ddtc_", 5));
  for (int i = 0; i < 32; i++) list[i] = -1;
  OK(MPI_T_category_get_pvars(category, 32, list) == 0 && list[MEASURES - 1] >= 0 && list[MEASURES] == -1);
  for (int i = 0; i < MEASURES; i++) {
    n = sizeof name;
    OK(MPI_T_pvar_get_info(list[i], name, &n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == 0 && !strncmp(name, "ddtc_", 5));
  }
  list[3] = -1;
  OK(MPI_T_category_get_pvars(category, 3, list) == 0 && list[2] >= 0 && list[3] == -1);
  /* Check that the members of the MPI library's categories keep their names. */
  for (int c = 0; c < host; c++) {
    int members = 0, measures = 0, found = 0;
    MPI_T_category_get_info(c, NULL, NULL, NULL, NULL, &members, &measures, NULL);
    int *shown = calloc(members + 1, sizeof *shown), *theirs = calloc(members + 1, sizeof *theirs);
    MPI_T_category_get_cvars(c, members, shown);
    PMPI_T_category_get_cvars(c, members, theirs);
    for (int i = 0; i < members; i++) {
      char a[256] = "", b[256] = "";
      int la = sizeof a, lb = sizeof b;
      MPI_T_cvar_get_info(shown[i], a, &la, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
      PMPI_T_cvar_get_info(theirs[i], b, &lb, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
      found += !strcmp(a, b);
    }
    OK(found == members);
    free(shown); free(theirs);
    shown = calloc(measures + 1, sizeof *shown), theirs = calloc(measures + 1, sizeof *theirs);
    MPI_T_category_get_pvars(c, measures, shown);
    PMPI_T_category_get_pvars(c, measures, theirs);
    for (int i = 0; i < measures; i++) {
      char a[256] = "", b[256] = "";
      int la = sizeof a, lb = sizeof b;
      MPI_T_pvar_get_info(shown[i], a, &la, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
      PMPI_T_pvar_get_info(theirs[i], b, &lb, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
      OK(!strcmp(a, b));
    }
    free(shown); free(theirs);
  }
  enumerations();
  measures();
  strangers(at, ours);
  /* Read and write the variable ddtc_mode of ddtc by a handle, and then read some control variables
   * of the MPI library. */
  MPI_T_cvar_handle h;
  OK(MPI_T_cvar_handle_alloc(at, NULL, &h, &count) == 0 && count == 1);
  OK(MPI_T_cvar_read(h, &value) == 0 && value == 2); /* 2 is `lazy` */
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
  /* Check that the tool interface can still be used after MPI_Finalize, until MPI_T_finalize. */
  MPI_T_pvar_session left;
  MPI_T_pvar_handle handle;
  unsigned long long counted;
  MPI_T_pvar_session_create(&left);
  handle = measure(left, "ddtc_pack_calls", MPI_T_PVAR_CLASS_COUNTER);
  MPI_Finalize();
  OK(reads(left, handle) == 0);
  MPI_T_finalize();
  OK(MPI_T_pvar_read(left, handle, &counted) != 0);
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
