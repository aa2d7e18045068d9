/*
 * elements.dies-after-others: openmpi 5.0.11
 * 3 of hvector(5,2,-1,hvector(3,2,3,resized(-4,40,hindexed_block(1,[0,38,81],char))))
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGABRT: free(): invalid next size (normal)
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
#define SIZE 540
#define ELEMENTS 540
#define INSTANCE 180
#define LOW (-4)
#define HIGH 566
#define OVERLAPS 1
#define ENTRIES 540
#define RUNS 1
/* Displacement, bytes, and whether these are x87's long doubles, in packing order. */
static const long map[][3] = {{0, 1, 0}, {38, 1, 0}, {81, 1, 0}, {40, 1, 0}, {78, 1, 0}, {121, 1, 0}, {3, 1, 0}, {41, 1, 0}, {84, 1, 0}, {43, 1, 0}, {81, 1, 0}, {124, 1, 0}, {6, 1, 0}, {44, 1, 0}, {87, 1, 0}, {46, 1, 0}, {84, 1, 0}, {127, 1, 0}, {86, 1, 0}, {124, 1, 0}, {167, 1, 0}, {126, 1, 0}, {164, 1, 0}, {207, 1, 0}, {89, 1, 0}, {127, 1, 0}, {170, 1, 0}, {129, 1, 0}, {167, 1, 0}, {210, 1, 0}, {92, 1, 0}, {130, 1, 0}, {173, 1, 0}, {132, 1, 0}, {170, 1, 0}, {213, 1, 0}, {-1, 1, 0}, {37, 1, 0}, {80, 1, 0}, {39, 1, 0}, {77, 1, 0}, {120, 1, 0}, {2, 1, 0}, {40, 1, 0}, {83, 1, 0}, {42, 1, 0}, {80, 1, 0}, {123, 1, 0}, {5, 1, 0}, {43, 1, 0}, {86, 1, 0}, {45, 1, 0}, {83, 1, 0}, {126, 1, 0}, {85, 1, 0}, {123, 1, 0}, {166, 1, 0}, {125, 1, 0}, {163, 1, 0}, {206, 1, 0}, {88, 1, 0}, {126, 1, 0}, {169, 1, 0}, {128, 1, 0}, {166, 1, 0}, {209, 1, 0}, {91, 1, 0}, {129, 1, 0}, {172, 1, 0}, {131, 1, 0}, {169, 1, 0}, {212, 1, 0}, {-2, 1, 0}, {36, 1, 0}, {79, 1, 0}, {38, 1, 0}, {76, 1, 0}, {119, 1, 0}, {1, 1, 0}, {39, 1, 0}, {82, 1, 0}, {41, 1, 0}, {79, 1, 0}, {122, 1, 0}, {4, 1, 0}, {42, 1, 0}, {85, 1, 0}, {44, 1, 0}, {82, 1, 0}, {125, 1, 0}, {84, 1, 0}, {122, 1, 0}, {165, 1, 0}, {124, 1, 0}, {162, 1, 0}, {205, 1, 0}, {87, 1, 0}, {125, 1, 0}, {168, 1, 0}, {127, 1, 0}, {165, 1, 0}, {208, 1, 0}, {90, 1, 0}, {128, 1, 0}, {171, 1, 0}, {130, 1, 0}, {168, 1, 0}, {211, 1, 0}, {-3, 1, 0}, {35, 1, 0}, {78, 1, 0}, {37, 1, 0}, {75, 1, 0}, {118, 1, 0}, {0, 1, 0}, {38, 1, 0}, {81, 1, 0}, {40, 1, 0}, {78, 1, 0}, {121, 1, 0}, {3, 1, 0}, {41, 1, 0}, {84, 1, 0}, {43, 1, 0}, {81, 1, 0}, {124, 1, 0}, {83, 1, 0}, {121, 1, 0}, {164, 1, 0}, {123, 1, 0}, {161, 1, 0}, {204, 1, 0}, {86, 1, 0}, {124, 1, 0}, {167, 1, 0}, {126, 1, 0}, {164, 1, 0}, {207, 1, 0}, {89, 1, 0}, {127, 1, 0}, {170, 1, 0}, {129, 1, 0}, {167, 1, 0}, {210, 1, 0}, {-4, 1, 0}, {34, 1, 0}, {77, 1, 0}, {36, 1, 0}, {74, 1, 0}, {117, 1, 0}, {-1, 1, 0}, {37, 1, 0}, {80, 1, 0}, {39, 1, 0}, {77, 1, 0}, {120, 1, 0}, {2, 1, 0}, {40, 1, 0}, {83, 1, 0}, {42, 1, 0}, {80, 1, 0}, {123, 1, 0}, {82, 1, 0}, {120, 1, 0}, {163, 1, 0}, {122, 1, 0}, {160, 1, 0}, {203, 1, 0}, {85, 1, 0}, {123, 1, 0}, {166, 1, 0}, {125, 1, 0}, {163, 1, 0}, {206, 1, 0}, {88, 1, 0}, {126, 1, 0}, {169, 1, 0}, {128, 1, 0}, {166, 1, 0}, {209, 1, 0}, {176, 1, 0}, {214, 1, 0}, {257, 1, 0}, {216, 1, 0}, {254, 1, 0}, {297, 1, 0}, {179, 1, 0}, {217, 1, 0}, {260, 1, 0}, {219, 1, 0}, {257, 1, 0}, {300, 1, 0}, {182, 1, 0}, {220, 1, 0}, {263, 1, 0}, {222, 1, 0}, {260, 1, 0}, {303, 1, 0}, {262, 1, 0}, {300, 1, 0}, {343, 1, 0}, {302, 1, 0}, {340, 1, 0}, {383, 1, 0}, {265, 1, 0}, {303, 1, 0}, {346, 1, 0}, {305, 1, 0}, {343, 1, 0}, {386, 1, 0}, {268, 1, 0}, {306, 1, 0}, {349, 1, 0}, {308, 1, 0}, {346, 1, 0}, {389, 1, 0}, {175, 1, 0}, {213, 1, 0}, {256, 1, 0}, {215, 1, 0}, {253, 1, 0}, {296, 1, 0}, {178, 1, 0}, {216, 1, 0}, {259, 1, 0}, {218, 1, 0}, {256, 1, 0}, {299, 1, 0}, {181, 1, 0}, {219, 1, 0}, {262, 1, 0}, {221, 1, 0}, {259, 1, 0}, {302, 1, 0}, {261, 1, 0}, {299, 1, 0}, {342, 1, 0}, {301, 1, 0}, {339, 1, 0}, {382, 1, 0}, {264, 1, 0}, {302, 1, 0}, {345, 1, 0}, {304, 1, 0}, {342, 1, 0}, {385, 1, 0}, {267, 1, 0}, {305, 1, 0}, {348, 1, 0}, {307, 1, 0}, {345, 1, 0}, {388, 1, 0}, {174, 1, 0}, {212, 1, 0}, {255, 1, 0}, {214, 1, 0}, {252, 1, 0}, {295, 1, 0}, {177, 1, 0}, {215, 1, 0}, {258, 1, 0}, {217, 1, 0}, {255, 1, 0}, {298, 1, 0}, {180, 1, 0}, {218, 1, 0}, {261, 1, 0}, {220, 1, 0}, {258, 1, 0}, {301, 1, 0}, {260, 1, 0}, {298, 1, 0}, {341, 1, 0}, {300, 1, 0}, {338, 1, 0}, {381, 1, 0}, {263, 1, 0}, {301, 1, 0}, {344, 1, 0}, {303, 1, 0}, {341, 1, 0}, {384, 1, 0}, {266, 1, 0}, {304, 1, 0}, {347, 1, 0}, {306, 1, 0}, {344, 1, 0}, {387, 1, 0}, {173, 1, 0}, {211, 1, 0}, {254, 1, 0}, {213, 1, 0}, {251, 1, 0}, {294, 1, 0}, {176, 1, 0}, {214, 1, 0}, {257, 1, 0}, {216, 1, 0}, {254, 1, 0}, {297, 1, 0}, {179, 1, 0}, {217, 1, 0}, {260, 1, 0}, {219, 1, 0}, {257, 1, 0}, {300, 1, 0}, {259, 1, 0}, {297, 1, 0}, {340, 1, 0}, {299, 1, 0}, {337, 1, 0}, {380, 1, 0}, {262, 1, 0}, {300, 1, 0}, {343, 1, 0}, {302, 1, 0}, {340, 1, 0}, {383, 1, 0}, {265, 1, 0}, {303, 1, 0}, {346, 1, 0}, {305, 1, 0}, {343, 1, 0}, {386, 1, 0}, {172, 1, 0}, {210, 1, 0}, {253, 1, 0}, {212, 1, 0}, {250, 1, 0}, {293, 1, 0}, {175, 1, 0}, {213, 1, 0}, {256, 1, 0}, {215, 1, 0}, {253, 1, 0}, {296, 1, 0}, {178, 1, 0}, {216, 1, 0}, {259, 1, 0}, {218, 1, 0}, {256, 1, 0}, {299, 1, 0}, {258, 1, 0}, {296, 1, 0}, {339, 1, 0}, {298, 1, 0}, {336, 1, 0}, {379, 1, 0}, {261, 1, 0}, {299, 1, 0}, {342, 1, 0}, {301, 1, 0}, {339, 1, 0}, {382, 1, 0}, {264, 1, 0}, {302, 1, 0}, {345, 1, 0}, {304, 1, 0}, {342, 1, 0}, {385, 1, 0}, {352, 1, 0}, {390, 1, 0}, {433, 1, 0}, {392, 1, 0}, {430, 1, 0}, {473, 1, 0}, {355, 1, 0}, {393, 1, 0}, {436, 1, 0}, {395, 1, 0}, {433, 1, 0}, {476, 1, 0}, {358, 1, 0}, {396, 1, 0}, {439, 1, 0}, {398, 1, 0}, {436, 1, 0}, {479, 1, 0}, {438, 1, 0}, {476, 1, 0}, {519, 1, 0}, {478, 1, 0}, {516, 1, 0}, {559, 1, 0}, {441, 1, 0}, {479, 1, 0}, {522, 1, 0}, {481, 1, 0}, {519, 1, 0}, {562, 1, 0}, {444, 1, 0}, {482, 1, 0}, {525, 1, 0}, {484, 1, 0}, {522, 1, 0}, {565, 1, 0}, {351, 1, 0}, {389, 1, 0}, {432, 1, 0}, {391, 1, 0}, {429, 1, 0}, {472, 1, 0}, {354, 1, 0}, {392, 1, 0}, {435, 1, 0}, {394, 1, 0}, {432, 1, 0}, {475, 1, 0}, {357, 1, 0}, {395, 1, 0}, {438, 1, 0}, {397, 1, 0}, {435, 1, 0}, {478, 1, 0}, {437, 1, 0}, {475, 1, 0}, {518, 1, 0}, {477, 1, 0}, {515, 1, 0}, {558, 1, 0}, {440, 1, 0}, {478, 1, 0}, {521, 1, 0}, {480, 1, 0}, {518, 1, 0}, {561, 1, 0}, {443, 1, 0}, {481, 1, 0}, {524, 1, 0}, {483, 1, 0}, {521, 1, 0}, {564, 1, 0}, {350, 1, 0}, {388, 1, 0}, {431, 1, 0}, {390, 1, 0}, {428, 1, 0}, {471, 1, 0}, {353, 1, 0}, {391, 1, 0}, {434, 1, 0}, {393, 1, 0}, {431, 1, 0}, {474, 1, 0}, {356, 1, 0}, {394, 1, 0}, {437, 1, 0}, {396, 1, 0}, {434, 1, 0}, {477, 1, 0}, {436, 1, 0}, {474, 1, 0}, {517, 1, 0}, {476, 1, 0}, {514, 1, 0}, {557, 1, 0}, {439, 1, 0}, {477, 1, 0}, {520, 1, 0}, {479, 1, 0}, {517, 1, 0}, {560, 1, 0}, {442, 1, 0}, {480, 1, 0}, {523, 1, 0}, {482, 1, 0}, {520, 1, 0}, {563, 1, 0}, {349, 1, 0}, {387, 1, 0}, {430, 1, 0}, {389, 1, 0}, {427, 1, 0}, {470, 1, 0}, {352, 1, 0}, {390, 1, 0}, {433, 1, 0}, {392, 1, 0}, {430, 1, 0}, {473, 1, 0}, {355, 1, 0}, {393, 1, 0}, {436, 1, 0}, {395, 1, 0}, {433, 1, 0}, {476, 1, 0}, {435, 1, 0}, {473, 1, 0}, {516, 1, 0}, {475, 1, 0}, {513, 1, 0}, {556, 1, 0}, {438, 1, 0}, {476, 1, 0}, {519, 1, 0}, {478, 1, 0}, {516, 1, 0}, {559, 1, 0}, {441, 1, 0}, {479, 1, 0}, {522, 1, 0}, {481, 1, 0}, {519, 1, 0}, {562, 1, 0}, {348, 1, 0}, {386, 1, 0}, {429, 1, 0}, {388, 1, 0}, {426, 1, 0}, {469, 1, 0}, {351, 1, 0}, {389, 1, 0}, {432, 1, 0}, {391, 1, 0}, {429, 1, 0}, {472, 1, 0}, {354, 1, 0}, {392, 1, 0}, {435, 1, 0}, {394, 1, 0}, {432, 1, 0}, {475, 1, 0}, {434, 1, 0}, {472, 1, 0}, {515, 1, 0}, {474, 1, 0}, {512, 1, 0}, {555, 1, 0}, {437, 1, 0}, {475, 1, 0}, {518, 1, 0}, {477, 1, 0}, {515, 1, 0}, {558, 1, 0}, {440, 1, 0}, {478, 1, 0}, {521, 1, 0}, {480, 1, 0}, {518, 1, 0}, {561, 1, 0}};
static const long run_lengths[] = {540};
#define run_types ((MPI_Datatype[]){MPI_CHAR})

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
    CALL(MPI_Type_create_hindexed_block(3, 1, (MPI_Aint[]){0, 38, 81}, MPI_CHAR, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_resized(t1, -4, 40, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_hvector(3, 2, 3, t2, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_create_hvector(5, 2, -1, t3, &t4));
    return t4;
}
#define CHECK_BYTES 1
#define CHECK_COUNTS 0
#define COMMIT 1

/* Messages with some of the elements. */
static void check(MPI_Datatype t)
{
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
            same("MPI_Get_count", bytes % (SIZE / COUNT) ? MPI_UNDEFINED : bytes / (SIZE / COUNT), count);
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
    check(t);
    puts(bad ? "wrong" : "right");
    fflush(stdout);
    MPI_Finalize();
    return bad;
}
