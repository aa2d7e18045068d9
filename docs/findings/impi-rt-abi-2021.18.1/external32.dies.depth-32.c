/*
 * external32.dies.depth-32: intel 2021.18.1
 * 1 of hindexed_block(1,[8],vector(1,1,1,dup(vector(1,1,1,vector(1,1,1,hindexed_block(1,[8],dup(hindexed_block(1,[8],hindexed_block(1,[8],dup(hindexed([1],[8],vector(1,1,1,hindexed([1],[8],struct([1],[0],[hindexed_block(1,[8],vector(1,1,1,hindexed([1],[0],struct([1],[0],[vector(1,1,1,hindexed([1],[0],dup(vector(1,1,1,dup(struct([1],[0],[hindexed_block(1,[8],hindexed_block(1,[8],dup(hindexed_block(1,[8],vector(1,1,1,dup(hvector(2,1,24,hvector(2,1,12,hvector(2,1,6,short)))))))))]))))))]))))]))))))))))))))
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

#define COUNT 1
#define BOUNDS 34

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
    entry(at + 0, 2, 0, MPI_SHORT);
}

static void walk1(long at)
{
    for (long i = 0; i < 2; i++)
        for (long j = 0; j < 1; j++)
            walk0(at + i * 6 * 1 + j * extents[0]);
}

static void walk2(long at)
{
    for (long i = 0; i < 2; i++)
        for (long j = 0; j < 1; j++)
            walk1(at + i * 12 * 1 + j * extents[1]);
}

static void walk3(long at)
{
    for (long i = 0; i < 2; i++)
        for (long j = 0; j < 1; j++)
            walk2(at + i * 24 * 1 + j * extents[2]);
}

static void walk4(long at)
{
    walk3(at);
}

static void walk5(long at)
{
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < 1; j++)
            walk4(at + i * 1 * extents[4] + j * extents[4]);
}

static void walk6(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk5(at + where[i] * 1 + j * extents[5]);
}

static void walk7(long at)
{
    walk6(at);
}

static void walk8(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk7(at + where[i] * 1 + j * extents[7]);
}

static void walk9(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk8(at + where[i] * 1 + j * extents[8]);
}

static void walk10(long at)
{
    for (long j = 0; j < 1; j++)
        walk9(at + 0 + j * extents[9]);
}

static void walk11(long at)
{
    walk10(at);
}

static void walk12(long at)
{
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < 1; j++)
            walk11(at + i * 1 * extents[11] + j * extents[11]);
}

static void walk13(long at)
{
    walk12(at);
}

static void walk14(long at)
{
    static const long where[] = {0}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk13(at + where[i] * 1 + j * extents[13]);
}

static void walk15(long at)
{
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < 1; j++)
            walk14(at + i * 1 * extents[14] + j * extents[14]);
}

static void walk16(long at)
{
    for (long j = 0; j < 1; j++)
        walk15(at + 0 + j * extents[15]);
}

static void walk17(long at)
{
    static const long where[] = {0}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk16(at + where[i] * 1 + j * extents[16]);
}

static void walk18(long at)
{
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < 1; j++)
            walk17(at + i * 1 * extents[17] + j * extents[17]);
}

static void walk19(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk18(at + where[i] * 1 + j * extents[18]);
}

static void walk20(long at)
{
    for (long j = 0; j < 1; j++)
        walk19(at + 0 + j * extents[19]);
}

static void walk21(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk20(at + where[i] * 1 + j * extents[20]);
}

static void walk22(long at)
{
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < 1; j++)
            walk21(at + i * 1 * extents[21] + j * extents[21]);
}

static void walk23(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk22(at + where[i] * 1 + j * extents[22]);
}

static void walk24(long at)
{
    walk23(at);
}

static void walk25(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk24(at + where[i] * 1 + j * extents[24]);
}

static void walk26(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk25(at + where[i] * 1 + j * extents[25]);
}

static void walk27(long at)
{
    walk26(at);
}

static void walk28(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk27(at + where[i] * 1 + j * extents[27]);
}

static void walk29(long at)
{
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < 1; j++)
            walk28(at + i * 1 * extents[28] + j * extents[28]);
}

static void walk30(long at)
{
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < 1; j++)
            walk29(at + i * 1 * extents[29] + j * extents[29]);
}

static void walk31(long at)
{
    walk30(at);
}

static void walk32(long at)
{
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < 1; j++)
            walk31(at + i * 1 * extents[31] + j * extents[31]);
}

static void walk33(long at)
{
    static const long where[] = {8}, copies[] = {1};
    for (long i = 0; i < 1; i++)
        for (long j = 0; j < copies[i]; j++)
            walk32(at + where[i] * 1 + j * extents[32]);
}

#define WALK walk33

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
    CALL(MPI_Type_create_hvector(2, 1, 6, MPI_SHORT, &t1));
    MPI_Datatype t2;
    CALL(MPI_Type_create_hvector(2, 1, 12, t1, &t2));
    MPI_Datatype t3;
    CALL(MPI_Type_create_hvector(2, 1, 24, t2, &t3));
    MPI_Datatype t4;
    CALL(MPI_Type_dup(t3, &t4));
    MPI_Datatype t5;
    CALL(MPI_Type_vector(1, 1, 1, t4, &t5));
    MPI_Datatype t6;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t5, &t6));
    MPI_Datatype t7;
    CALL(MPI_Type_dup(t6, &t7));
    MPI_Datatype t8;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t7, &t8));
    MPI_Datatype t9;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t8, &t9));
    MPI_Datatype t10;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t9}, &t10));
    MPI_Datatype t11;
    CALL(MPI_Type_dup(t10, &t11));
    MPI_Datatype t12;
    CALL(MPI_Type_vector(1, 1, 1, t11, &t12));
    MPI_Datatype t13;
    CALL(MPI_Type_dup(t12, &t13));
    MPI_Datatype t14;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){0}, t13, &t14));
    MPI_Datatype t15;
    CALL(MPI_Type_vector(1, 1, 1, t14, &t15));
    MPI_Datatype t16;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t15}, &t16));
    MPI_Datatype t17;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){0}, t16, &t17));
    MPI_Datatype t18;
    CALL(MPI_Type_vector(1, 1, 1, t17, &t18));
    MPI_Datatype t19;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t18, &t19));
    MPI_Datatype t20;
    CALL(MPI_Type_create_struct(1, (int[]){1}, (MPI_Aint[]){0}, (MPI_Datatype[]){t19}, &t20));
    MPI_Datatype t21;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){8}, t20, &t21));
    MPI_Datatype t22;
    CALL(MPI_Type_vector(1, 1, 1, t21, &t22));
    MPI_Datatype t23;
    CALL(MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){8}, t22, &t23));
    MPI_Datatype t24;
    CALL(MPI_Type_dup(t23, &t24));
    MPI_Datatype t25;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t24, &t25));
    MPI_Datatype t26;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t25, &t26));
    MPI_Datatype t27;
    CALL(MPI_Type_dup(t26, &t27));
    MPI_Datatype t28;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t27, &t28));
    MPI_Datatype t29;
    CALL(MPI_Type_vector(1, 1, 1, t28, &t29));
    MPI_Datatype t30;
    CALL(MPI_Type_vector(1, 1, 1, t29, &t30));
    MPI_Datatype t31;
    CALL(MPI_Type_dup(t30, &t31));
    MPI_Datatype t32;
    CALL(MPI_Type_vector(1, 1, 1, t31, &t32));
    MPI_Datatype t33;
    CALL(MPI_Type_create_hindexed_block(1, 1, (MPI_Aint[]){8}, t32, &t33));
    bounds(0, MPI_SHORT);
    bounds(1, t1);
    bounds(2, t2);
    bounds(3, t3);
    bounds(4, t4);
    bounds(5, t5);
    bounds(6, t6);
    bounds(7, t7);
    bounds(8, t8);
    bounds(9, t9);
    bounds(10, t10);
    bounds(11, t11);
    bounds(12, t12);
    bounds(13, t13);
    bounds(14, t14);
    bounds(15, t15);
    bounds(16, t16);
    bounds(17, t17);
    bounds(18, t18);
    bounds(19, t19);
    bounds(20, t20);
    bounds(21, t21);
    bounds(22, t22);
    bounds(23, t23);
    bounds(24, t24);
    bounds(25, t25);
    bounds(26, t26);
    bounds(27, t27);
    bounds(28, t28);
    bounds(29, t29);
    bounds(30, t30);
    bounds(31, t31);
    bounds(32, t32);
    bounds(33, t33);
    return t33;
}

/* Values one after the other, and in external32. */
static const unsigned char values[] = {0x01, 0x00, 0x02, 0x00, 0x03, 0x00, 0x04, 0x00, 0x05, 0x00, 0x06, 0x00, 0x07, 0x00, 0x08, 0x00};
static const unsigned char external[] = {0x00, 0x01, 0x00, 0x02, 0x00, 0x03, 0x00, 0x04, 0x00, 0x05, 0x00, 0x06, 0x00, 0x07, 0x00, 0x08};
#define EXTERNAL 16
#define COMMIT 1
#define MAP instances(COUNT)

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
    MAP;
    check(t);
    puts(bad ? "wrong" : "right");
    fflush(stdout);
    MPI_Finalize();
    return bad;
}
