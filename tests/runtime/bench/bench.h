/* What the parts of the bench share: clock, buffers, repetition, output. All parts print lines
 * `ROW<tab>VARIANT<tab>VALUE`. A value is the median over the batches of one process, in
 * nanoseconds, or for rows about memory a number of bytes. bench.py runs processes with both
 * libraries in turn and takes the medians over the processes. */
#ifndef RUNTIME_BENCH_H
#define RUNTIME_BENCH_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A layout of layouts.h. `count` instances of the type that `make` returns reach over [low, high)
 * around the address of the buffer, and pack into `bytes` bytes. There is a loop by assignment and
 * one by memcpy. Extents are constants, so the third argument of the loops is not read. */
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
/* Returns zeroed memory that begins at a cache line. */
void *memory(long bytes);
void fill(void *p, long bytes, unsigned long long seed);
/* Ends all ranks with a message about what differs, unless the bytes are equal. */
void same(const char *row, const char *what, const void *a, const void *b, long bytes);
void say(const char *row, const char *variant, double nanoseconds);
double median(double *values, int n);

/* Returns the median nanoseconds of one call of `body(context)` over batches. Their length is
 * calibrated after ten calls and `warm` more, or as many as fit into 30 ms if these are fewer. With
 * `together`, which is for bodies that communicate, all ranks make the same number of calls. */
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
