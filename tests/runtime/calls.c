/* Measures the functions of two libraries that have the interface of yaksa, in one process and in
 * turn. Most rows make a type, query it as MPICH does after each constructor, use it once or not at
 * all, and free it. Other rows query, pack or unpack a type that exists already, or make the list
 * of its pieces in memory.
 *
 *     cc -std=gnu11 -O2 -o calls tests/runtime/calls.c -ldl
 *     taskset -c 1 ./calls STOCK/libyaksa.so.0 OURS/libyaksa.so.0 [TEXT]
 *
 * With TEXT, only rows are measured whose names contain it. A time is the minimum of 60 batches
 * with each library, so that the ratio of the two libraries is also reliable on a machine with
 * other work. */
#include "../../yaksa/tests/c/interface.h"
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

#define FUNCTIONS(F)                                                                                                                  \
    F(init) F(type_create_vector) F(type_create_hvector) F(type_create_contig) F(type_create_dup) F(type_create_indexed)              \
    F(type_create_hindexed_block) F(type_create_struct) F(type_create_resized) F(type_create_subarray) F(iov_len) F(type_get_size)    \
    F(type_get_extent) F(type_get_true_extent) F(type_free) F(flatten_size) F(flatten) F(unflatten) F(pack) F(unpack) F(iov)

enum { BLOCKS = 100000, MEMBERS = 1000, BYTES = 1 << 25, FORM = 4096, BATCHES = 60 };

struct library {
#define MEMBER(name) typeof(yaksa_##name) *name;
    FUNCTIONS(MEMBER)
    ytype vector, many, indexed, block, structs, box;
    char form[FORM];
};

static struct library libraries[2], *y;
static intptr_t *places, *bytes, *lengths;
static ytype members[MEMBERS];
static char *user, *packed;
static struct iovec *list;

