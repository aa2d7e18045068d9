/* Benchmark of the C interface. It measures the times of operations on handles, of commit, of a
 * pack through a handle beyond the time of the kernel itself, and of reading the contents of a
 * type. It also measures the memory that a type takes.
 *
 * Run it in the folder capi. PREFIX is a folder into which the C library is installed:
 *
 *   ../packaging/install.sh --only capi --prefix $PREFIX &&
 *   cc -O2 bench/handles.c \
 *       $(PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig pkg-config --cflags --libs ddtc) \
 *       -Wl,-rpath,$PREFIX/lib -o handles &&
 *   taskset -c 1 ./handles
 *
 * Each line of the output has a value, its unit and, for some values, the target. Most times are
 * medians of 21 batches. The times of many types (a million vectors, their commits, and 10000
 * layouts) are means over one pass. Run the benchmark only on a machine that does nothing else. */
#define _GNU_SOURCE
#include <ddtc.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(int code)
{
    char text[DDTC_MAX_ERROR_STRING];
    int n;
    if (code == 0) return;
    ddtc_error_string(code, text, &n);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { BATCHES = 21 };
#define MEDIAN(result, n, statement)                                                                                   \
    do {                                                                                                               \
        double times[BATCHES];                                                                                         \
        for (int batch = 0; batch < BATCHES; batch++) {                                                                \
            double start = now();                                                                                      \
            for (int i = 0; i < (n); i++) {                                                                            \
                statement;                                                                                             \
            }                                                                                                          \
            times[batch] = (now() - start) / (n);                                                                      \
        }                                                                                                              \
        qsort(times, BATCHES, sizeof *times, by_value);                                                                \
        result = times[BATCHES / 2];                                                                                   \
    } while (0)

static void line(const char *what, double value, const char *unit, const char *target)
{
    printf("%-52s %10.1f %-6s %s\n", what, value, unit, target);
}

/* Returns the number of bytes that the allocator has given out, including its own overhead. */
static size_t used(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

int main(void)
{
    ddtc_datatype t, d;
    double ns, kernel_ns;
    int size, keyval, flag, position;
    void *value;
    char *source = calloc(1, 1 << 16), *packed = calloc(1, 1 << 16);

    check(ddtc_type_vector(4, 1, 3, DDTC_TYPE_DOUBLE, &t));
    check(ddtc_type_commit(&t));
    check(ddtc_type_create_keyval(DDTC_DUP_FN, DDTC_NULL_DELETE_FN, &keyval, NULL));
    check(ddtc_type_set_attr(t, keyval, source));

    MEDIAN(ns, 1000000, ddtc_type_size(t, &size));
    line("type_size of a derived handle", ns, "ns", "<= 30");
    MEDIAN(ns, 1000000, ddtc_type_size(DDTC_TYPE_INT, &size));
    line("type_size of a named handle", ns, "ns", "<= 30");
    MEDIAN(ns, 1000000, ddtc_type_get_attr(t, keyval, &value, &flag));
    line("get_attr", ns, "ns", "<= 30");
    /* A thread's cache has 16 entries. A handle gets an entry only when it is missed twice in a row
     * among the handles that share the entry. With 1000 handles in turn this does not happen, so
     * every look-up goes to the table of handles. */
    enum { HANDLES = 1000 };
    static ddtc_datatype many[HANDLES];
    for (int i = 0; i < HANDLES; i++) check(ddtc_type_vector(4, 1, 3 + i, DDTC_TYPE_DOUBLE, &many[i]));
    MEDIAN(ns, 1000000, ddtc_type_size(many[i % HANDLES], &size));
    line("type_size of 1000 handles in turn", ns, "ns", "<= 30");
    for (int i = 0; i < HANDLES; i++) check(ddtc_type_free(&many[i]));
    MEDIAN(ns, 1000000, ddtc_type_commit(&t));
    line("commit of a committed type", ns, "ns", "<= 30");
    check(ddtc_type_delete_attr(t, keyval));
    MEDIAN(ns, 200000, (ddtc_type_dup(t, &d), ddtc_type_free(&d)));
    line("dup and free", ns, "ns", "");
    MEDIAN(ns, 200000, (ddtc_type_vector(4, 1, 3, DDTC_TYPE_DOUBLE, &d), ddtc_type_free(&d)));
    line("vector and free", ns, "ns", "");
    MEDIAN(ns, 100000, (ddtc_type_vector(4, 1, 3, DDTC_TYPE_DOUBLE, &d), ddtc_type_commit(&d), ddtc_type_free(&d)));
    line("vector, commit of a known layout, free", ns, "ns", "commit <= 1000 over Rust's");

    ddtc_kernel kernel;
    check(ddtc_type_get_kernel(t, DDTC_PACK, &kernel));
    const ddtc_committed *committed;
    check(ddtc_type_get_committed(t, &committed));
    MEDIAN(kernel_ns, 1000000, kernel.entry(source + kernel.origin, packed, 1, kernel.context));
    line("kernel, four doubles", kernel_ns, "ns", "");
    MEDIAN(ns, 1000000, (position = 0, ddtc_pack(source, 1, t, packed, 1 << 16, &position)));
    line("pack through the handle, over the kernel", ns - kernel_ns, "ns", "<= 15");
    MEDIAN(ns, 1000000, ddtc_committed_pack(committed, source, 1, packed));
    line("committed_pack, over the kernel", ns - kernel_ns, "ns", "");
    check(ddtc_committed_release(committed));
    check(ddtc_type_free(&t));

    enum { BLOCKS = 100000 };
    int *lengths = malloc(BLOCKS * sizeof(int)), *ints = malloc((BLOCKS + 1) * sizeof(int));
    ddtc_aint *places = malloc(BLOCKS * sizeof(ddtc_aint)), *addresses = malloc(BLOCKS * sizeof(ddtc_aint));
    for (int i = 0; i < BLOCKS; i++) lengths[i] = 1 + i % 3, places[i] = 64 * (ddtc_aint)i;
    check(ddtc_type_create_hindexed(BLOCKS, lengths, places, DDTC_TYPE_INT, &t));
    MEDIAN(ns, 100, ddtc_type_get_contents(t, BLOCKS + 1, BLOCKS, 1, ints, addresses, &d));
    double copy;
    MEDIAN(copy, 100, (memcpy(ints + 1, lengths, BLOCKS * sizeof(int)), memcpy(addresses, places, BLOCKS * 8)));
    line("get_contents of 100000 blocks", ns / 1000, "us", "one copy of its arrays");
    line("memcpy of the same arrays", copy / 1000, "us", "");
    MEDIAN(ns, 1000, ddtc_type_contents(t, 50000, 8, lengths, NULL, places, &d));
    line("window of 8 of them", ns, "ns", "");
    check(ddtc_type_free(&t));

    enum { TYPES = 1000000 };
    /* Number of bytes that a stored vector uses for its arguments: count, block length, stride and
     * old type, 8 bytes each. */
    const double arguments = 32;
    ddtc_datatype *types = malloc(TYPES * sizeof *types);
    size_t before = used();
    double start = now();
    for (int i = 0; i < TYPES; i++) check(ddtc_type_vector(4, 1, 3 + i % 1000, DDTC_TYPE_DOUBLE, &types[i]));
    line("a million vectors: each", (now() - start) / TYPES, "ns", "");
    line("memory of each beyond its arguments", (double)(used() - before) / TYPES - arguments, "bytes", "<= 400");
    start = now();
    for (int i = 0; i < TYPES; i++) check(ddtc_type_commit(&types[i]));
    line("committed, 1000 layouts: each", (now() - start) / TYPES, "ns", "");
    line("memory of each, committed", (double)(used() - before) / TYPES - arguments, "bytes", "<= 400");
    for (int i = 0; i < TYPES; i++) check(ddtc_type_free(&types[i]));
    line("left after free, each", ((double)used() - (double)before) / TYPES, "bytes", "");

    enum { LAYOUTS = 10000 };
    before = used();
    start = now();
    for (int i = 0; i < LAYOUTS; i++) {
        check(ddtc_type_vector(4, 1, 2000 + i, DDTC_TYPE_DOUBLE, &types[i]));
        check(ddtc_type_commit(&types[i]));
    }
    line("10000 layouts, each of its own: each", (now() - start) / LAYOUTS, "ns", "");
    line("memory of each, layout and kernel included", (double)(used() - before) / LAYOUTS - arguments, "bytes", "");
    for (int i = 0; i < LAYOUTS; i++) check(ddtc_type_free(&types[i]));
    return 0;
}
