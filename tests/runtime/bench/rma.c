/* Measures one-sided operations of two ranks: MPI_Put and MPI_Accumulate, from contiguous doubles
 * to strided ones in the target. They are compared with a message of packed doubles that a loop at
 * the target puts or adds in place. Each operation is measured on two windows. The first is made by
 * MPI_Win_create; there the target gets a description of the type. The second is made by
 * MPI_Win_allocate; its memory is shared by ranks of one machine. */
#include "bench.h"

enum { WARM = 40 };

struct operation {
    MPI_Win window;
    MPI_Datatype type;
    int n, block, accumulate;
    double *from, *target, *buffer;
};

/* Makes one operation of rank 0 on the memory of rank 1. When this function returns, the target has
 * the data. */
static void one_sided(void *context)
{
    struct operation *o = context;
    int all = o->n * o->block;
    MPI_Win_fence(0, o->window);
    if (rank == 0) {
        if (o->accumulate) MPI_Accumulate(o->from, all, MPI_DOUBLE, 1, 0, 1, o->type, MPI_SUM, o->window);
        else MPI_Put(o->from, all, MPI_DOUBLE, 1, 0, 1, o->type, o->window);
    }
    MPI_Win_fence(0, o->window);
}

static void by_hand(void *context)
{
    struct operation *o = context;
    int all = o->n * o->block;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Send(o->from, all, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
    else {
        const double *from = o->buffer;
        MPI_Recv(o->buffer, all, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (long i = 0; i < o->n; i++, from += o->block)
            for (int k = 0; k < o->block; k++) {
                double *place = o->target + 2 * i * o->block + k;
                *place = o->accumulate ? *place + from[k] : from[k];
            }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void strided(int n, int block, int accumulate, int allocated, const char *size)
{
    long all = (long)n * block;
    struct operation o = {.n = n, .block = block, .accumulate = accumulate, .from = memory(all * 8), .buffer = memory(all * 8)};
    double *want = memory(all * 16);
    char row[100];
    snprintf(row, sizeof row, "%s %s %d B by %d %s", accumulate ? "accumulate" : "put", allocated ? "shared" : "created", block * 8,
             block * 16, size);
    MPI_Type_vector(n, block, 2 * block, MPI_DOUBLE, &o.type);
    MPI_Type_commit(&o.type);
    if (allocated) MPI_Win_allocate(all * 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &o.target, &o.window);
    else {
        o.target = memory(all * 16);
        MPI_Win_create(o.target, all * 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &o.window);
    }
    for (long i = 0; i < all; i++) o.from[i] = (double)(i % 1000);
    for (int turn = 0; turn < 2; turn++) {
        for (long i = 0; i < 2 * all; i++) o.target[i] = (double)(i % 77);
        (turn ? one_sided : by_hand)(&o);
        if (!turn) memcpy(want, o.target, (size_t)all * 16);
    }
    same(row, "target", o.target, want, all * 16);
    memset(o.target, 0, (size_t)all * 16);
    say(row, "mpi", time_of(one_sided, &o, WARM, 1));
    say(row, "hand", time_of(by_hand, &o, 3, 1));
    MPI_Win_free(&o.window);
    MPI_Type_free(&o.type);
    if (!allocated) free(o.target);
    free(o.from);
    free(o.buffer);
    free(want);
}

void bench_rma(void)
{
    static const char *sizes[] = {"4 KiB", "64 KiB", "1 MiB"};
    for (int allocated = 0; allocated < 2; allocated++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            for (int k = 0; k < 3; k++) {
                int elements = (int[]){512, 8192, 131072}[k];
                strided(elements, 1, accumulate, allocated, sizes[k]);
                strided(elements / 8, 8, accumulate, allocated, sizes[k]);
            }
}
