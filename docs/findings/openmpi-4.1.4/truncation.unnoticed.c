/*
 * truncation.unnoticed: openmpi 4.1.4
 * 1 of byte
 * MPI 5.0, 3.2.4: a message that does not fit is an overflow error, of class MPI_ERR_TRUNCATE
 * expected: an error of class MPI_ERR_TRUNCATE
 * got: MPI_SUCCESS
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
#define BOUNDS 1

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

#define WALK walk0

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
    bounds(0, MPI_BYTE);
    return MPI_BYTE;
}
#define ROOMS {0, 4096, 65536, 163840}
#define CHECK_CLASS 1
#define COMMIT 1
#define MAP instances(COUNT)
#include <sys/mman.h>
#include <unistd.h>

/* What of n instances is sent or received: the datatype, or its values one after the other. */
struct end {
    MPI_Datatype type;
    long count, low, high, size;
    char *mapped;
};

static struct end end(MPI_Datatype t, long n, int is_flat)
{
    instances(n);
    struct end e = {t, n, LOW, HIGH, SIZE, NULL};
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

static void receive(struct end from, struct end to, int posted, long slack)
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
    if (CHECK_CLASS)
        same("class of the receive", MPI_ERR_TRUNCATE, class);
    for (unsigned char *byte = first; byte < first + length; byte++) {
        long i = byte - (room + to.low);
        int want = i < 0 || i >= span ? 0xa5 : to.mapped[i] ? *byte : pattern(3, i);
        if (*byte != want && !wrong++)
            at = i + to.low;
    }
    if (wrong && !CHECK_CLASS) {
        printf("%ld bytes received into room for %ld: %ld bytes beside the type map written, the first at displacement %ld of %ld\n", from.size,
               to.size, wrong, at, to.high);
        bad = 1;
    }
    free(data);
    long page = sysconf(_SC_PAGESIZE);
    munmap(first - page, length + 2 * page);
}

static void check(MPI_Datatype t)
{
    static const long rooms[] = ROOMS;
    instances(1);
    long size = SIZE;
    for (unsigned i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        long n = rooms[i] > size ? rooms[i] / size : 1, more = rooms[i] / size > 1 ? rooms[i] / size / 2 : 1;
        for (int sides = 0; sides < 4; sides++) {
            struct end from = end(t, n + more, sides & 1), to = end(t, n, sides >> 1);
            for (int posted = 0; posted < 2 && !bad && !OVERLAPS; posted++) {
                long reach = (from.high > to.high ? from.high : to.high) - (from.low < to.low ? from.low : to.low) + from.size;
                receive(from, to, posted, reach + 64);
                if (!bad)
                    receive(from, to, posted, 0);
            }
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
