/*
 * elements.dies-after-others: intel 2021.18.1
 * 17 of struct([3,3],[2,-47],[double_int,double_int])
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGABRT: double free or corruption (out)
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad;

/* A legal call. */
#define CALL(call)                                                           \
    do {                                                                     \
        int code = (call), class = code;                                     \
        if (code != MPI_SUCCESS) {                                           \
            MPI_Error_class(code, &class);                                   \
            printf("expected MPI_SUCCESS, got class %d: %s\n", class, #call); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static void same(const char *what, long long expected, long long got)
{
    if (expected != got) {
        printf("%s: expected %lld, got %lld\n", what, expected, got);
        bad = 1;
    }
}

#define COUNT 17
#define BOUNDS 2

/* The type map in packing order, by the bounds that this library gives the parts of the datatype: displacement, bytes, and whether these are x87's
 * long doubles. */
struct entry {
    long at, bytes, padded;
    MPI_Datatype type;
};
static struct entry *map;
static long ENTRIES, SIZE, LOW, HIGH, OVERLAPS;
static long extents[BOUNDS];

static void bounds(int node, MPI_Datatype t)
{
    MPI_Aint lb, extent;
    CALL(MPI_Type_get_extent(t, &lb, &extent));
    extents[node] = extent;
}

static void entry(long at, long bytes, long padded, MPI_Datatype type)
{
    if (!(ENTRIES & (ENTRIES + 1)))
        map = realloc(map, (2 * ENTRIES + 2) * sizeof *map);
    struct entry e = {at, bytes, padded, type};
    map[ENTRIES++] = e;
    SIZE += bytes;
    LOW = at < LOW ? at : LOW;
    HIGH = at + bytes > HIGH ? at + bytes : HIGH;
}

static void walk0(long at)
{
    entry(at + 0, 8, 0, MPI_DOUBLE);
    entry(at + 8, 4, 0, MPI_INT);
}

static void walk1(long at)
{
    for (long j = 0; j < 3; j++)
        walk0(at + 2 + j * extents[0]);
    for (long j = 0; j < 3; j++)
        walk0(at + -47 + j * extents[0]);
}

#define WALK walk1

#define ELEMENTS ENTRIES
#define INSTANCE (COUNT ? ENTRIES / COUNT : 0)
#define LENGTH (HIGH - LOW)

/* The map of n instances. */
static void instances(long n)
{
    map = NULL;
    ENTRIES = SIZE = LOW = HIGH = OVERLAPS = 0;
    for (long i = 0; i < n; i++)
        WALK(i * extents[BOUNDS - 1]);
    char *mapped = calloc(LENGTH + 1, 1);
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes; i++)
            OVERLAPS |= mapped[map[e].at - LOW + i]++ > 0;
    free(mapped);
}

/* Byte i of a pattern. */
static unsigned char pattern(unsigned long long seed, unsigned long long i)
{
    unsigned long long mixed = (i / 8 + 1 + (seed << 32)) * 0x9e3779b97f4a7c15ull;
    return (unsigned char)((mixed ^ (mixed >> 29)) >> (i % 8 * 8));
}

/* Memory from displacement LOW to HIGH, displacement 0 on a multiple of 16, with guards of 64 bytes. */
static unsigned char *memory(unsigned long long seed)
{
    unsigned char *all = malloc(LENGTH + 160);
    unsigned char *low = all + 64;
    while ((uintptr_t)(low - LOW) % 16)
        low++;
    memset(all, 0xa5, LENGTH + 160);
    for (long i = 0; i < LENGTH; i++)
        low[i] = pattern(seed, i);
    return low - LOW;
}

/* Whether byte i of an entry belongs to its value: x87's long double has ten of sixteen. */
static int is_value(long e, long i)
{
    return !map[e].padded || i % 16 < 10;
}

/* What a stream of the map holds, by its definition. */
static unsigned char *gathered(const unsigned char *user)
{
    unsigned char *stream = malloc(SIZE + 1);
    long at = 0;
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes; i++)
            stream[at++] = user[map[e].at + i];
    return stream;
}

/* The first n bytes of a stream into memory, by the definition. */
static void scatter(const unsigned char *stream, long n, unsigned char *user)
{
    long at = 0;
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes && at < n; i++)
            user[map[e].at + i] = stream[at++];
}

