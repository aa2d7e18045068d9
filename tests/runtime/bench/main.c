/* The benchmark of an MPICH that gets its datatype engine from a libyaksa.so.0, either yaksa's or
 * ddtc's: `bench PART [MILLISECONDS]`. PART is one of pack, first, messages, collectives, rma,
 * create, memory-vector, memory-struct, memory-indexed and memory-used. The parts messages,
 * collectives and rma need two ranks. bench.h describes the output. */
#include "bench.h"

int rank, ranks;
double batch = 1e6;

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void *memory(long bytes)
{
    void *p = aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
    if (!p) {
        fprintf(stderr, "%ld bytes of memory are needed\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memset(p, 0, (size_t)(bytes + 127) / 64 * 64);
}

void fill(void *p, long bytes, unsigned long long seed)
{
    for (long i = 0; i < bytes; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        ((unsigned char *)p)[i] = (unsigned char)(seed >> 56);
    }
}

void same(const char *row, const char *what, const void *a, const void *b, long bytes)
{
    const unsigned char *x = a, *y = b;
    for (long i = 0; i < bytes; i++)
        if (x[i] != y[i]) {
            fprintf(stderr, "%s, %s, rank %d: byte %ld is %#04x, and must be %#04x\n", row, what, rank, i, x[i], y[i]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

void say(const char *row, const char *variant, double nanoseconds)
{
    if (rank == 0) printf("%s\t%s\t%.2f\n", row, variant, nanoseconds);
}

static int by_value(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

static double repeat(void (*body)(void *), void *context, long n, int together)
{
    if (together) MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    for (long i = 0; i < n; i++) body(context);
    return (now() - start) / (double)n;
}

/* Returns how many calls of `one` nanoseconds fit into `nanoseconds`, plus 1. If `together` is not
 * zero, all ranks call this function, and all get the number of rank 0. */
static long calls_in(double one, double nanoseconds, int together)
{
    long n = 1 + (long)(nanoseconds / (one > 1 ? one : 1));
    if (together) MPI_Bcast(&n, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return n;
}

double time_of(void (*body)(void *), void *context, int warm, int together)
{
    double all[BATCHES];
    long first = calls_in(repeat(body, context, 10, together), 30e6, together);
    repeat(body, context, first < warm ? first : warm, together);
    long n = calls_in(repeat(body, context, 3, together), batch, together);
    for (int i = 0; i < BATCHES; i++) all[i] = repeat(body, context, n, together);
    return median(all, BATCHES);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*part)(void); int ranks; } parts[] = {
        {"pack", bench_pack, 1}, {"first", bench_first, 1}, {"messages", bench_messages, 2}, {"collectives", bench_collectives, 2},
        {"rma", bench_rma, 2}, {"create", bench_create, 1}, {"memory-vector", bench_memory_vector, 1},
        {"memory-struct", bench_memory_struct, 1}, {"memory-indexed", bench_memory_indexed, 1}, {"memory-used", bench_memory_used, 1},
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 2) batch = atof(argv[2]) * 1e6;
    for (size_t i = 0; argc > 1 && i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(argv[1], parts[i].name)) {
            if (ranks != parts[i].ranks) {
                fprintf(stderr, "bench %s needs %d ranks, not %d\n", argv[1], parts[i].ranks, ranks);
                MPI_Abort(MPI_COMM_WORLD, 2);
            }
            parts[i].part();
            MPI_Finalize();
            return 0;
        }
    fprintf(stderr, "bench PART [MILLISECONDS]; parts are");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) fprintf(stderr, " %s", parts[i].name);
    fprintf(stderr, "\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
}
