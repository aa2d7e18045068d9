/* Tests of the functions for runtimes: committed types, kernels, decoding of the runtime's types,
 * configuration, log, Fortran integers and fork. */
#include <ddtc.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

/* The types of a small runtime, by their handles: 1 is vector(2, 1, 3, int) with another extent, 2
 * is a struct with two members of type 1, and 3 is a contiguous type that contains itself. 100 is
 * int. */
static int released;
static int envelope(void *c, uintptr_t h, ddtc_count *ni, ddtc_count *na, ddtc_count *nc, ddtc_count *nd, int *combiner)
{
    EQ(*(int *)c, 42);
    *nc = 0;
    if (h == 100) return *ni = *na = *nd = 0, *combiner = DDTC_COMBINER_NAMED, 0;
    if (h == 1) return *ni = 3, *na = 0, *nd = 1, *combiner = DDTC_COMBINER_VECTOR, 0;
    if (h == 2) return *ni = 3, *na = 2, *nd = 2, *combiner = DDTC_COMBINER_STRUCT, 0;
    if (h == 3) return *ni = 1, *na = 0, *nd = 1, *combiner = DDTC_COMBINER_CONTIGUOUS, 0;
    return 31;
}
static int contents(void *c, uintptr_t h, ddtc_count ni, ddtc_count na, ddtc_count nc, ddtc_count nd, int i[],
                    ddtc_aint a[], ddtc_count l[], uintptr_t d[])
{
    (void)c, (void)ni, (void)na, (void)nc, (void)nd, (void)l;
    if (h == 1) i[0] = 2, i[1] = 1, i[2] = 3, d[0] = 100;
    if (h == 2) i[0] = 2, i[1] = i[2] = 1, a[0] = 0, a[1] = 64, d[0] = d[1] = 1;
    if (h == 3) i[0] = 2, d[0] = 3;
    return 0;
}
static int named(void *c, uintptr_t h, ddtc_datatype *t)
{
    (void)c, (void)h;
    *t = DDTC_TYPE_INT;
    return 0;
}
static int bounds(void *c, uintptr_t h, ddtc_count *lb, ddtc_count *extent)
{
    (void)c;
    *lb = 0;
    *extent = h == 1 ? 20 : h == 2 ? 96 : 4;
    return 0;
}
static int identity(void *c, uintptr_t h, uint64_t *value)
{
    (void)c;
    *value = h;
    return 0;
}
static void release(void *c, uintptr_t h)
{
    (void)c, (void)h;
    released++;
}

static char logged[4096];
static void log_line(void *context, int level, const char *line)
{
    EQ(*(int *)context, 42);
    TRUE(level >= DDTC_LOG_ERROR && level <= DDTC_LOG_DEBUG);
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", line);
    int size;
    OK(ddtc_type_size(DDTC_TYPE_INT, &size)); /* A hook may call the library. */
}

/* A log function that unpacks the type of whose compile it is told. */
static ddtc_datatype logged_type;
static int unpacks;
static void log_and_unpack(void *context, int level, const char *line)
{
    (void)context, (void)level;
    if (strstr(line, "compiled") == NULL) return;
    int packed[3] = {1, 2, 3}, user[16] = {0}, position = 0;
    OK(ddtc_unpack(packed, sizeof packed, &position, user, 1, logged_type));
    TRUE(user[0] == 1 && user[5] == 2 && user[10] == 3);
    unpacks++;
}
/* A log function that is told of a compile once, and then asks not to be called again. */
static int told;
static void log_once(void *context, int level, const char *line)
{
    (void)context, (void)level, (void)line;
    told++;
    OK(ddtc_set_log(NULL, NULL, 0)); /* Without a function, the level does not matter. */
}
static void log_functions_call(void)
{
    int packed[3] = {1, 2, 3}, user[16] = {0}, position = 0;
    OK(ddtc_type_vector(3, 1, 5, DDTC_TYPE_INT, &logged_type));
    OK(ddtc_type_commit(&logged_type));
    OK(ddtc_set_log(log_and_unpack, NULL, DDTC_LOG_TRACE));
    OK(ddtc_unpack(packed, sizeof packed, &position, user, 1, logged_type));
    OK(ddtc_set_log(NULL, NULL, DDTC_LOG_ERROR));
    TRUE(user[0] == 1 && user[5] == 2 && user[10] == 3);
    EQ(unpacks, 1);
    OK(ddtc_type_free(&logged_type));

    OK(ddtc_type_vector(3, 1, 7, DDTC_TYPE_INT, &logged_type));
    OK(ddtc_type_commit(&logged_type));
    OK(ddtc_set_log(log_once, NULL, DDTC_LOG_TRACE));
    position = 0;
    OK(ddtc_unpack(packed, sizeof packed, &position, user, 1, logged_type));
    EQ(told, 1);
    OK(ddtc_type_free(&logged_type));
}

