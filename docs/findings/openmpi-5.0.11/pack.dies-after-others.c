/*
 * pack.dies-after-others: openmpi 5.0.11
 * 3 of hvector(1,2,4096,hvector(3,2,-1,hvector(1,1,1,hvector(1,2,3,hvector(2,1,-1,hvector(2,4,6758,struct([3,1,2,1],[3,7,9,14],[vector(0,438,438,packed),int,vector(0,438,438,packed),vector(0,438,438,packed)])))))))
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: the calls return
 * got: the process ends by SIGSEGV
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
#define SIZE 4608
#define ELEMENTS 1152
#define INSTANCE 384
#define LOW 0
#define HIGH 162649
#define OVERLAPS 1
#define ENTRIES 288
#define RUNS 1
/* Displacement, bytes, and whether these are x87's long doubles, in packing order. */
static const long map[][3] = {{7, 16, 0}, {6765, 16, 0}, {6, 16, 0}, {6764, 16, 0}, {6783, 16, 0}, {13541, 16, 0}, {6782, 16, 0}, {13540, 16, 0}, {13559, 16, 0}, {20317, 16, 0}, {13558, 16, 0}, {20316, 16, 0}, {20335, 16, 0}, {27093, 16, 0}, {20334, 16, 0}, {27092, 16, 0}, {6, 16, 0}, {6764, 16, 0}, {5, 16, 0}, {6763, 16, 0}, {6782, 16, 0}, {13540, 16, 0}, {6781, 16, 0}, {13539, 16, 0}, {13558, 16, 0}, {20316, 16, 0}, {13557, 16, 0}, {20315, 16, 0}, {20334, 16, 0}, {27092, 16, 0}, {20333, 16, 0}, {27091, 16, 0}, {5, 16, 0}, {6763, 16, 0}, {4, 16, 0}, {6762, 16, 0}, {6781, 16, 0}, {13539, 16, 0}, {6780, 16, 0}, {13538, 16, 0}, {13557, 16, 0}, {20315, 16, 0}, {13556, 16, 0}, {20314, 16, 0}, {20333, 16, 0}, {27091, 16, 0}, {20332, 16, 0}, {27090, 16, 0}, {27115, 16, 0}, {33873, 16, 0}, {27114, 16, 0}, {33872, 16, 0}, {33891, 16, 0}, {40649, 16, 0}, {33890, 16, 0}, {40648, 16, 0}, {40667, 16, 0}, {47425, 16, 0}, {40666, 16, 0}, {47424, 16, 0}, {47443, 16, 0}, {54201, 16, 0}, {47442, 16, 0}, {54200, 16, 0}, {27114, 16, 0}, {33872, 16, 0}, {27113, 16, 0}, {33871, 16, 0}, {33890, 16, 0}, {40648, 16, 0}, {33889, 16, 0}, {40647, 16, 0}, {40666, 16, 0}, {47424, 16, 0}, {40665, 16, 0}, {47423, 16, 0}, {47442, 16, 0}, {54200, 16, 0}, {47441, 16, 0}, {54199, 16, 0}, {27113, 16, 0}, {33871, 16, 0}, {27112, 16, 0}, {33870, 16, 0}, {33889, 16, 0}, {40647, 16, 0}, {33888, 16, 0}, {40646, 16, 0}, {40665, 16, 0}, {47423, 16, 0}, {40664, 16, 0}, {47422, 16, 0}, {47441, 16, 0}, {54199, 16, 0}, {47440, 16, 0}, {54198, 16, 0}, {54223, 16, 0}, {60981, 16, 0}, {54222, 16, 0}, {60980, 16, 0}, {60999, 16, 0}, {67757, 16, 0}, {60998, 16, 0}, {67756, 16, 0}, {67775, 16, 0}, {74533, 16, 0}, {67774, 16, 0}, {74532, 16, 0}, {74551, 16, 0}, {81309, 16, 0}, {74550, 16, 0}, {81308, 16, 0}, {54222, 16, 0}, {60980, 16, 0}, {54221, 16, 0}, {60979, 16, 0}, {60998, 16, 0}, {67756, 16, 0}, {60997, 16, 0}, {67755, 16, 0}, {67774, 16, 0}, {74532, 16, 0}, {67773, 16, 0}, {74531, 16, 0}, {74550, 16, 0}, {81308, 16, 0}, {74549, 16, 0}, {81307, 16, 0}, {54221, 16, 0}, {60979, 16, 0}, {54220, 16, 0}, {60978, 16, 0}, {60997, 16, 0}, {67755, 16, 0}, {60996, 16, 0}, {67754, 16, 0}, {67773, 16, 0}, {74531, 16, 0}, {67772, 16, 0}, {74530, 16, 0}, {74549, 16, 0}, {81307, 16, 0}, {74548, 16, 0}, {81306, 16, 0}, {81331, 16, 0}, {88089, 16, 0}, {81330, 16, 0}, {88088, 16, 0}, {88107, 16, 0}, {94865, 16, 0}, {88106, 16, 0}, {94864, 16, 0}, {94883, 16, 0}, {101641, 16, 0}, {94882, 16, 0}, {101640, 16, 0}, {101659, 16, 0}, {108417, 16, 0}, {101658, 16, 0}, {108416, 16, 0}, {81330, 16, 0}, {88088, 16, 0}, {81329, 16, 0}, {88087, 16, 0}, {88106, 16, 0}, {94864, 16, 0}, {88105, 16, 0}, {94863, 16, 0}, {94882, 16, 0}, {101640, 16, 0}, {94881, 16, 0}, {101639, 16, 0}, {101658, 16, 0}, {108416, 16, 0}, {101657, 16, 0}, {108415, 16, 0}, {81329, 16, 0}, {88087, 16, 0}, {81328, 16, 0}, {88086, 16, 0}, {88105, 16, 0}, {94863, 16, 0}, {88104, 16, 0}, {94862, 16, 0}, {94881, 16, 0}, {101639, 16, 0}, {94880, 16, 0}, {101638, 16, 0}, {101657, 16, 0}, {108415, 16, 0}, {101656, 16, 0}, {108414, 16, 0}, {108439, 16, 0}, {115197, 16, 0}, {108438, 16, 0}, {115196, 16, 0}, {115215, 16, 0}, {121973, 16, 0}, {115214, 16, 0}, {121972, 16, 0}, {121991, 16, 0}, {128749, 16, 0}, {121990, 16, 0}, {128748, 16, 0}, {128767, 16, 0}, {135525, 16, 0}, {128766, 16, 0}, {135524, 16, 0}, {108438, 16, 0}, {115196, 16, 0}, {108437, 16, 0}, {115195, 16, 0}, {115214, 16, 0}, {121972, 16, 0}, {115213, 16, 0}, {121971, 16, 0}, {121990, 16, 0}, {128748, 16, 0}, {121989, 16, 0}, {128747, 16, 0}, {128766, 16, 0}, {135524, 16, 0}, {128765, 16, 0}, {135523, 16, 0}, {108437, 16, 0}, {115195, 16, 0}, {108436, 16, 0}, {115194, 16, 0}, {115213, 16, 0}, {121971, 16, 0}, {115212, 16, 0}, {121970, 16, 0}, {121989, 16, 0}, {128747, 16, 0}, {121988, 16, 0}, {128746, 16, 0}, {128765, 16, 0}, {135523, 16, 0}, {128764, 16, 0}, {135522, 16, 0}, {135547, 16, 0}, {142305, 16, 0}, {135546, 16, 0}, {142304, 16, 0}, {142323, 16, 0}, {149081, 16, 0}, {142322, 16, 0}, {149080, 16, 0}, {149099, 16, 0}, {155857, 16, 0}, {149098, 16, 0}, {155856, 16, 0}, {155875, 16, 0}, {162633, 16, 0}, {155874, 16, 0}, {162632, 16, 0}, {135546, 16, 0}, {142304, 16, 0}, {135545, 16, 0}, {142303, 16, 0}, {142322, 16, 0}, {149080, 16, 0}, {142321, 16, 0}, {149079, 16, 0}, {149098, 16, 0}, {155856, 16, 0}, {149097, 16, 0}, {155855, 16, 0}, {155874, 16, 0}, {162632, 16, 0}, {155873, 16, 0}, {162631, 16, 0}, {135545, 16, 0}, {142303, 16, 0}, {135544, 16, 0}, {142302, 16, 0}, {142321, 16, 0}, {149079, 16, 0}, {142320, 16, 0}, {149078, 16, 0}, {149097, 16, 0}, {155855, 16, 0}, {149096, 16, 0}, {155854, 16, 0}, {155873, 16, 0}, {162631, 16, 0}, {155872, 16, 0}, {162630, 16, 0}};
static const long run_lengths[] = {1152};
#define run_types ((MPI_Datatype[]){MPI_INT})

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
    CALL(MPI_Type_vector(0, 438, 438, MPI_PACKED, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_vector(0, 438, 438, MPI_PACKED, &t2));
    MPI_Datatype t4;
    CALL(MPI_Type_vector(0, 438, 438, MPI_PACKED, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_create_struct(4, (int[]){3, 1, 2, 1}, (MPI_Aint[]){3, 7, 9, 14}, (MPI_Datatype[]){t4, MPI_INT, t2, t1}, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_create_hvector(2, 4, 6758, t5, &t6));
    MPI_Datatype t7;
    CALL(MPI_Type_create_hvector(2, 1, -1, t6, &t7));
    MPI_Datatype t8;
    CALL(MPI_Type_create_hvector(1, 2, 3, t7, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_create_hvector(1, 1, 1, t8, &t9));
    MPI_Datatype t10;
    CALL(MPI_Type_create_hvector(3, 2, -1, t9, &t10));
    MPI_Datatype t11;
    CALL(MPI_Type_create_hvector(1, 2, 4096, t10, &t11));
    return t11;
}
#define CHECK_FORMAT 0
#define CHECK_PADDING 0
#define COMMIT 1

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
    check(t);
    puts(bad ? "wrong" : "right");
    fflush(stdout);
    MPI_Finalize();
    return bad;
}
