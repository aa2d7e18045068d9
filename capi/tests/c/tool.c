/* Tests of the tool information interface (MPI 5.0, 15.3) with MPI's names: all variables,
 * enumerations and categories. */
#include <ddtc/mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
#include "check.h"

static int allowed(MPI_Datatype t)
{
    const MPI_Datatype table[] = {MPI_INT, MPI_INT32_T, MPI_INT64_T, MPI_UNSIGNED, MPI_UNSIGNED_LONG,
                                  MPI_UNSIGNED_LONG_LONG, MPI_UINT32_T, MPI_UINT64_T, MPI_COUNT, MPI_CHAR, MPI_DOUBLE};
    for (int i = 0; i < LENGTH(table); i++)
        if (table[i] == t) return 1;
    return 0;
}

static char enum_names[16][64];
static int enum_count;

/* Checks that an enumeration has at least one item, that its name and the names of its items are
 * not empty, and that the names of its items are unique. */
static void walk_enum(MPI_T_enum e)
{
    char name[64], items[16][64];
    int n, len = sizeof name;
    OK(MPI_T_enum_get_info(e, &n, name, &len));
    EQ(len, (int)strlen(name) + 1);
    TRUE(n > 0 && len > 1);
    int known = 0;
    for (int i = 0; i < enum_count; i++) known |= !strcmp(enum_names[i], name);
    if (!known) strcpy(enum_names[enum_count++], name);
    for (int i = 0; i < n; i++) {
        int value = -1;
        len = sizeof items[i];
        OK(MPI_T_enum_get_item(e, i, &value, items[i], &len));
        TRUE(len > 1 && value == i);
        for (int k = 0; k < i; k++) TRUE(strcmp(items[i], items[k]) != 0);
    }
    EQ(MPI_T_enum_get_item(e, n, &n, name, &len), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_enum_get_item(e, -1, &n, name, &len), MPI_T_ERR_INVALID_INDEX);
}

static void strings(void)
{
    /* Tests the convention for returning strings with the name "ddtc_mode". */
    char name[64];
    int index, len;
    OK(MPI_T_cvar_get_index("ddtc_mode", &index));
    memset(name, '#', sizeof name);
    len = sizeof name;
    OK(MPI_T_cvar_get_info(index, name, &len, 0, 0, 0, 0, 0, 0, 0));
    TRUE(len == 10 && !strcmp(name, "ddtc_mode") && name[10] == '#');
    memset(name, '#', sizeof name);
    len = 5;
    OK(MPI_T_cvar_get_info(index, name, &len, 0, 0, 0, 0, 0, 0, 0));
    TRUE(len == 10 && !strcmp(name, "ddtc") && name[5] == '#');
    len = 1;
    OK(MPI_T_cvar_get_info(index, name, &len, 0, 0, 0, 0, 0, 0, 0));
    TRUE(len == 10 && name[0] == 0 && name[1] == 'd');
    name[0] = '#';
    len = 0;
    OK(MPI_T_cvar_get_info(index, name, &len, 0, 0, 0, 0, 0, 0, 0));
    TRUE(len == 10 && name[0] == '#');
    len = 64;
    OK(MPI_T_cvar_get_info(index, NULL, &len, 0, 0, 0, 0, 0, 0, 0));
    EQ(len, 10);
    OK(MPI_T_cvar_get_info(index, name, NULL, 0, 0, 0, 0, 0, 0, 0));
    EQ(name[0], '#');
}