/* Callers that were built with the header of an earlier version have a structure with fewer fields.
 * No byte after the end of that structure is read or written. The fields that such a caller lacks
 * keep their values. */
struct earlier {
    size_t struct_size;
    int mode, target, both_directions, check;
    uint64_t lazy_threshold, cache_bytes, arena_bytes, threads, parallel_bytes;
};
static void old_callers(void)
{
    const size_t before = sizeof(struct earlier);
    EQ(before, offsetof(ddtc_config, stream_bytes));
    ddtc_config all = {.struct_size = sizeof all}, now = {.struct_size = sizeof now};
    for (size_t size = 0; size <= 2 * sizeof all; size++) {
        if (size == before || size == sizeof all) continue;
        char what[40];
        snprintf(what, sizeof what, "struct_size = %zu", size);
        all.struct_size = size;
        FAILS(DDTC_ERR_ARG, what, ddtc_config_get(&all));
        FAILS(DDTC_ERR_ARG, what, ddtc_configure(&all));
    }
    all.struct_size = sizeof all;
    OK(ddtc_config_get(&all));
    TRUE(all.struct_size == sizeof all && all.stream_bytes == UINT64_MAX);
    all.stream_bytes = 12345;
    OK(ddtc_configure(&all));

    /* AddressSanitizer reports an access to a byte after this allocation. */
    struct earlier *old = malloc(before);
    old->struct_size = before;
    OK(ddtc_config_get((ddtc_config *)old));
    TRUE(old->struct_size == before && old->mode == all.mode && old->parallel_bytes == all.parallel_bytes);
    old->parallel_bytes = 54321;
    OK(ddtc_configure((ddtc_config *)old));
    free(old);
    OK(ddtc_config_get(&now));
    TRUE(now.parallel_bytes == 54321 && now.stream_bytes == 12345 && now.lazy_threshold == all.lazy_threshold);
    now.parallel_bytes = all.parallel_bytes, now.stream_bytes = UINT64_MAX;
    OK(ddtc_configure(&now));
}

