/* What the parts of the bench share: clock, buffers, repetition, output. Every part prints lines `ROW<tab>VARIANT<tab>NANOSECONDS`, the
 * median of batches of one process; bench.py takes processes on both libraries in turn and the medians of those. */
#ifndef RUNTIME_BENCH_H
#define RUNTIME_BENCH_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A layout of layouts.h: `count` instances of what `make` gives reach over [low, high) around the buffer's address and pack into
 * `bytes`. Loops by assignment and by memcpy; extents are constants, so their third argument is not read. */
typedef void (*loop)(void *, void *, const long *, const int *const *);
struct layout {
    const char *name;
    MPI_Datatype (*make)(void);
    int count;
    long low, high, bytes;
    void (*pack[2])(const char *restrict, char *restrict, const long *restrict, const int *const *restrict);
    void (*unpack[2])(char *restrict, const char *restrict, const long *restrict, const int *const *restrict);
    const int *const *tables;
};

enum { BATCHES = 9 };
extern int rank, ranks;
/* Nanoseconds that a batch should take. */
extern double batch;

double now(void);
/* Zeroed memory that begins at a cache line. */
void *memory(long bytes);
void fill(void *p, long bytes, unsigned long long seed);
/* Ends all ranks, saying what differs, unless the bytes are equal. */
void same(const char *row, const char *what, const void *a, const void *b, long bytes);
void say(const char *row, const char *variant, double nanoseconds);
double median(double *values, int n);

/* Median nanoseconds of one call of `body(context)`, by batches whose length is calibrated after ten calls and `warm` more, or as many as fit in
 * 30 ms; alone or, where the body
 * communicates, on all ranks with the same number of calls (`together`). */
double time_of(void (*body)(void *), void *context, int warm, int together);

void bench_pack(void);
void bench_messages(void);
void bench_collectives(void);
void bench_rma(void);
void bench_create(void);
void bench_memory_vector(void);
void bench_memory_struct(void);
void bench_memory_indexed(void);
void bench_memory_used(void);

#endif
