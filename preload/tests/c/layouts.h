/* Makes datatypes of one type signature with different layouts, and computes the bytes that buffers
 * of these layouts must have. Test programs that make random MPI calls compare the buffers with
 * these bytes. */
#ifndef LAYOUTS_H
#define LAYOUTS_H
#include "versions.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMENTS = 64 };

/* A datatype and its layout: the sizes and displacements of its `n` basic elements, in bytes and in
 * the order of the type map. */
struct layout {
    MPI_Datatype type;
    int n;
    int bytes[MAX_ELEMENTS];
    MPI_Aint at[MAX_ELEMENTS];
    MPI_Aint extent;
};

static uint64_t state;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int below(int n) { return (int)(next() % (uint64_t)n); }

/* Makes a layout of the signature `kind`. With 0, it is a structure of int, double and three
 * floats, whose packed double does not begin at a multiple of 8. With -1, it is a structure of
 * double, int and float, whose packed elements are aligned. Otherwise it has `kind` doubles.
 * `variant`, from 0 to 2, selects the displacements. */
static struct layout layout(int kind, int variant)
{
    struct layout l = {0};
    MPI_Datatype inner;
    if (kind == -1) {
        static const MPI_Aint places[3][3] = {{0, 8, 12}, {8, 0, 4}, {16, 8, 36}};
        MPI_Datatype types[3] = {MPI_DOUBLE, MPI_INT, MPI_FLOAT};
        int lengths[3] = {1, 1, 1};
        MPI_Type_create_struct(3, lengths, (MPI_Aint *)places[variant], types, &inner);
        l.extent = 16 + 24 * variant;
        MPI_Type_create_resized(inner, 0, l.extent, &l.type);
        MPI_Type_free(&inner);
        l.n = 3;
        for (int i = 0; i < 3; i++) {
            l.bytes[i] = i == 0 ? 8 : 4;
            l.at[i] = places[variant][i];
        }
    } else if (kind == 0) {
        static const MPI_Aint places[3][3] = {{0, 8, 16}, {4, 16, 32}, {20, 8, 24}};
        static const MPI_Aint extents[3] = {32, 48, 40};
        MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
        int lengths[3] = {1, 1, 3};
        MPI_Aint at[3];
        for (int i = 0; i < 3; i++) at[i] = places[variant][i];
        MPI_Type_create_struct(3, lengths, at, types, &inner);
        MPI_Type_create_resized(inner, 0, extents[variant], &l.type);
        MPI_Type_free(&inner);
        l.extent = extents[variant];
        l.n = 5;
        for (int i = 0; i < 5; i++) {
            l.bytes[i] = i == 1 ? 8 : 4;
            l.at[i] = i < 2 ? at[i] : at[2] + 4 * (i - 2);
        }
    } else {
        l.n = kind;
        MPI_Aint at[MAX_ELEMENTS];
        for (int i = 0; i < kind; i++) {
            l.bytes[i] = 8;
            at[i] = l.at[i] = variant == 0 ? 16 * i : variant == 1 ? 8 * (i + i / 3) : 8 * (kind - 1 - i) + 8 * (i % 2) * kind;
        }
        if (variant == 0) {
            MPI_Type_vector(kind, 1, 2, MPI_DOUBLE, &inner);
        } else {
            MPI_Type_create_hindexed_block(kind, 1, at, MPI_DOUBLE, &inner);
        }
        l.extent = 16 * kind + 8;
        MPI_Type_create_resized(inner, 0, l.extent, &l.type);
        MPI_Type_free(&inner);
    }
    MPI_Type_commit(&l.type);
    return l;
}

/* Returns the value of element `i` that the rank `from` sends to the rank `to` in a call, as 8
 * bytes. */
static uint64_t value(int call, int from, int to, long i)
{
    uint64_t x = ((uint64_t)call << 40) ^ ((uint64_t)from << 32) ^ ((uint64_t)to << 24) ^ (uint64_t)i;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static void put(const struct layout *l, char *buffer, MPI_Aint first, long count, int call, int from, int to)
{
    for (long k = 0; k < count; k++)
        for (int i = 0; i < l->n; i++) {
            uint64_t v = value(call, from, to, k * l->n + i);
            memcpy(buffer + (first + k) * l->extent + l->at[i], &v, l->bytes[i]);
        }
}

static char *buffer(const struct layout *l, long count)
{
    size_t bytes = (size_t)(count * l->extent + 4096);
    char *b = malloc(bytes);
    memset(b, 0xa5, bytes);
    return b;
}

static int same(const struct layout *l, const char *a, const char *b, long count)
{
    return memcmp(a, b, (size_t)(count * l->extent + 4096)) == 0;
}

/* The modes in which a call is made: blocking, with a request that is completed in one of several
 * ways, or with a persistent request that is started twice. */
enum { BLOCKING, ONCE, PERSISTENT, MODES };
#ifndef MODES_TRIED /* number of modes that the MPI library has and gets right by itself */
#ifdef HAS_MPI_4
#define MODES_TRIED MODES
#else
#define MODES_TRIED PERSISTENT
#endif
#endif
static const char *const modes[MODES] = {"blocking", "nonblocking", "persistent"};

/* Returns the mode of the next call, which is the same on every rank. */
__attribute__((unused)) static int any_mode(void)
{
    int mode = below(MODES_TRIED);
#ifdef ALL_PERSISTENT
    mode = PERSISTENT;
#endif
    return mode;
}

static void complete(MPI_Request *request, int way)
{
    int flag = 0, index;
    MPI_Status status;
    switch (way) {
    case 0: MPI_Wait(request, MPI_STATUS_IGNORE); break;
    case 1: MPI_Waitall(1, request, MPI_STATUSES_IGNORE); break;
    case 2: MPI_Waitany(1, request, &index, &status); break;
    default:
        while (!flag) MPI_Test(request, &flag, &status);
    }
}

/* Makes a persistent request by `init`, and starts and completes the request twice. `again`
 * restores the contents of the receive buffer before the second start. */
#ifdef HAS_MPI_4
#define STARTED(way, comm, again, init, ...)                                                   \
    do {                                                                                       \
        code = init(__VA_ARGS__, comm, MPI_INFO_NULL, &request);                               \
        for (int round = 0; round < 2; round++) {                                              \
            if (round) { again; }                                                              \
            MPI_Start(&request);                                                               \
            complete(&request, way);                                                           \
        }                                                                                      \
        MPI_Request_free(&request);                                                            \
    } while (0)
#else
#define STARTED(way, comm, again, init, ...) abort()
#endif

/* Makes a call in one of three modes: by the blocking function `now`, by the nonblocking function
 * `once`, or by `init` as a persistent request. `way` is the way to complete the request. `again`
 * restores the contents of the receive buffer before the second start of a persistent request. */
#define CALL(mode, way, comm, again, now, once, init, ...)                                     \
    do {                                                                                       \
        MPI_Request request = MPI_REQUEST_NULL;                                                \
        if ((mode) == BLOCKING) {                                                              \
            code = now(__VA_ARGS__, comm);                                                     \
        } else if ((mode) == ONCE) {                                                           \
            code = once(__VA_ARGS__, comm, &request);                                          \
            complete(&request, way);                                                           \
        } else {                                                                               \
            STARTED(way, comm, again, init, __VA_ARGS__);                                      \
        }                                                                                      \
    } while (0)

#endif
