/*
 * external32.external-unpacked.empty-member: intel 2021.18.1
 * 1 of struct([1,1],[0,0],[contiguous(0,short),short])
 * MPI 5.0, 14.5.2: external32 has one form for every value: big-endian, in the size of its table
 * expected: the byte at displacement 0 is 0x01
 * got: the byte at displacement 0 is 0x00
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

#define COUNT 1
#define SIZE 2
#define ELEMENTS 1
#define INSTANCE 1
#define LOW 0
#define HIGH 2
#define OVERLAPS 0
#define ENTRIES 1
#define RUNS 1
/* Displacement, bytes, and whether these are x87's long doubles, in packing order. */
static const long map[][3] = {{0, 2, 0}};
static const long run_lengths[] = {1};
#define run_types ((MPI_Datatype[]){MPI_SHORT})

/* Byte i of a pattern. */
static unsigned char pattern(unsigned long long seed, unsigned long long i)
{
    unsigned long long mixed = (i / 8 + 1 + (seed << 32)) * 0x9e3779b97f4a7c15ull;
    return (unsigned char)((mixed ^ (mixed >> 29)) >> (i % 8 * 8));
}

/* Memory from displacement LOW to HIGH, displacement 0 on a multiple of 16, with guards of 64 bytes. */
#define LENGTH (HIGH - LOW)
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
static int is_value(long entry, long i)
{
    return !map[entry][2] || i % 16 < 10;
}

/* What a stream of the map holds, by its definition. */
static unsigned char *gathered(const unsigned char *user)
{
    unsigned char *stream = malloc(SIZE + 1);
    long at = 0;
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e][1]; i++)
            stream[at++] = user[map[e][0] + i];
    return stream;
}

/* The first n bytes of a stream into memory, by the definition. */
static void scatter(const unsigned char *stream, long n, unsigned char *user)
{
    long at = 0;
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e][1] && at < n; i++)
            user[map[e][0] + i] = stream[at++];
}

static void same_stream(const char *what, const unsigned char *expected, const unsigned char *got)
{
    long at = 0;
    for (long e = 0; e < ENTRIES; e++)
        for (long i = 0; i < map[e][1]; i++, at++)
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
        for (long i = 0; i < map[e][1]; i++)
            matters[map[e][0] + i - LOW] = is_value(e, i);
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
    int lengths[RUNS];
    MPI_Aint at[RUNS];
    MPI_Datatype types[RUNS], t;
    long runs = 0, next = 0;
    for (long r = 0; r < RUNS && n > 0; r++) {
        int size;
        lengths[r] = run_lengths[r] < n ? run_lengths[r] : n;
        types[r] = run_types[r];
        at[r] = next;
        MPI_Type_size(types[r], &size);
        next += (long)size * lengths[r];
        n -= lengths[r];
        runs = r + 1;
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
    CALL(MPI_Type_contiguous(0, MPI_SHORT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 0}, (MPI_Datatype[]){t1, MPI_SHORT}, &t2));
    return t2;
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x00};
static const unsigned char external[] = {0x00, 0x01};
#define EXTERNAL 2
#define COMMIT 1

static void check(MPI_Datatype t)
{
    unsigned char *from = memory(3), *to = memory(3), *want = memory(3), *stream = malloc(EXTERNAL + 64);
    MPI_Aint size, position = 0;
    scatter(values, SIZE, from);
    CALL(MPI_Pack_external_size("external32", COUNT, t, &size));
    same("MPI_Pack_external_size", EXTERNAL, size);
    memset(stream, 0xee, EXTERNAL + 64);
    CALL(MPI_Pack_external("external32", from, COUNT, t, stream, EXTERNAL + 64, &position));
    same("position after MPI_Pack_external", EXTERNAL, position);
    for (long i = 0; i < EXTERNAL; i++)
        if (stream[i] != external[i]) {
            printf("byte %ld in external32: expected %#04x, got %#04x\n", i, external[i], stream[i]);
            bad = 1;
            break;
        }
    position = 0;
    CALL(MPI_Unpack_external("external32", external, EXTERNAL, &position, to, COUNT, t));
    scatter(values, SIZE, want);
    same_memory("from external32", want, to);
}

int main(int argc, char **argv)
{
    CALL(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Datatype t = build();
    if (COMMIT)
        CALL(MPI_Type_commit(&t));
    check(t);
    puts(bad ? "wrong" : "right");
    fflush(stdout);
    MPI_Finalize();
    return bad;
}