static void load(struct library *l, const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND(name) l->name = (typeof(l->name))dlsym(object, "yaksa_" #name);
    FUNCTIONS(FIND)
    OK(l->init(NULL));
}

/* Makes the queries that MPICH makes after each constructor, if `code` says that the constructor
 * succeeded. Returns the type. */
static ytype asked(int code, ytype t)
{
    uintptr_t n;
    intptr_t lb, extent;
    OK(code);
    OK(y->iov_len(2, t, &n));
    OK(y->type_get_size(t, &n));
    OK(y->type_get_extent(t, &lb, &extent));
    OK(y->type_get_true_extent(t, &lb, &extent));
    return t;
}

#define MAKE(name, ...)                                                                                                               \
    ({                                                                                                                                \
        ytype made;                                                                                                                   \
        int code = y->type_create_##name(__VA_ARGS__, NULL, &made);                                                                   \
        asked(code, made);                                                                                                            \
    })

static ytype vector(void) { return MAKE(vector, 64, 1, 4, T_DOUBLE); }
static ytype contig(void) { return MAKE(contig, 3, T_INT); }
static ytype dup(void) { return MAKE(dup, y->vector); }
static ytype structure(void) { return MAKE(struct, 3, LIST(1, 1, 3), LIST(0, 8, 16), TYPES(T_INT, T_DOUBLE, T_FLOAT)); }
static ytype eight(void) { return MAKE(indexed, 8, lengths, places, T_INT); }
static ytype large_indexed(void) { return MAKE(indexed, BLOCKS, lengths, places, T_INT); }
static ytype large_block(void) { return MAKE(hindexed_block, BLOCKS, 1, bytes, T_INT); }
static ytype large_struct(void) { return MAKE(struct, MEMBERS, lengths, bytes, members); }

static ytype item(void)
{
    ytype t = structure(), u = MAKE(resized, t, 0, 32);
    y->type_free(t);
    return u;
}

/* Returns the type of a box in a three-dimensional array, made by the same calls of yaksa that
 * MPICH makes for such a subarray. */
static ytype box(void)
{
    intptr_t row = 34 * 8, plane = 34 * row, start = plane + row + 8;
    ytype a = MAKE(vector, 32, 1, 34, T_DOUBLE), b = MAKE(hvector, 32, 1, plane, a);
    y->type_free(a);
    ytype c = MAKE(hindexed_block, 1, 1, &start, b), d = MAKE(resized, c, 0, 34 * plane);
    y->type_free(c);
    y->type_free(b);
    return d;
}

static ytype subarray(void)
{
    return MAKE(subarray, 3, LIST(34, 34, 34), LIST(32, 32, 1), LIST(1, 1, 1), ORDER_C, T_DOUBLE);
}

static ytype nested(void)
{
    ytype s = item(), v = MAKE(vector, 4, 2, 3, s), c = MAKE(contig, 3, v), h = MAKE(hvector, 2, 1, 2000, c);
    y->type_free(s);
    y->type_free(v);
    y->type_free(c);
    return h;
}

static ytype formed(void)
{
    ytype t;
    OK(y->unflatten(&t, y->form));
    return t;
}

static void pack(ytype t)
{
    uintptr_t n;
    OK(y->pack(user, 1, t, 0, packed, BYTES, &n, NULL, OP_REPLACE));
}

static void unpack(ytype t)
{
    uintptr_t size, n;
    OK(y->type_get_size(t, &size));
    OK(y->unpack(packed, size, user, 1, t, 0, &n, NULL, OP_REPLACE));
}

static void listed(ytype t)
{
    uintptr_t n;
    OK(y->iov_len(1, t, &n));
    OK(y->iov(NULL, 1, t, 0, list, n, &n));
}

static void nothing(ytype t) { (void)t; }
static void queries(ytype t) { asked(SUCCESS, t); }

struct row {
    const char *name;
    /* Makes the new type that a call of the row uses. If this pointer is null, the row uses a type
     * that exists already, which is a member of struct library at the offset `lives`. */
    ytype (*make)(void);
    size_t lives;
    void (*use)(ytype);
};

#define LIVES(member) offsetof(struct library, member)
static const struct row rows[] = {
    {"create vector", vector, 0, nothing}, {"create contig", contig, 0, nothing}, {"create dup", dup, 0, nothing},
    {"create struct", structure, 0, nothing}, {"create struct; resized", item, 0, nothing}, {"create box as MPICH does", box, 0, nothing},
    {"create subarray", subarray, 0, nothing}, {"create nested; 5 types", nested, 0, nothing}, {"create indexed; 8 blocks", eight, 0, nothing},
    {"create and pack once vector", vector, 0, pack}, {"create and pack once struct; resized", item, 0, pack},
    {"create and pack once box", box, 0, pack}, {"create and pack once nested", nested, 0, pack},
    {"create and pack once indexed; 8 blocks", eight, 0, pack}, {"unflatten vector of 512", formed, 0, nothing},
    {"unflatten and unpack vector of 512", formed, 0, unpack}, {"unflatten and list vector of 512", formed, 0, listed},
    {"create indexed; 100000 blocks", large_indexed, 0, nothing}, {"create and pack once indexed; 100000 blocks", large_indexed, 0, pack},
    {"create hindexed_block; 100000 blocks", large_block, 0, nothing},
    {"create and pack once hindexed_block; 100000 blocks", large_block, 0, pack}, {"create struct; 1000 members", large_struct, 0, nothing},
    {"create and pack once struct; 1000 members", large_struct, 0, pack}, {"size; bounds and pieces", NULL, LIVES(vector), queries},
    {"list indexed; 300 blocks", NULL, LIVES(indexed), listed}, {"list hindexed_block; 300 blocks", NULL, LIVES(block), listed},
    {"list contig of 100 structs", NULL, LIVES(structs), listed}, {"list box", NULL, LIVES(box), listed},
    {"pack vector of 512", NULL, LIVES(many), pack}, {"pack indexed; 300 blocks", NULL, LIVES(indexed), pack},
    {"unpack indexed; 300 blocks", NULL, LIVES(indexed), unpack}, {"pack hindexed_block; 300 blocks", NULL, LIVES(block), pack},
    {"unpack hindexed_block; 300 blocks", NULL, LIVES(block), unpack},
};

/* Makes `calls` calls of a row with one library. Returns the nanoseconds per call. */
static double batch(const struct row *row, struct library *l, long calls)
{
    struct timespec start, end;
    y = l;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (long i = 0; i < calls; i++) {
        ytype t = row->make ? row->make() : *(ytype *)((char *)l + row->lives);
        row->use(t);
        if (row->make) OK(y->type_free(t));
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / (double)calls;
}

static void begin(struct library *l)
{
    uintptr_t n;
    y = l;
    OK(y->type_create_vector(64, 1, 4, T_DOUBLE, NULL, &y->vector));
    OK(y->type_create_vector(512, 1, 2, T_DOUBLE, NULL, &y->many));
    OK(y->type_create_indexed(300, lengths, places, T_FLOAT, NULL, &y->indexed));
    OK(y->type_create_hindexed_block(300, 1, bytes, T_FLOAT, NULL, &y->block));
    OK(y->type_create_contig(100, item(), NULL, &y->structs));
    y->box = box();
    OK(y->flatten_size(y->many, &n));
    EQ(n <= FORM, 1);
    OK(y->flatten(y->many, y->form));
}

int main(int count, char **arguments)
{
    if (count < 3) {
        fprintf(stderr, "usage: %s STOCK OURS [ROW]: two files of libyaksa.so.0\n", arguments[0]);
        return 2;
    }
    places = malloc(BLOCKS * sizeof *places), bytes = malloc(BLOCKS * sizeof *bytes), lengths = malloc(BLOCKS * sizeof *lengths);
    user = malloc(BYTES), packed = malloc(BYTES), list = malloc(4096 * sizeof *list);
    /* Write to all pages of the buffers, so that the kernel gives them to this process before the
     * time is measured. */
    memset(user, 1, BYTES);
    memset(packed, 1, BYTES);
    unsigned long long seed = 1;
    intptr_t at = 0;
    for (int i = 0; i < BLOCKS; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        places[i] = at, bytes[i] = 4 * at, lengths[i] = 1 + (intptr_t)(seed >> 62);
        at += lengths[i] + 1 + (int)(seed >> 40 & 1);
    }
    for (int i = 0; i < MEMBERS; i++) members[i] = i % 3 ? T_INT : T_FLOAT;
    for (int i = 0; i < 2; i++) {
        load(&libraries[i], arguments[1 + i]);
        begin(&libraries[i]);
    }
    printf("row,stock_ns,ours_ns,ours_over_stock\n");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (count > 3 && !strstr(rows[k].name, arguments[3])) continue;
        double minimum[2] = {1e18, 1e18};
        for (int i = 0; i < 2; i++) batch(&rows[k], &libraries[i], 40);
        long calls = 1 + (long)(150e3 / batch(&rows[k], &libraries[0], 3));
        for (int turn = 0; turn < 2 * BATCHES; turn++) {
            /* The two libraries take turns, and the order within a pair of turns alternates. */
            int i = (turn + turn / 2) % 2;
            double now = batch(&rows[k], &libraries[i], calls);
            if (now < minimum[i]) minimum[i] = now;
        }
        printf("%s,%.1f,%.1f,%.3f\n", rows[k].name, minimum[0], minimum[1], minimum[1] / minimum[0]);
        fflush(stdout);
    }
    return 0;
}
