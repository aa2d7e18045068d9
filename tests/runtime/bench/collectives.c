/* Measures collective calls of two ranks. MPI_Alltoallw with subarray types is compared with
 * packing by loops and MPI_Alltoallv. MPI_Bcast and MPI_Allgather with a structure type are
 * compared with packing by loops and the same calls on packed bytes. */
#include "bench.h"

#include <stddef.h>

enum { WARM = 60 };

/* Transposes the distribution of a matrix of n x n doubles: at first each of the two ranks has half
 * of the rows, and afterwards each rank has half of the columns. n is even. */
struct exchange {
    int n;
    double *rows, *columns;
    char *out, *in;
    MPI_Datatype send[2], receive[2];
};

static void derived_exchange(void *context)
{
    static const int one[2] = {1, 1}, none[2] = {0, 0};
    struct exchange *e = context;
    MPI_Alltoallw(e->rows, one, none, e->send, e->columns, one, none, e->receive, MPI_COMM_WORLD);
}

static void hand_exchange(void *context)
{
    struct exchange *e = context;
    int n = e->n, part = n / 2, bytes = part * part * 8;
    int counts[2] = {bytes, bytes}, places[2] = {0, bytes};
    double *q = (double *)e->out;
    for (int peer = 0; peer < 2; peer++)
        for (int i = 0; i < part; i++, q += part) memcpy(q, e->rows + (long)i * n + peer * part, (size_t)part * 8);
    MPI_Alltoallv(e->out, counts, places, MPI_BYTE, e->in, counts, places, MPI_BYTE, MPI_COMM_WORLD);
    memcpy(e->columns, e->in, 2 * (size_t)bytes);
}

static void exchange(int n, const char *size)
{
    int part = n / 2;
    long bytes = (long)n * part * 8;
    char row[100];
    struct exchange e = {.n = n, .rows = memory(bytes), .columns = memory(bytes), .out = memory(bytes), .in = memory(bytes)};
    char *want = memory(bytes);
    for (int peer = 0; peer < 2; peer++) {
        int mine[2] = {part, n}, block[2] = {part, part}, from[2] = {0, peer * part};
        int columns[2] = {n, part}, to[2] = {peer * part, 0};
        MPI_Type_create_subarray(2, mine, block, from, MPI_ORDER_C, MPI_DOUBLE, &e.send[peer]);
        MPI_Type_create_subarray(2, columns, block, to, MPI_ORDER_C, MPI_DOUBLE, &e.receive[peer]);
        MPI_Type_commit(&e.send[peer]);
        MPI_Type_commit(&e.receive[peer]);
    }
    snprintf(row, sizeof row, "alltoallw subarrays %s", size);
    fill(e.rows, bytes, 3 + (unsigned)rank);
    hand_exchange(&e);
    memcpy(want, e.columns, (size_t)bytes);
    memset(e.columns, 0, (size_t)bytes);
    derived_exchange(&e);
    same(row, "received", e.columns, want, bytes);
    say(row, "mpi", time_of(derived_exchange, &e, WARM, 1));
    say(row, "hand", time_of(hand_exchange, &e, 3, 1));
    for (int peer = 0; peer < 2; peer++) {
        MPI_Type_free(&e.send[peer]);
        MPI_Type_free(&e.receive[peer]);
    }
    free(e.rows);
    free(e.columns);
    free(e.out);
    free(e.in);
    free(want);
}

struct item {
    int i;
    double d;
    float f[3];
};

/* Buffers with `n` structures of type struct item. A structure has 24 bytes when it is packed. */
struct items {
    int n;
    MPI_Datatype type;
    struct item *mine, *all;
    char *out, *in;
};

static void pack_items(const struct item *from, char *to, int n)
{
    for (int k = 0; k < n; k++, to += 24) {
        memcpy(to, &from[k].i, 4);
        memcpy(to + 4, &from[k].d, 8);
        memcpy(to + 12, from[k].f, 12);
    }
}