static void controls(void)
{
    int n;
    OK(MPI_T_cvar_get_num(&n));
    TRUE(n >= 6);
    for (int i = 0; i < n; i++) {
        char name[64], desc[256], value[4096], again[4096];
        int name_len = sizeof name, desc_len = sizeof desc, verbosity, bind, scope, index, count;
        MPI_Datatype type;
        MPI_T_enum e;
        MPI_T_cvar_handle h;
        OK(MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &e, desc, &desc_len, &bind, &scope));
        TRUE(name_len > 1 && desc_len > 1 && bind == MPI_T_BIND_NO_OBJECT && scope == MPI_T_SCOPE_LOCAL);
        TRUE(verbosity == MPI_T_VERBOSITY_USER_BASIC || verbosity == MPI_T_VERBOSITY_TUNER_BASIC);
        TRUE(allowed(type));
        if (e != MPI_T_ENUM_NULL) {
            EQ(type, MPI_INT);
            walk_enum(e);
        }
        OK(MPI_T_cvar_get_index(name, &index));
        EQ(index, i);
        OK(MPI_T_cvar_handle_alloc(i, NULL, &h, &count));
        TRUE(type == MPI_CHAR ? count > 1 : count == 1);
        memset(value, 0, sizeof value);
        memset(again, 0, sizeof again);
        OK(MPI_T_cvar_read(h, value));
        OK(MPI_T_cvar_write(h, value));
        OK(MPI_T_cvar_read(h, again));
        BYTES(value, again, sizeof value);
        EQ(MPI_T_cvar_read(h, NULL), MPI_T_ERR_INVALID);
        if (e != MPI_T_ENUM_NULL) {
            EQ(MPI_T_cvar_write(h, (int[]){17}), MPI_T_ERR_INVALID);
            EQ(MPI_T_cvar_write(h, (int[]){-1}), MPI_T_ERR_INVALID);
        }
        if (type == MPI_CHAR) {
            /* The count of a variable includes the NUL. So a string without NUL is refused, and the
             * longest valid string can be written and read back. */
            memset(value, 'x', sizeof value);
            EQ(MPI_T_cvar_write(h, value), MPI_T_ERR_INVALID);
            value[count - 1] = 0;
            OK(MPI_T_cvar_write(h, value));
            OK(MPI_T_cvar_read(h, again));
            EQ(strcmp(value, again), 0);
            OK(MPI_T_cvar_write(h, ""));
        }
        MPI_T_cvar_handle stale = h;
        OK(MPI_T_cvar_handle_free(&h));
        EQ(h, MPI_T_CVAR_HANDLE_NULL);
        EQ(MPI_T_cvar_read(stale, value), MPI_T_ERR_INVALID_HANDLE);
        EQ(MPI_T_cvar_handle_free(&h), MPI_T_ERR_INVALID_HANDLE);
    }
    int index = -5;
    EQ(MPI_T_cvar_get_index("no such name", &index), MPI_T_ERR_INVALID_NAME);
    EQ(index, -5);
    EQ(MPI_T_cvar_get_info(n, 0, 0, 0, 0, 0, 0, 0, 0, 0), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_cvar_get_info(-1, 0, 0, 0, 0, 0, 0, 0, 0, 0), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_cvar_handle_alloc(n, NULL, (MPI_T_cvar_handle[1]){0}, &index), MPI_T_ERR_INVALID_INDEX);
}

/* Checks that a control variable has an effect: after it sets the mode `interpret`, no kernel is
 * compiled. */
static void mode(void)
{
    int index, count, value, was;
    MPI_T_cvar_handle h;
    OK(MPI_T_cvar_get_index("ddtc_mode", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &h, &count));
    OK(MPI_T_cvar_read(h, &was));
    EQ(was, DDTC_MODE_COMMIT);
    value = DDTC_MODE_INTERPRET;
    OK(MPI_T_cvar_write(h, &value));
    MPI_Datatype t;
    ddtc_kernel kernel;
    MPI_Type_vector(3, 1, 77, MPI_INT, &t);
    MPI_Type_commit(&t);
    OK(ddtc_type_get_kernel(t, DDTC_PACK, &kernel));
    TRUE(kernel.entry == NULL);
    MPI_Type_free(&t);
    OK(MPI_T_cvar_write(h, &was));
    OK(MPI_T_cvar_handle_free(&h));
}

static unsigned long long counter(MPI_T_pvar_session s, MPI_T_pvar_handle h)
{
    unsigned long long value = 4711;
    OK(MPI_T_pvar_read(s, h, &value));
    return value;
}

static MPI_T_pvar_handle open_counter(MPI_T_pvar_session s, const char *name, int class)
{
    int index, count;
    MPI_T_pvar_handle h;
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_handle_alloc(s, index, NULL, &h, &count));
    EQ(count, 1);
    return h;
}

