/*
 * What the cases of docs/findings share. A case says which check it makes (#define CHECK_PACK and so on), includes this, and has what is its own:
 *
 *     build()  the datatype, by MPI's constructors
 *     walk()   its type map, for a check that moves bytes
 *     check()  the check, with what is expected
 *
 * `mpicc CASE.c && ./a.out` prints what is expected and got, and exits with 1 where the library does otherwise.
 * `ddtc report --program CASE.c` prints a case standing alone, with what it needs of this in place of the #include.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined CHECK_TRUNCATION
#include <sys/mman.h>
#include <unistd.h>
#endif

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

/* A case has these. */
static MPI_Datatype build(void);
static void check(MPI_Datatype t);

#if defined CHECK_PACK || defined CHECK_UNPACK || defined CHECK_ELEMENTS || defined CHECK_EXTERNAL32 || defined CHECK_MESSAGES || defined CHECK_COLLECTIVES || defined CHECK_COMMIT || defined CHECK_TRUNCATION
/* The type map in packing order, by the bounds that this library gives the parts of the datatype: displacement, bytes, and whether these are x87's
 * long doubles. */
struct entry {
    long at, bytes, padded;
    MPI_Datatype type;
};
static struct entry *map;
static long COUNT, ENTRIES, SIZE, LOW, HIGH, OVERLAPS;

/* The parts of the datatype have numbers, the datatype itself the last one: their extents. */
static long *extents, NODES;

/* A case has this: the entries of a part that stands at a displacement. */
static void walk(int node, long at);