static void unpack_items(struct item *to, const char *from, int n)
{
    for (int k = 0; k < n; k++, from += 24) {
        memcpy(&to[k].i, from, 4);
        memcpy(&to[k].d, from + 4, 8);
        memcpy(to[k].f, from + 12, 12);
    }
}

static void derived_bcast(void *context)
{
    struct items *s = context;
    MPI_Bcast(s->all, s->n, s->type, 0, MPI_COMM_WORLD);
}

static void hand_bcast(void *context)
{
    struct items *s = context;
    if (rank == 0) pack_items(s->all, s->in, s->n);
    MPI_Bcast(s->in, 24 * s->n, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank != 0) unpack_items(s->all, s->in, s->n);
}

static void derived_allgather(void *context)
{
    struct items *s = context;
    MPI_Allgather(s->mine, s->n, s->type, s->all, s->n, s->type, MPI_COMM_WORLD);
}

static void hand_allgather(void *context)
{
    struct items *s = context;
    pack_items(s->mine, s->out, s->n);
    MPI_Allgather(s->out, 24 * s->n, MPI_BYTE, s->in, 24 * s->n, MPI_BYTE, MPI_COMM_WORLD);
    unpack_items(s->all, s->in, 2 * s->n);
}

static void structs(int n, const char *size)
{
    long bytes = (long)n * (long)sizeof(struct item);
    struct items s = {.n = n, .mine = memory(bytes), .all = memory(2 * bytes), .out = memory(24L * n), .in = memory(48L * n)};
    struct item *want = memory(2 * bytes);
    int lengths[3] = {1, 1, 3};
    MPI_Aint places[3] = {offsetof(struct item, i), offsetof(struct item, d), offsetof(struct item, f)};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT}, unresized;
    MPI_Type_create_struct(3, lengths, places, types, &unresized);
    MPI_Type_create_resized(unresized, 0, sizeof(struct item), &s.type);
    MPI_Type_commit(&s.type);
    MPI_Type_free(&unresized);
    static const struct { const char *name; void (*derived)(void *), (*hand)(void *); } calls[] = {
        {"bcast", derived_bcast, hand_bcast}, {"allgather", derived_allgather, hand_allgather}};
    for (int c = 0; c < 2; c++) {
        char row[100];
        snprintf(row, sizeof row, "%s structs %s", calls[c].name, size);
        for (int k = 0; k < n; k++) s.mine[k] = (struct item){k + rank, k * 0.5 + rank, {(float)k, (float)rank, 3}};
        for (int turn = 0; turn < 2; turn++) {
            memset(s.all, 0, 2 * (size_t)bytes);
            if (rank == 0 && c == 0) memcpy(s.all, s.mine, (size_t)bytes);
            (turn ? calls[c].derived : calls[c].hand)(&s);
            if (!turn) memcpy(want, s.all, 2 * (size_t)bytes);
        }
        /* The padding in the structures may have any values. So pack both results, which leaves out
         * the padding, and compare the packed bytes. */
        pack_items(want, s.out, n);
        pack_items(s.all, s.in, n);
        same(row, "first half", s.in, s.out, 24L * n);
        pack_items(want + n, s.out, n);
        pack_items(s.all + n, s.in, n);
        same(row, "second half", s.in, s.out, 24L * n);
        say(row, "mpi", time_of(calls[c].derived, &s, WARM, 1));
        say(row, "hand", time_of(calls[c].hand, &s, 3, 1));
    }
    MPI_Type_free(&s.type);
    free(s.mine);
    free(s.all);
    free(s.out);
    free(s.in);
    free(want);
}

void bench_collectives(void)
{
    static const char *sizes[] = {"4 KiB", "64 KiB", "1 MiB"};
    for (int k = 0; k < 3; k++) {
        exchange((int[]){32, 128, 512}[k], sizes[k]);
        structs((int[]){170, 2730, 43690}[k], sizes[k]);
    }
}
