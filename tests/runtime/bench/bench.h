/* Functions and variables that the parts of the benchmark share: a clock, buffers, repetition of
 * calls, and output. All parts print lines `ROW<tab>VARIANT<tab>VALUE`. A value is the median over
 * the batches of one process, in nanoseconds. In rows about memory, it is a number of bytes. The
 * script bench.py runs this program with either library in turn, and takes the medians over the
 * processes. */
#ifndef RUNTIME_BENCH_H
#define RUNTIME_BENCH_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A layout from layouts.h. `make` returns its type. `count` instances of the type occupy the bytes
 * from `low` to `high`, relative to the address of the buffer, and pack into `bytes` bytes. `pack`
 * and `unpack` each have two loops: one that moves bytes by assignment, and one that uses memcpy.
 * The third argument of these loops, for extents, is not read, since extents are constants in their
 * code. */
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
/* Time that one batch of calls should take, in nanoseconds. */
extern double batch;

double now(void);
/* Returns at least `bytes` bytes of memory that are zero and begin at a cache line. */
void *memory(long bytes);
void fill(void *p, long bytes, unsigned long long seed);
/* If the bytes at `a` and `b` differ, prints the first difference and ends all ranks. */
void same(const char *row, const char *what, const void *a, const void *b, long bytes);
void say(const char *row, const char *variant, double nanoseconds);
double median(double *values, int n);

/* Returns the time of one call of `body(context)` in nanoseconds, the median over batches of calls.
 * The length of a batch is found after some calls that are not measured: ten, and then `warm` more,
 * or as many as fit into 30 ms if these are fewer. If `together` is not zero, all ranks make the
 * same number of calls; this is for a `body` that communicates. */
double time_of(void (*body)(void *), void *context, int warm, int together);

void bench_pack(void);
void bench_first(void);
void bench_messages(void);
void bench_collectives(void);
void bench_rma(void);
void bench_create(void);
void bench_memory_vector(void);
void bench_memory_struct(void);
void bench_memory_indexed(void);
void bench_memory_used(void);

#endif
