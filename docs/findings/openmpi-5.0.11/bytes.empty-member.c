/*
 * bytes.empty-member: openmpi 5.0.11
 * 2 of struct([1,1],[0,0],[byte,resized(0,0,indexed_block(0,[],byte))])
 * MPI 5.0, 5.2: what is packed and unpacked again, or sent, arrives as it was
 * expected: packed byte 1 is 0x66
 * got: packed byte 1 is 0xa5
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

#define COUNT 2
#define BOUNDS 4

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
    entry(at + 0, 1, 0, MPI_BYTE);
}

static void walk1(long at)
{
    static const long where[] = {0}, copies[] = {0};
    for (long i = 0; i < 0; i++)
        for (long j = 0; j < copies[i]; j++)
            walk0(at + where[i] * extents[0] + j * extents[0]);
}

static void walk2(long at)
{
    walk1(at);
}

static void walk3(long at)
{
    for (long j = 0; j < 1; j++)
        walk0(at + 0 + j * extents[0]);
    for (long j = 0; j < 1; j++)
        walk2(at + 0 + j * extents[2]);
}

#define WALK walk3

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
    CALL(MPI_Type_create_indexed_block(0, 0, (int[]){0}, MPI_BYTE, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(t1, 0, 0, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){MPI_BYTE, t2}, &t3));
    bounds(0, MPI_BYTE);
    bounds(1, t1);
    bounds(2, t2);
    bounds(3, t3);
    return t3;
}
#define CHECK_FORMAT 0
#define CHECK_PADDING 0
#define COMMIT 1
#define MAP instances(COUNT)

/* What is packed and unpacked again is as it was, and nothing else changes. */
static void check(MPI_Datatype t)
{
    unsigned char *from = memory(1), *to = memory(3), *want = memory(3), *stream_want = gathered(from);
    int room, position = 0, end;
    CALL(MPI_Pack_size(COUNT, t, MPI_COMM_SELF, &room));
    same("whether MPI_Pack_size is an upper bound", 1, room >= SIZE);
    if (room < SIZE)
        room = SIZE;
    unsigned char *stream = calloc(2 * room + 64, 1);
    CALL(MPI_Pack(from, COUNT, t, stream, room, &position, MPI_COMM_SELF));
    if (CHECK_FORMAT)
        same_stream("packed", stream_want, stream);
    if (CHECK_PADDING)
        same("whether all bytes are as in memory", 0, memcmp(stream, stream_want, SIZE));
    end = position;
    position = 0;
    if (OVERLAPS) {
        /* Nothing may be unpacked into entries that overlap. */
        unsigned char *values = stream_of(3);
        CALL(MPI_Unpack(stream, end, &position, values, 1, flat(ELEMENTS), MPI_COMM_SELF));
        same_stream("unpacked", stream_want, values);
        return;
    }
    CALL(MPI_Unpack(stream, end, &position, to, COUNT, t, MPI_COMM_SELF));
    same("position after unpacking", end, position);
    scatter(stream_want, SIZE, want);
    same_memory("unpacked", want, to);
    /* The same twice, from another position. */
    position = 5;
    CALL(MPI_Pack(from, COUNT, t, stream, 2 * room + 64, &position, MPI_COMM_SELF));
    same("position after packing from 5", 5 + end, position);
    CALL(MPI_Pack(from, COUNT, t, stream, 2 * room + 64, &position, MPI_COMM_SELF));
    same("position after packing again", 5 + 2 * end, position);
    position = 5 + end;
    to = memory(3);
    CALL(MPI_Unpack(stream, 5 + 2 * end, &position, to, COUNT, t, MPI_COMM_SELF));
    same_memory("unpacked from a position", want, to);
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