static void same_stream(const char *what, const unsigned char *expected, const unsigned char *got)
{
    long at = 0;
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes; i++, at++)
            if (expected[at] != got[at] && is_value(e, i)) {
                printf("%s: byte %ld of the stream: expected %#04x, got %#04x\n", what, at, expected[at], got[at]);
                bad = 1;
                return;
            }
}

static void same_memory(const char *what, const unsigned char *expected, const unsigned char *got)
{
    unsigned char *matters = malloc(LENGTH + 1);
    memset(matters, 1, LENGTH + 1);
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e].bytes; i++)
            matters[map[e].at + i - LOW] = is_value(e, i);
    for (long i = LOW - 64; i < HIGH + 64; i++) {
        int inside = i >= LOW && i < HIGH;
        if ((inside && expected[i] != got[i] && matters[i - LOW]) || (!inside && got[i] != 0xa5)) {
            printf("%s: byte at displacement %ld: expected %#04x, got %#04x\n", what, i, inside ? expected[i] : 0xa5, got[i]);
            bad = 1;
            break;
        }
    }
    free(matters);
}

/* The first n elements of the map, one after the other. */
static MPI_Datatype flat(long n)
{
    int *lengths = malloc((n + 1) * sizeof *lengths), runs = 0;
    MPI_Aint *at = malloc((n + 1) * sizeof *at), next = 0;
    MPI_Datatype *types = malloc((n + 1) * sizeof *types), t;
    for (long e = 0; e < n; e++) {
        if (!runs || types[runs - 1] != map[e].type) {
            lengths[runs] = 0;
            at[runs] = next;
            types[runs++] = map[e].type;
        }
        lengths[runs - 1]++;
        next += map[e].bytes;
    }
    CALL(MPI_Type_create_struct(runs, lengths, at, types, &t));
    CALL(MPI_Type_commit(&t));
    return t;
}

static unsigned char *stream_of(unsigned long long seed)
{
    unsigned char *stream = malloc(SIZE + 64);
    for (long i = 0; i < SIZE; i++)
        stream[i] = pattern(seed, i);
    return stream;
}

static MPI_Datatype build(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_struct(2, (int[]){3, 3}, (MPI_Aint[]){2, -47}, (MPI_Datatype[]){MPI_DOUBLE_INT, MPI_DOUBLE_INT}, &t1));
    bounds(0, MPI_DOUBLE_INT);
    bounds(1, t1);
    return t1;
}
#define CHECK_BYTES 1
#define CHECK_COUNTS 0
#define COMMIT 1
#define MAP instances(COUNT)

/* Messages with some of the elements. */
static void check(MPI_Datatype t)
{
    if (OVERLAPS)
        return; /* Nothing may be received into entries that overlap. */
    long lengths[] = {0, 1, ELEMENTS / 2, ELEMENTS - 1, ELEMENTS, INSTANCE, INSTANCE + 1};
    for (int i = 0; i < 7; i++) {
        long n = lengths[i], bytes = 0, left = n;
        if (n > ELEMENTS)
            continue;
        MPI_Datatype line = flat(n);
        int size, count, elements;
        MPI_Type_size(line, &size);
        bytes = size;
        (void)left;
        unsigned char *values = stream_of(2), *to = memory(3), *want = memory(3);
        MPI_Status status;
        CALL(MPI_Sendrecv(values, n ? 1 : 0, line, 0, 7, to, COUNT, t, 0, 7, MPI_COMM_SELF, &status));
        CALL(MPI_Get_count(&status, t, &count));
        CALL(MPI_Get_elements(&status, t, &elements));
        printf("after %ld elements: count %d, elements %d\n", n, count, elements);
        if (CHECK_COUNTS) {
            same("MPI_Get_count", COUNT && bytes % (SIZE / COUNT) ? MPI_UNDEFINED : bytes / (SIZE / COUNT), count);
            same("MPI_Get_elements", n, elements);
        }
        if (CHECK_BYTES) {
            scatter(values, bytes, want);
            same_memory("received", want, to);
        }
    }
}

int main(int argc, char **argv)
{
    CALL(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Datatype t = build();
    if (COMMIT)
        CALL(MPI_Type_commit(&t));
    MAP;
    check(t);
    puts(bad ? "wrong" : "right");
    fflush(stdout);
    MPI_Finalize();
    return bad;
}