static void performance(void)
{
    int n;
    OK(MPI_T_pvar_get_num(&n));
    MPI_T_pvar_session s;
    OK(MPI_T_pvar_session_create(&s));
    for (int i = 0; i < n; i++) {
        char name[64], desc[256], value[64];
        int name_len = sizeof name, desc_len = sizeof desc, verbosity, class, bind, readonly, continuous, atomic, index, count;
        MPI_Datatype type;
        MPI_T_enum e;
        MPI_T_pvar_handle h;
        OK(MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &e, desc, &desc_len, &bind, &readonly,
                               &continuous, &atomic));
        TRUE(allowed(type) && name_len > 1 && desc_len > 1 && e == MPI_T_ENUM_NULL && bind == MPI_T_BIND_NO_OBJECT);
        OK(MPI_T_pvar_get_index(name, class, &index));
        EQ(index, i);
        EQ(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_STATE, &index), MPI_T_ERR_INVALID_NAME);
        OK(MPI_T_pvar_handle_alloc(s, i, NULL, &h, &count));
        EQ(count, 1);
        OK(MPI_T_pvar_read(s, h, value));
        EQ(MPI_T_pvar_start(s, h), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : 0);
        EQ(MPI_T_pvar_stop(s, h), continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : 0);
        EQ(MPI_T_pvar_reset(s, h), readonly ? MPI_T_ERR_PVAR_NO_WRITE : 0);
        EQ(MPI_T_pvar_write(s, h, value), readonly ? MPI_T_ERR_PVAR_NO_WRITE : 0);
        EQ(MPI_T_pvar_readreset(s, h, value), readonly ? MPI_T_ERR_PVAR_NO_WRITE : 0);
        if (i % 2) {
            OK(MPI_T_pvar_handle_free(s, &h));
            EQ(h, MPI_T_PVAR_HANDLE_NULL);
        }
    }
    EQ(MPI_T_pvar_get_info(n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), MPI_T_ERR_INVALID_INDEX);

    /* Performance variables count calls, bytes and types. */
    MPI_T_pvar_handle commits = open_counter(s, "ddtc_commits", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle calls = open_counter(s, "ddtc_pack_calls", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle bytes = open_counter(s, "ddtc_pack_bytes", MPI_T_PVAR_CLASS_AGGREGATE);
    MPI_T_pvar_handle types = open_counter(s, "ddtc_types", MPI_T_PVAR_CLASS_LEVEL);
    unsigned long long live = counter(s, types);
    OK(MPI_T_pvar_start(s, MPI_T_PVAR_ALL_HANDLES));
    MPI_Datatype t;
    int source[64] = {0}, packed[64], position = 0;
    MPI_Type_vector(3, 1, 5, MPI_INT, &t);
    MPI_Type_commit(&t);
    for (int i = 0; i < 5; i++) MPI_Pack(source, 1, t, packed, sizeof packed, &position, MPI_COMM_SELF);
    EQ(counter(s, commits), 1);
    EQ(counter(s, calls), 5);
    EQ(counter(s, bytes), 60);
    EQ(counter(s, types), live + 1);
    OK(MPI_T_pvar_stop(s, calls));
    position = 0;
    MPI_Pack(source, 1, t, packed, sizeof packed, &position, MPI_COMM_SELF);
    EQ(counter(s, calls), 5);
    EQ(counter(s, bytes), 72);
    unsigned long long value;
    OK(MPI_T_pvar_readreset(s, bytes, &value));
    EQ(value, 72);
    EQ(counter(s, bytes), 0);
    OK(MPI_T_pvar_write(s, bytes, (unsigned long long[]){1000}));
    position = 0;
    MPI_Pack(source, 2, t, packed, sizeof packed, &position, MPI_COMM_SELF);
    EQ(counter(s, bytes), 1024);
    MPI_Type_free(&t);
    EQ(counter(s, types), live);

    /* A handle is valid only in its own session. */
    MPI_T_pvar_session other;
    OK(MPI_T_pvar_session_create(&other));
    EQ(MPI_T_pvar_read(other, calls, &value), MPI_T_ERR_INVALID_HANDLE);
    MPI_T_pvar_session stale = other;
    OK(MPI_T_pvar_session_free(&other));
    EQ(other, MPI_T_PVAR_SESSION_NULL);
    EQ(MPI_T_pvar_read(stale, calls, &value), MPI_T_ERR_INVALID_SESSION);
    EQ(MPI_T_pvar_session_free(&stale), MPI_T_ERR_INVALID_SESSION);
    OK(MPI_T_pvar_session_free(&s));
}

static int seen_cvars[64], seen_pvars[64];

static void categories(void)
{
    int n, stamp, index;
    OK(MPI_T_category_get_num(&n));
    OK(MPI_T_category_changed(&stamp));
    for (int i = 0; i < n; i++) {
        char name[64], desc[256];
        int name_len = sizeof name, desc_len = sizeof desc, cvars, pvars, subs, events, indices[64];
        OK(MPI_T_category_get_info(i, name, &name_len, desc, &desc_len, &cvars, &pvars, &subs));
        OK(MPI_T_category_get_index(name, &index));
        EQ(index, i);
        OK(MPI_T_category_get_num_events(i, &events));
        EQ(events, 0);
        OK(MPI_T_category_get_cvars(i, 64, indices));
        for (int k = 0; k < cvars; k++) seen_cvars[indices[k]]++;
        OK(MPI_T_category_get_pvars(i, 64, indices));
        for (int k = 0; k < pvars; k++) seen_pvars[indices[k]]++;
        OK(MPI_T_category_get_categories(i, 64, indices));
        for (int k = 0; k < subs; k++) TRUE(indices[k] > i && indices[k] < n);
        OK(MPI_T_category_get_events(i, 64, indices));
        /* If the array is too short, only as many indices as fit are written. */
        indices[1] = -9;
        OK(MPI_T_category_get_pvars(i, 1, indices));
        EQ(indices[1], -9);
        /* For 0 indices, the array may be null. For a positive number of indices it must not be
         * null, if there are indices to write. */
        OK(MPI_T_category_get_pvars(i, 0, NULL));
        EQ(MPI_T_category_get_pvars(i, 64, NULL), pvars > 0 ? MPI_T_ERR_INVALID : MPI_SUCCESS);
        EQ(MPI_T_category_get_cvars(i, 64, NULL), cvars > 0 ? MPI_T_ERR_INVALID : MPI_SUCCESS);
        EQ(MPI_T_category_get_categories(i, 64, NULL), subs > 0 ? MPI_T_ERR_INVALID : MPI_SUCCESS);
    }
    OK(MPI_T_cvar_get_num(&n));
    for (int i = 0; i < n; i++) EQ(seen_cvars[i], 1);
    OK(MPI_T_pvar_get_num(&n));
    for (int i = 0; i < n; i++) EQ(seen_pvars[i], 1);
    EQ(MPI_T_category_get_index("none", &index), MPI_T_ERR_INVALID_NAME);
}

static void events(void)
{
    int n, index;
    OK(MPI_T_event_get_num(&n));
    EQ(n, 0);
    OK(MPI_T_source_get_num(&n));
    EQ(n, 0);
    EQ(MPI_T_event_get_info(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_event_get_index("any", &index), MPI_T_ERR_INVALID_NAME);
    EQ(MPI_T_event_handle_alloc(0, NULL, MPI_INFO_NULL, (MPI_T_event_registration[1]){0}), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_event_handle_free(NULL, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    EQ(MPI_T_event_register_callback(NULL, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    MPI_Count stamp;
    EQ(MPI_T_source_get_timestamp(0, &stamp), MPI_T_ERR_INVALID_INDEX);
    EQ(MPI_T_event_read(NULL, 0, &stamp), MPI_T_ERR_INVALID_HANDLE);
}

static void *hammer(void *unused)
{
    for (int i = 0; i < 200; i++) {
        int provided, n;
        OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
        EQ(provided, MPI_THREAD_MULTIPLE);
        MPI_T_pvar_session s;
        OK(MPI_T_pvar_session_create(&s));
        MPI_T_pvar_handle h = open_counter(s, "ddtc_pack_calls", MPI_T_PVAR_CLASS_COUNTER);
        OK(MPI_T_pvar_start(s, h));
        TRUE(counter(s, h) < 1000000);
        OK(MPI_T_cvar_get_num(&n));
        OK(MPI_T_pvar_session_free(&s));
        OK(MPI_T_finalize());
    }
    return unused;
}

int main(void)
{
    int n, provided;
    /* Functions of MPI_T call no error handler. Otherwise this program would end here, because the
     * default error handler ends the program. */
    EQ(MPI_T_cvar_get_num(&n), MPI_T_ERR_NOT_INITIALIZED);
    EQ(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    MPI_T_pvar_session s;
    EQ(MPI_T_pvar_session_create(&s), MPI_T_ERR_NOT_INITIALIZED);

    /* The tool interface works before MPI_Init. */
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    strings();
    controls();
    mode();
    performance();
    categories();
    events();
    OK(MPI_T_finalize());
    OK(MPI_T_cvar_get_num(&n));

    pthread_t threads[4];
    for (int i = 0; i < 4; i++) EQ(pthread_create(&threads[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < 4; i++) EQ(pthread_join(threads[i], NULL), 0);

    /* MPI_Finalize writes the report to the file that the control variable names. */
    char file[] = "/tmp/report-of-variables-XXXXXX", line[256] = "";
    EQ(close(mkstemp(file)), 0);
    int index, count;
    MPI_T_cvar_handle h;
    OK(MPI_T_cvar_get_index("ddtc_report", &index));
    OK(MPI_T_cvar_handle_alloc(index, NULL, &h, &count));
    OK(MPI_T_cvar_write(h, file));
    MPI_Init(NULL, NULL);
    MPI_Finalize();
    FILE *report = fopen(file, "r");
    TRUE(report && fgets(line, sizeof line, report));
    EQ(strcmp(line, "ddtc report\n"), 0);
    fclose(report);
    remove(file);
    OK(MPI_T_cvar_write(h, ""));
    OK(MPI_T_finalize());
    EQ(MPI_T_cvar_read(h, line), MPI_T_ERR_NOT_INITIALIZED);
    return 0;
}
