/*
 * commit.dies-after-others: openmpi 5.0.11
 * 3 of hvector(5,2,-1,real16)
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGABRT: free(): invalid size
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

#define COUNT 3
#define SIZE 480
#define ELEMENTS 30
#define INSTANCE 10
#define LOW (-4)
#define HIGH 128
#define OVERLAPS 1
#define ENTRIES 15
#define RUNS 1
/* Displacement, bytes, and whether these are x87's long doubles, in packing order. */
static const long map[][3] = {{0, 32, 0}, {-1, 32, 0}, {-2, 32, 0}, {-3, 32, 0}, {-4, 32, 0}, {48, 32, 0}, {47, 32, 0}, {46, 32, 0}, {45, 32, 0}, {44, 32, 0}, {96, 32, 0}, {95, 32, 0}, {94, 32, 0}, {93, 32, 0}, {92, 32, 0}};
static const long run_lengths[] = {30};
#define run_types ((MPI_Datatype[]){MPI_REAL16})

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
    CALL(MPI_Type_create_hvector(5, 2, -1, MPI_REAL16, &t1));
    return t1;
}

static MPI_Datatype orphaned(void)
{
    MPI_Datatype t1;
    CALL(MPI_Type_create_hvector(5, 2, -1, MPI_REAL16, &t1));
    return t1;
}
#define NODES 1
#define COMMIT 1

static void packs(const char *what, MPI_Datatype t)
{
    unsigned char *from = memory(1), *want = gathered(from), *stream = calloc(SIZE + 64, 1);
    int position = 0;
    CALL(MPI_Pack(from, COUNT, t, stream, SIZE + 64, &position, MPI_COMM_SELF));
    same("packed bytes", SIZE, position);
    same_stream(what, want, stream);
    free(stream);
    free(want);
}

static void check(MPI_Datatype t)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    CALL(MPI_Type_get_name(t, name, &length));
    same("length of the name of a new datatype", 0, length);
    CALL(MPI_Type_set_name(t, "ddtc"));
    CALL(MPI_Type_get_name(t, name, &length));
    same("whether the name is the one set", 0, strcmp(name, "ddtc"));
    CALL(MPI_Type_commit(&t));
    if (!SIZE)
        return;
    packs("committed twice", t);
    MPI_Datatype orphan = orphaned(), duplicate;
    CALL(MPI_Type_commit(&orphan));
    CALL(MPI_Type_dup(orphan, &duplicate));
    packs("parts freed", orphan);
    CALL(MPI_Type_free(&orphan));
    packs("original freed", duplicate);
    static MPI_Datatype many[1100];
    int n = 1100 / NODES + 1;
    for (int i = 0; i < n; i++) {
        many[i] = build();
        CALL(MPI_Type_commit(&many[i]));
    }
    packs("the last of many", many[n - 1]);
    packs("one of many", many[n / 2]);
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