static void bounds(int node, MPI_Datatype t)
{
    MPI_Aint lb, extent;
    CALL(MPI_Type_get_extent(t, &lb, &extent));
    if (node >= NODES)
        extents = realloc(extents, (NODES = node + 1) * sizeof *extents);
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

/* Blocks of copies of a part, a stride apart. */
static void row(long at, long blocks, long copies, long stride, int node)
{
    for (long i = 0; i < blocks; i++)
        for (long j = 0; j < copies; j++)
            walk(node, at + i * stride + j * extents[node]);
}

/* Blocks of copies of a part, at displacements in units. */
static void table(long at, long blocks, const long *where, const long *copies, long unit, int node)
{
    for (long i = 0; i < blocks; i++)
        for (long j = 0; j < copies[i]; j++)
            walk(node, at + where[i] * unit + j * extents[node]);
}

#define LENGTH (HIGH - LOW)

/* The map of n instances. */
static void instances(long n)
{
    map = NULL;
    ENTRIES = SIZE = LOW = HIGH = OVERLAPS = 0;
    for (long i = 0; i < n; i++)
        walk(NODES - 1, i * extents[NODES - 1]);
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

/* Commits the datatype, of which n instances are moved. */
static void commit(MPI_Datatype *t, long n)
{
    CALL(MPI_Type_commit(t));
    instances(COUNT = n);
}
#endif

#if defined CHECK_BOUNDS

/* What tells bounds returns. */
static void check_calls(MPI_Datatype t)
{
    MPI_Count size;
    MPI_Aint lb, extent;
    int small;
    CALL(MPI_Type_size_x(t, &size));
    CALL(MPI_Type_get_extent(t, &lb, &extent));
    CALL(MPI_Type_get_true_extent(t, &lb, &extent));
    CALL(MPI_Type_size(t, &small));
}

static void check_size(MPI_Datatype t, long long want)
{
    MPI_Count size;
    CALL(MPI_Type_size_x(t, &size));
    same("size", want, size);
}

/* The size is beyond an int. */
static void check_large_size(MPI_Datatype t)
{
    int small;
    CALL(MPI_Type_size(t, &small));
    same("size as an int", MPI_UNDEFINED, small);
}

static void check_bounds(MPI_Datatype t, long long want_lb, long long want_extent)
{
    MPI_Aint lb, extent;
    CALL(MPI_Type_get_extent(t, &lb, &extent));
    same("lower bound", want_lb, lb);
    same("extent", want_extent, extent);
}

static void check_true_bounds(MPI_Datatype t, long long want_lb, long long want_extent)
{
    MPI_Aint lb, extent;
    CALL(MPI_Type_get_true_extent(t, &lb, &extent));
    same("true lower bound", want_lb, lb);
    same("true extent", want_extent, extent);
}
#endif

#if defined CHECK_DECODE

#if MPI_VERSION >= 4
typedef MPI_Count length;
#define ENVELOPE(t, n, c) CALL(MPI_Type_get_envelope_c(t, &n[0], &n[1], &n[2], &n[3], c))
#define CONTENTS(t, n, i, a, l, d) CALL(MPI_Type_get_contents_c(t, n[0], n[1], n[2], n[3], i, a, l, d))
#else
typedef int length;
#define ENVELOPE(t, n, c) CALL(MPI_Type_get_envelope(t, &n[0], &n[1], &n[3], c))
#define CONTENTS(t, n, i, a, l, d) CALL(MPI_Type_get_contents(t, n[0], n[1], n[3], i, a, d))
#endif

struct part {
    int combiner;
    long long size, lb, extent;
};

/* What a datatype was made of: integers, addresses, large counts and datatypes. */
struct contents {
    int combiner, lengths[4];
    const int *integers;
    const MPI_Aint *addresses;
    const MPI_Count *counts;
    const struct part *parts;
    /* Where a part must be the very datatype that was given; else MPI_DATATYPE_NULL. */
    const MPI_Datatype *named;
};

static void check_decode(MPI_Datatype t, struct contents want)
{
    length n[4] = {0, 0, 0, 0};
    int combiner;
    ENVELOPE(t, n, &combiner);
    same("combiner", want.combiner, combiner);
    if (want.combiner == MPI_COMBINER_NAMED || bad)
        return;
    same("integers in the envelope", want.lengths[0], n[0]);
    same("addresses in the envelope", want.lengths[1], n[1]);
    same("large counts in the envelope", want.lengths[2], n[2]);
    same("datatypes in the envelope", want.lengths[3], n[3]);
    if (bad)
        return;
    int integers[want.lengths[0] + 1];
    MPI_Aint addresses[want.lengths[1] + 1];
    MPI_Count counts[want.lengths[2] + 1];
    MPI_Datatype types[want.lengths[3] + 1];
    CONTENTS(t, n, integers, addresses, counts, types);
    for (int i = 0; i < want.lengths[0]; i++)
        same("an integer of the contents", want.integers[i], integers[i]);
    for (int i = 0; i < want.lengths[1]; i++)
        same("an address of the contents", want.addresses[i], addresses[i]);
    for (int i = 0; i < want.lengths[2]; i++)
        same("a large count of the contents", want.counts[i], counts[i]);
    for (int i = 0; i < want.lengths[3]; i++) {
        length m[4] = {0, 0, 0, 0};
        ENVELOPE(types[i], m, &combiner);
        same("combiner of a datatype of the contents", want.parts[i].combiner, combiner);
        MPI_Count size;
        CALL(MPI_Type_size_x(types[i], &size));
        same("size of a datatype of the contents", want.parts[i].size, size);
        MPI_Aint lb, extent;
        CALL(MPI_Type_get_extent(types[i], &lb, &extent));
        same("lower bound of a datatype of the contents", want.parts[i].lb, lb);
        same("extent of a datatype of the contents", want.parts[i].extent, extent);
        if (want.named && want.named[i] != MPI_DATATYPE_NULL)
            same("whether the named datatype is the one given", 1, types[i] == want.named[i]);
    }
}
#endif

#if defined CHECK_PACK

/* Whether packed bytes are compared: MPI leaves the format open, and bytes that hold no value. */
enum { ROUND_TRIP, FORMAT, PADDING };

/* What is packed and unpacked again is as it was, and nothing else changes. */
static void check_pack(MPI_Datatype t, long n, int what)
{
    commit(&t, n);
    unsigned char *from = memory(1), *to = memory(3), *want = memory(3), *stream_want = gathered(from);
    int room, position = 0, end;
    CALL(MPI_Pack_size(COUNT, t, MPI_COMM_SELF, &room));
    same("whether MPI_Pack_size is an upper bound", 1, room >= SIZE);
    if (room < SIZE)
        room = SIZE;
    unsigned char *stream = calloc(2 * room + 64, 1);
    CALL(MPI_Pack(from, COUNT, t, stream, room, &position, MPI_COMM_SELF));
    if (what == FORMAT)
        same_stream("packed", stream_want, stream);
    if (what == PADDING)
        same("whether all bytes are as in memory", 0, memcmp(stream, stream_want, SIZE));
    end = position;
    position = 0;
    if (OVERLAPS) {
        /* Nothing may be unpacked into entries that overlap. */
        unsigned char *values = stream_of(3);
        CALL(MPI_Unpack(stream, end, &position, values, 1, flat(ENTRIES), MPI_COMM_SELF));
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
#endif

#if defined CHECK_UNPACK

/* The values are packed from a place where they stand one after the other, and unpacked by the datatype. */
static void check_unpack(MPI_Datatype t, long n)
{
    commit(&t, n);
    unsigned char *values = stream_of(2), *to = memory(3), *want = memory(3), *stream = malloc(2 * SIZE + 64);
    MPI_Datatype line = flat(ENTRIES);
    int position = 0, end;
    CALL(MPI_Pack(values, 1, line, stream, 2 * SIZE + 64, &position, MPI_COMM_SELF));
    end = position;
    position = 0;
    CALL(MPI_Unpack(stream, end, &position, to, COUNT, t, MPI_COMM_SELF));
    same("position after unpacking", end, position);
    scatter(values, SIZE, want);
    same_memory("unpacked", want, to);
}
#endif

#if defined CHECK_ELEMENTS

/* What is compared: the bytes received, or the numbers of MPI_Get_count and MPI_Get_elements. */
enum { BYTES, NUMBERS };

/* Messages with some of the elements. */
static void check_elements(MPI_Datatype t, long n, int what)
{
    commit(&t, n);
    if (OVERLAPS)
        return; /* Nothing may be received into entries that overlap. */
    long instance = COUNT ? ENTRIES / COUNT : 0, lengths[] = {0, 1, ENTRIES / 2, ENTRIES - 1, ENTRIES, instance, instance + 1};
    for (int i = 0; i < 7; i++) {
        long some = lengths[i], bytes = 0;
        if (some > ENTRIES)
            continue;
        MPI_Datatype line = flat(some);
        int size, count, elements;
        MPI_Type_size(line, &size);
        bytes = size;
        unsigned char *values = stream_of(2), *to = memory(3), *want = memory(3);
        MPI_Status status;
        CALL(MPI_Sendrecv(values, some ? 1 : 0, line, 0, 7, to, COUNT, t, 0, 7, MPI_COMM_SELF, &status));
        CALL(MPI_Get_count(&status, t, &count));
        CALL(MPI_Get_elements(&status, t, &elements));
        printf("after %ld elements: count %d, elements %d\n", some, count, elements);
        if (what == NUMBERS) {
            same("MPI_Get_count", COUNT && bytes % (SIZE / COUNT) ? MPI_UNDEFINED : bytes / (SIZE / COUNT), count);
            same("MPI_Get_elements", some, elements);
        }
        if (what == BYTES) {
            scatter(values, bytes, want);
            same_memory("received", want, to);
        }
    }
}
#endif

#if defined CHECK_EXTERNAL32

static void check_external32(MPI_Datatype t, long n, const unsigned char *values, const unsigned char *external, long length)
{
    commit(&t, n);
    unsigned char *from = memory(3), *to = memory(3), *want = memory(3), *stream = malloc(length + 64);
    MPI_Aint size, position = 0;
    scatter(values, SIZE, from);
    CALL(MPI_Pack_external_size("external32", COUNT, t, &size));
    same("MPI_Pack_external_size", length, size);
    memset(stream, 0xee, length + 64);
    CALL(MPI_Pack_external("external32", from, COUNT, t, stream, length + 64, &position));
    same("position after MPI_Pack_external", length, position);
    for (long i = 0; i < length; i++)
        if (stream[i] != external[i]) {
            printf("byte %ld in external32: expected %#04x, got %#04x\n", i, external[i], stream[i]);
            bad = 1;
            break;
        }
    position = 0;
    CALL(MPI_Unpack_external("external32", external, length, &position, to, COUNT, t));
    scatter(values, SIZE, want);
    same_memory("from external32", want, to);
}
#endif

#if defined CHECK_ATTRIBUTES

static int copies, deletes;

static int copy(MPI_Datatype t, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)t, (void)keyval, (void)extra;
    copies++;
    *(void **)out = (char *)in + 0x10;
    *flag = (intptr_t)in % 2 == 0;
    return MPI_SUCCESS;
}

static int delete(MPI_Datatype t, int keyval, void *value, void *extra)
{
    (void)t, (void)keyval, (void)extra, (void)value;
    deletes++;
    return MPI_SUCCESS;
}

static void check_attributes(MPI_Datatype t)
{
    CALL(MPI_Type_commit(&t));
    MPI_Datatype duplicate;
    intptr_t values[3] = {0x1100, 0x1200, 0x1301};
    int keyvals[3];
    for (int i = 0; i < 3; i++) {
        CALL(MPI_Type_create_keyval(copy, delete, &keyvals[i], NULL));
        CALL(MPI_Type_set_attr(t, keyvals[i], (void *)values[i]));
    }
    CALL(MPI_Type_dup(t, &duplicate));
    same("copy callbacks of MPI_Type_dup", 3, copies);
    for (int i = 0; i < 3; i++) {
        void *value = NULL;
        int flag;
        CALL(MPI_Type_get_attr(duplicate, keyvals[i], &value, &flag));
        same("whether the duplicate has the attribute", i < 2, flag);
        if (flag)
            same("attribute of the duplicate", values[i] + 0x10, (intptr_t)value);
    }
    MPI_Aint lb[2], extent[2];
    CALL(MPI_Type_get_extent(t, &lb[0], &extent[0]));
    CALL(MPI_Type_get_extent(duplicate, &lb[1], &extent[1]));
    same("lower bound of the duplicate", lb[0], lb[1]);
    same("extent of the duplicate", extent[0], extent[1]);
    CALL(MPI_Type_delete_attr(duplicate, keyvals[0]));
    same("delete callbacks of MPI_Type_delete_attr", 1, deletes);
    CALL(MPI_Type_free(&duplicate));
    same("delete callbacks after MPI_Type_free", 2, deletes);
    for (int i = 0; i < 3; i++)
        CALL(MPI_Type_delete_attr(t, keyvals[i]));
    same("delete callbacks after all", 5, deletes);
}
#endif

#if defined CHECK_MESSAGES

/* To oneself: the datatype to values one after the other, these to the datatype, the datatype to itself. */
static void check_messages(MPI_Datatype t, long n)
{
    commit(&t, n);
    MPI_Datatype line = flat(ENTRIES);
    unsigned char *from = memory(1), *stream_want = gathered(from), *stream = calloc(SIZE + 64, 1);
    MPI_Status status;
    MPI_Request request;
    int count;
    CALL(MPI_Sendrecv(from, COUNT, t, 0, 7, stream, 1, line, 0, 7, MPI_COMM_SELF, &status));
    same_stream("sent", stream_want, stream);
    CALL(MPI_Get_count(&status, line, &count));
    same("MPI_Get_count of what was sent", 1, count);
    if (OVERLAPS)
        return;
    unsigned char *values = stream_of(2), *to = memory(3), *want = memory(3);
    CALL(MPI_Isend(values, 1, line, 0, 7, MPI_COMM_SELF, &request));
    CALL(MPI_Recv(to, COUNT, t, 0, 7, MPI_COMM_SELF, &status));
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    scatter(values, SIZE, want);
    same_memory("received", want, to);
    CALL(MPI_Get_count(&status, t, &count));
    same("MPI_Get_count of what was received", COUNT, count);
    to = memory(3), want = memory(3);
    CALL(MPI_Sendrecv(from, COUNT, t, 0, 7, to, COUNT, t, 0, 7, MPI_COMM_SELF, &status));
    scatter(stream_want, SIZE, want);
    same_memory("sent to itself", want, to);
}
#endif

#if defined CHECK_COLLECTIVES

static void move(int which, unsigned char *from, int n, MPI_Datatype out, unsigned char *to, int m, MPI_Datatype in)
{
    int zero = 0;
    if (which == 0)
        CALL(MPI_Allgather(from, n, out, to, m, in, MPI_COMM_SELF));
    else if (which == 1)
        CALL(MPI_Gather(from, n, out, to, m, in, 0, MPI_COMM_SELF));
    else if (which == 2)
        CALL(MPI_Scatter(from, n, out, to, m, in, 0, MPI_COMM_SELF));
    else
        CALL(MPI_Alltoallw(from, &n, &zero, &out, to, &m, &zero, &in, MPI_COMM_SELF));
}

static void one_sided(int which, unsigned char *from, int n, MPI_Datatype out, unsigned char *to, int m, MPI_Datatype in)
{
    MPI_Win window;
    CALL(MPI_Win_create(to + LOW, LENGTH, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window));
    CALL(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    CALL(MPI_Win_fence(0, window));
    if (which == 0)
        CALL(MPI_Put(from, n, out, 0, -LOW, m, in, window));
    else if (which == 1)
        CALL(MPI_Get(from, n, out, 0, -LOW, m, in, window));
    else
        CALL(MPI_Accumulate(from, n, out, 0, -LOW, m, in, MPI_SUM, window));
    CALL(MPI_Win_fence(0, window));
    CALL(MPI_Win_free(&window));
}

/* Whether sums are accumulated, too. */
enum { MOVES, SUMS };

static void check_collectives(MPI_Datatype t, long n, int what)
{
    commit(&t, n);
    static const char *names[] = {"MPI_Allgather", "MPI_Gather", "MPI_Scatter", "MPI_Alltoallw"};
    MPI_Datatype line = flat(ENTRIES);
    unsigned char *from = memory(1), *stream_want = gathered(from), *values = stream_of(2), *want = memory(3);
    unsigned char *stream = calloc(SIZE + 64, 1), *to;
    scatter(values, SIZE, want);
    for (int which = 0; which < 4; which++) {
        move(which, from, COUNT, t, stream, 1, line);
        same_stream(names[which], stream_want, stream);
        if (OVERLAPS)
            continue;
        to = memory(3);
        move(which, values, 1, line, to, COUNT, t);
        same_memory(names[which], want, to);
    }
    if (OVERLAPS || bad)
        return;
    to = memory(3);
    one_sided(0, values, 1, line, to, COUNT, t);
    same_memory("MPI_Put", want, to);
    memset(stream, 0, SIZE);
    one_sided(1, stream, 1, line, from, COUNT, t);
    same_stream("MPI_Get", stream_want, stream);
    if (what != SUMS || !ENTRIES)
        return;
    /* Small values, so that sums are in the lowest byte of each element. */
    memset(values, 0, SIZE);
    to = memory(3), want = memory(3);
    for (long i = 0; i < SIZE; i += SIZE / ENTRIES)
        values[i] = i / (SIZE / ENTRIES) % 100;
    scatter(values, SIZE, to);
    one_sided(2, values, 1, line, to, COUNT, t);
    for (long i = 0; i < SIZE; i++)
        stream[i] = 2 * values[i];
    scatter(stream, SIZE, want);
    same_memory("MPI_Accumulate", want, to);
}
#endif

#if defined CHECK_COMMIT

/* A case has this: the datatype, its parts freed. */
static MPI_Datatype orphaned(void);

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

static void check_commit(MPI_Datatype t, long n, int handles)
{
    commit(&t, n);
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
    int last = 1100 / handles + 1;
    for (int i = 0; i < last; i++) {
        many[i] = build();
        CALL(MPI_Type_commit(&many[i]));
    }
    packs("the last of many", many[last - 1]);
    packs("one of many", many[last / 2]);
}
#endif

#if defined CHECK_TRUNCATION

/* What is compared: the error class, or the bytes; APART, without receives of one piece of memory from one piece. */
enum { CLASS, WRITTEN, APART };

/* What of n instances is sent or received: the datatype, or its values one after the other. */
struct end {
    MPI_Datatype type;
    long count, low, high, size;
    int contiguous;
    char *mapped;
};

static struct end end(MPI_Datatype t, long n, int is_flat)
{
    instances(n);
    struct end e = {t, n, LOW, HIGH, SIZE, 1, NULL};
    for (long i = 1; i < ENTRIES; i++)
        e.contiguous &= is_flat || map[i].at == map[i - 1].at + map[i - 1].bytes;
    if (is_flat)
        e.type = flat(ENTRIES), e.count = 1, e.low = 0, e.high = SIZE;
    e.mapped = calloc(e.high - e.low + 1, 1);
    memset(e.mapped, is_flat, e.high - e.low);
    for (long i = 0; i < ENTRIES && !is_flat; i++)
        memset(e.mapped + map[i].at - LOW, 1, map[i].bytes);
    return e;
}

/* Memory between inaccessible pages: accessible bytes before and after a place for displacements from low to high, or none behind it. */
static unsigned char *fenced(struct end e, long slack, unsigned char **first, long *length)
{
    long page = sysconf(_SC_PAGESIZE), span = e.high - e.low;
    *length = (span + 2 * slack + 16 + page - 1) / page * page;
    unsigned char *base = mmap(NULL, *length + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(*first = base + page, *length, PROT_READ | PROT_WRITE);
    memset(*first, 0xa5, *length);
    unsigned char *low = *first + *length - slack - span;
    while ((uintptr_t)(low - e.low) % 16)
        low--;
    return low - e.low;
}

static void receive(struct end from, struct end to, int posted, long slack, int what)
{
    unsigned char *first, *data = (unsigned char *)malloc(from.high - from.low + 64);
    long length, span = to.high - to.low, wrong = 0, at = 0;
    unsigned char *sent = data + (16 - ((uintptr_t)data - from.low) % 16) % 16 - from.low;
    for (long i = from.low; i < from.high; i++)
        sent[i] = pattern(2, i - from.low);
    unsigned char *room = fenced(to, slack, &first, &length);
    for (long i = to.low; i < to.high; i++)
        room[i] = pattern(3, i - to.low);
    MPI_Request request;
    MPI_Status status;
    int code, class = MPI_SUCCESS;
    if (posted) {
        CALL(MPI_Irecv(room, to.count, to.type, 0, 7, MPI_COMM_SELF, &request));
        int told = MPI_Send(sent, from.count, from.type, 0, 7, MPI_COMM_SELF);
        code = MPI_Wait(&request, &status);
        code = code ? code : told;
    } else {
        CALL(MPI_Isend(sent, from.count, from.type, 0, 7, MPI_COMM_SELF, &request));
        code = MPI_Recv(room, to.count, to.type, 0, 7, MPI_COMM_SELF, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Error_class(code, &class);
    if (what == CLASS)
        same("class of the receive", MPI_ERR_TRUNCATE, class);
    for (unsigned char *byte = first; byte < first + length; byte++) {
        long i = byte - (room + to.low);
        int want = i < 0 || i >= span ? 0xa5 : to.mapped[i] ? *byte : pattern(3, i);
        if (*byte != want && !wrong++)
            at = i + to.low;
    }
    if (wrong && what != CLASS) {
        printf("%ld bytes received into room for %ld: %ld bytes beside the type map written, the first at displacement %ld of %ld\n", from.size,
               to.size, wrong, at, to.high);
        bad = 1;
    }
    free(data);
    long page = sysconf(_SC_PAGESIZE);
    munmap(first - page, length + 2 * page);
}

/* Receives with room for so many bytes, or for one instance. */
static void check_truncation(MPI_Datatype t, int rooms, const long *room, int what)
{
    commit(&t, 1);
    long size = SIZE;
    for (int i = 0; i < rooms; i++) {
        long n = room[i] > size ? room[i] / size : 1, more = room[i] / size > 1 ? room[i] / size / 2 : 1;
        for (int sides = 0; sides < 4; sides++) {
            struct end from = end(t, n + more, sides & 1), to = end(t, n, sides >> 1);
            /* Two such ends are a matter of their own. */
            if (what == APART && from.contiguous && to.contiguous)
                continue;
            for (int posted = 0; posted < 2 && !bad && !OVERLAPS; posted++) {
                long reach = (from.high > to.high ? from.high : to.high) - (from.low < to.low ? from.low : to.low) + from.size;
                receive(from, to, posted, reach + 64, what);
                if (!bad)
                    receive(from, to, posted, 0, what);
            }
        }
    }
}
#endif

#if defined CHECK_MISUSE

/* For the call that is forbidden. */
static int memory[4], position;
static char stream[64];

static MPI_Datatype build(void)
{
    return MPI_DATATYPE_NULL;
}

static void check_refused(int code)
{
    if (code == MPI_SUCCESS) {
        puts("expected an error, got MPI_SUCCESS");
        bad = 1;
    }
}
#endif

int main(int argc, char **argv)
{
    CALL(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    check(build());
    puts(bad ? "wrong" : "right");
    fflush(stdout);
    MPI_Finalize();
    return bad;
}
