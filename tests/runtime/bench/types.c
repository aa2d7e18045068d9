/* Measures datatypes themselves: the time to make, commit and free a type, and to use it once, and
 * the memory of 100,000 types that exist at the same time. */
#include "bench.h"

enum { LARGE = 100000, FIELDS = 1000, LIVE = 100000 };

static int *places, *lengths;
static MPI_Aint *addresses;
static MPI_Datatype *members;
static char *user, *packed;

static MPI_Datatype vector(void)
{
    MPI_Datatype t;
    MPI_Type_vector(64, 1, 4, MPI_DOUBLE, &t);
    return t;
}

static MPI_Datatype item(void)
{
    MPI_Datatype t, s;
    int n[3] = {1, 1, 3};
    MPI_Aint at[3] = {0, 8, 16};
    MPI_Datatype of[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
    MPI_Type_create_struct(3, n, at, of, &t);
    MPI_Type_create_resized(t, 0, 32, &s);
    MPI_Type_free(&t);
    return s;
}

static MPI_Datatype cube(void)
{
    MPI_Datatype t;
    int size[3] = {34, 34, 34}, part[3] = {32, 32, 1}, from[3] = {1, 1, 1};
    MPI_Type_create_subarray(3, size, part, from, MPI_ORDER_C, MPI_DOUBLE, &t);
    return t;
}

/* Returns a type with four levels: resized structures in a vector, vectors in a contiguous type,
 * and contiguous types in an hvector. */
static MPI_Datatype nested(void)
{
    MPI_Datatype s = item(), v, c, h;
    MPI_Type_vector(4, 2, 3, s, &v);
    MPI_Type_contiguous(3, v, &c);
    MPI_Type_create_hvector(2, 1, 2000, c, &h);
    MPI_Type_free(&s);
    MPI_Type_free(&v);
    MPI_Type_free(&c);
    return h;
}

static MPI_Datatype indexed(void)
{
    MPI_Datatype t;
    MPI_Type_indexed(8, lengths, places, MPI_INT, &t);
    return t;
}

static MPI_Datatype large_indexed(void)
{
    MPI_Datatype t;
    MPI_Type_indexed(LARGE, lengths, places, MPI_INT, &t);
    return t;
}

static MPI_Datatype large_block(void)
{
    MPI_Datatype t;
    MPI_Type_create_hindexed_block(LARGE, 1, addresses, MPI_INT, &t);
    return t;
}

static MPI_Datatype large_struct(void)
{
    MPI_Datatype t;
    MPI_Type_create_struct(FIELDS, lengths, addresses, members, &t);
    return t;
}

static MPI_Datatype of_large(void)
{
    MPI_Datatype t = large_indexed(), v;
    MPI_Type_vector(4, 1, 2, t, &v);
    MPI_Type_free(&t);
    return v;
}

struct kind {
    const char *name;
    MPI_Datatype (*make)(void);
};

static void create(void *context)
{
    MPI_Datatype t = ((const struct kind *)context)->make();
    MPI_Type_commit(&t);
    MPI_Type_free(&t);
}

static void create_and_pack(void *context)
{
    MPI_Datatype t = ((const struct kind *)context)->make();
    int at = 0;
    MPI_Type_commit(&t);
    MPI_Pack(user, 1, t, packed, 1 << 24, &at, MPI_COMM_SELF);
    MPI_Type_free(&t);
}

static void begin(void)
{
    places = memory(LARGE * 4L);
    lengths = memory(LARGE * 4L);
    addresses = memory(LARGE * 8L);
    members = memory(FIELDS * (long)sizeof *members);
    user = memory(1 << 25);
    packed = memory(1 << 24);
    unsigned long long seed = 1;
    for (long i = 0, at = 0; i < LARGE; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        places[i] = (int)at;
        addresses[i] = at * 4;
        lengths[i] = 1 + (int)(seed >> 62);
        at += lengths[i] + 1 + (int)(seed >> 40) % 3;
    }
    for (int i = 0; i < FIELDS; i++) members[i] = i % 3 ? MPI_INT : MPI_FLOAT;
}

void bench_create(void)
{
    static const struct kind kinds[] = {
        {"vector", vector}, {"struct", item}, {"subarray 3D", cube}, {"nested, 4 levels", nested}, {"indexed, 8 blocks", indexed},
        {"indexed, 100000 blocks", large_indexed}, {"hindexed_block, 100000 blocks", large_block},
        {"struct, 1000 members", large_struct}, {"vector of indexed, 100000 blocks", of_large},
    };
    begin();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char row[100];
        snprintf(row, sizeof row, "create %s", kinds[i].name);
        say(row, "mpi", time_of(create, (void *)&kinds[i], 20, 0));
        snprintf(row, sizeof row, "create and pack once %s", kinds[i].name);
        say(row, "mpi", time_of(create_and_pack, (void *)&kinds[i], 20, 0));
    }
}

/* Returns the resident memory of this process in bytes. */
static double resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0;
    if (!f || fscanf(f, "%*d %ld", &pages) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
    fclose(f);
    return (double)pages * 4096;
}

/* Makes LIVE committed types, and prints the resident bytes per type. `make` returns the type of a
 * number, a different one for each number. If `used` is not zero, each type is also packed once. */
static void live(const char *row, MPI_Datatype (*make)(int), int used)
{
    MPI_Datatype *all = memory(LIVE * (long)sizeof *all);
    double before = resident();
    for (int i = 0; i < LIVE; i++) {
        int at = 0;
        all[i] = make(i);
        MPI_Type_commit(&all[i]);
        if (used) MPI_Pack(user, 1, all[i], packed, 1 << 24, &at, MPI_COMM_SELF);
    }
    say(row, "bytes", (resident() - before) / LIVE);
    for (int i = 0; i < LIVE; i++) MPI_Type_free(&all[i]);
    free(all);
}

static MPI_Datatype some_vector(int i)
{
    MPI_Datatype t;
    MPI_Type_vector(2 + i % 300, 1, 2 + i / 300, MPI_INT, &t);
    return t;
}

static MPI_Datatype some_struct(int i)
{
    MPI_Datatype t;
    int n[3] = {1, 1, 3};
    MPI_Aint at[3] = {0, 8 + i, 16 + i};
    MPI_Datatype of[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
    MPI_Type_create_struct(3, n, at, of, &t);
    return t;
}

static MPI_Datatype some_index(int i)
{
    MPI_Datatype t;
    MPI_Type_indexed(16, lengths + i % 5000, places + i % 5000 + 16 * (i / 5000), MPI_INT, &t);
    return t;
}

/* Each of the following functions must run in a process of its own. In a common process, memory
 * that one function has freed would be used by the next function. No contiguous types are packed
 * here: with any yaksa, MPICH 4.0.2 loses bytes of contiguous types if more than 768 of them
 * exist. */
void bench_memory_vector(void)
{
    begin();
    live("memory of a live type: vector", some_vector, 0);
}

void bench_memory_struct(void)
{
    begin();
    live("memory of a live type: struct", some_struct, 0);
}

void bench_memory_indexed(void)
{
    begin();
    live("memory of a live type: indexed, 16 blocks", some_index, 0);
}

void bench_memory_used(void)
{
    begin();
    live("memory of a live type: struct, packed once", some_struct, 1);
}