int main(void)
{
    int context = 42, major, minor, patch, n, source[64], back[64], packed[64];
    for (int i = 0; i < 64; i++) source[i] = 7 * i;
    OK(ddtc_version(&major, &minor, &patch));
    TRUE(major == DDTC_VERSION_MAJOR && minor == DDTC_VERSION_MINOR && patch == DDTC_VERSION_PATCH);
    TRUE(strstr(ddtc_version_string(), "ddtc ") != NULL);

    /* Tests the log hook and the configuration. */
    OK(ddtc_set_log(log_line, &context, DDTC_LOG_DEBUG));
    FAILS(DDTC_ERR_ARG, "level = 9", ddtc_set_log(log_line, &context, 9));
    ddtc_config config = {.struct_size = sizeof config}, same = {.struct_size = sizeof config};
    OK(ddtc_config_get(&config));
    EQ(config.mode, DDTC_MODE_COMMIT);
    config.mode = 9;
    FAILS(DDTC_ERR_ARG, "mode = 9", ddtc_configure(&config));
    config.mode = DDTC_MODE_COMMIT, config.threads = UINT64_MAX;
    FAILS(DDTC_ERR_ARG, "threads = 18446744073709551615: must be 1 to 1024", ddtc_configure(&config));
    config.threads = 1025;
    FAILS(DDTC_ERR_ARG, "threads = 1025", ddtc_configure(&config));
    config.threads = 1, config.struct_size = 3;
    FAILS(DDTC_ERR_ARG, "struct_size = 3", ddtc_configure(&config));
    OK(ddtc_config_get(&same));
    EQ(same.mode, DDTC_MODE_COMMIT);
    old_callers();
    config.struct_size = sizeof config, config.both_directions = 1, config.check = 1;
    OK(ddtc_configure(&config));

    /* Calls a kernel directly. */
    ddtc_datatype t;
    ddtc_kernel kernel;
    const ddtc_committed *committed;
    OK(ddtc_type_create_hindexed(2, (int[]){1, 2}, (ddtc_aint[]){40, 8}, DDTC_TYPE_INT, &t));
    FAILS(DDTC_ERR_TYPE, "must be committed", ddtc_type_get_committed(t, &committed));
    FAILS(DDTC_ERR_TYPE, "must be committed", ddtc_type_get_kernel(t, DDTC_PACK, &kernel));
    OK(ddtc_type_commit(&t));
    TRUE(strstr(logged, "compiled") != NULL);
    OK(ddtc_set_log(NULL, NULL, DDTC_LOG_ERROR));
    FAILS(DDTC_ERR_ARG, "direction = 2", ddtc_type_get_kernel(t, 2, &kernel));
    OK(ddtc_type_get_kernel(t, DDTC_PACK, &kernel));
    TRUE(kernel.entry != NULL);
    kernel.entry((char *)source + kernel.origin, packed, 1, kernel.context);
    TRUE(packed[0] == 70 && packed[1] == 14 && packed[2] == 21);

    /* A committed type stays valid after its handle is freed. */
    OK(ddtc_type_get_committed(t, &committed));
    OK(ddtc_committed_retain(committed));
    OK(ddtc_type_free(&t));
    ddtc_count size, lb, extent, true_lb, true_extent, bytes;
    OK(ddtc_committed_bounds(committed, &size, &lb, &extent, &true_lb, &true_extent));
    TRUE(size == 12 && lb == 8 && extent == 36 && true_lb == 8 && true_extent == 36);
    OK(ddtc_committed_bounds(committed, &size, NULL, NULL, NULL, NULL));
    memset(packed, 0, sizeof packed);
    OK(ddtc_committed_pack(committed, source, 1, packed));
    TRUE(packed[0] == 70 && packed[2] == 21);
    memset(back, 0, sizeof back);
    OK(ddtc_committed_unpack(committed, packed, back, 1));
    TRUE(back[10] == 70 && back[2] == 14 && back[3] == 21 && back[4] == 0);
    OK(ddtc_committed_range(committed, DDTC_PACK, source, 1, 4, packed, 100, &bytes));
    TRUE(bytes == 8 && packed[0] == 14 && packed[1] == 21);
    OK(ddtc_committed_kernel(committed, DDTC_UNPACK, &kernel));
    TRUE(kernel.entry != NULL);
    FAILS(DDTC_ERR_COUNT, "count = -1", ddtc_committed_pack(committed, source, -1, packed));
    FAILS(DDTC_ERR_ARG, "committed", ddtc_committed_release(NULL));
    OK(ddtc_committed_release(committed));
    OK(ddtc_committed_release(committed));

    /* In modes that do not compile there is no kernel, but packing works. */
    for (int mode = DDTC_MODE_OFF; mode <= DDTC_MODE_LAZY; mode++) {
        config.mode = mode, config.check = 0;
        OK(ddtc_configure(&config));
        OK(ddtc_type_vector(3, 1, 5 + mode, DDTC_TYPE_INT, &t));
        OK(ddtc_type_commit(&t));
        int position = 0;
        OK(ddtc_pack(source, 2, t, packed, sizeof packed, &position));
        EQ(position, 24);
        EQ(packed[2], 7 * 2 * (5 + mode));
        EQ(packed[3], 7 * (2 * (5 + mode) + 1));
        if (mode < DDTC_MODE_LAZY) {
            OK(ddtc_type_get_kernel(t, DDTC_PACK, &kernel));
            TRUE(kernel.entry == NULL);
        }
        OK(ddtc_type_free(&t));
    }
    config.mode = DDTC_MODE_COMMIT, config.both_directions = 0;
    OK(ddtc_configure(&config));
    log_functions_call();

    /* Types of the runtime are decoded with the bounds that the runtime reports. */
    ddtc_introspect host = {sizeof host, &context, envelope, contents, named, bounds, identity, release};
    OK(ddtc_type_decode(&host, 2, &t));
    /* The library released three handles: two for the members of the struct, and one for the child
     * of the vector, which is decoded only once. */
    EQ(released, 3);
    ddtc_aint a, b;
    OK(ddtc_type_get_extent(t, &a, &b));
    EQ(b, 96);
    int ni, na, nd, combiner, i[3];
    ddtc_aint places[2];
    ddtc_datatype d[2];
    OK(ddtc_type_get_envelope(t, &ni, &na, &nd, &combiner));
    TRUE(ni == 3 && na == 2 && nd == 2 && combiner == DDTC_COMBINER_STRUCT);
    OK(ddtc_type_get_contents(t, 3, 2, 2, i, places, d));
    OK(ddtc_type_get_extent(d[0], &a, &b));
    EQ(b, 20);
    OK(ddtc_type_free(&d[0]));
    OK(ddtc_type_free(&d[1]));
    OK(ddtc_type_free(&t));
    FAILS(DDTC_ERR_TYPE, "cycle", ddtc_type_decode(&host, 3, &t));
    EQ(t, DDTC_DATATYPE_NULL);
    FAILS(DDTC_ERR_OTHER, "31", ddtc_type_decode(&host, 5, &t));
    host.named = NULL;
    FAILS(DDTC_ERR_ARG, "named", ddtc_type_decode(&host, 1, &t));
    host.struct_size = 8, t = DDTC_TYPE_INT;
    FAILS(DDTC_ERR_ARG, "struct_size", ddtc_type_decode(&host, 1, &t));
    EQ(t, DDTC_DATATYPE_NULL);

    /* Conversion of handles to Fortran integers and back. */
    OK(ddtc_type_toint(DDTC_TYPE_DOUBLE, &n));
    EQ(n, 0x214);
    OK(ddtc_type_fromint(n, &t));
    EQ(t, DDTC_TYPE_DOUBLE);
    OK(ddtc_type_toint(DDTC_DATATYPE_NULL, &n));
    EQ(n, 0x200);
    OK(ddtc_type_vector(2, 1, 2, DDTC_TYPE_INT, &t));
    OK(ddtc_type_toint(t, &n));
    OK(ddtc_type_fromint(n, d));
    EQ(d[0], t);
    OK(ddtc_type_free(&t));
    FAILS(DDTC_ERR_TYPE, "datatype", ddtc_type_fromint(n, d));
    EQ(d[0], DDTC_DATATYPE_NULL);

    /* A child process commits and packs in its own memory, and does not change the parent's
     * kernels. */
    ddtc_datatype p;
    OK(ddtc_type_vector(8, 1, 3, DDTC_TYPE_INT, &p));
    OK(ddtc_type_commit(&p));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (int stride = 2; stride < 7; stride++) {
            int position = 0;
            OK(ddtc_type_vector(5, 1, stride, DDTC_TYPE_SHORT, &t));
            OK(ddtc_type_commit(&t));
            OK(ddtc_pack(source, 1, t, packed, sizeof packed, &position));
            OK(ddtc_pack(source, 1, p, packed, sizeof packed, &position));
            EQ(position, 10 + 32);
            OK(ddtc_type_free(&t));
        }
        OK(ddtc_type_free(&p));
        _exit(0);
    }
    int status;
    EQ(waitpid(child, &status, 0), child);
    EQ(status, 0);
    int position = 0;
    OK(ddtc_pack(source, 1, p, packed, sizeof packed, &position));
    for (int k = 0; k < 8; k++) EQ(packed[k], 7 * 3 * k);
    OK(ddtc_type_free(&p));
    return 0;
}
