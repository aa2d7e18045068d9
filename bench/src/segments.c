/* Runs MPIX_Type_iov_len and MPIX_Type_iov of this MPI library on the layouts of layouts.h.
 *
 *   segments INDEX      prints "segments SEGMENTS BYTES LEN LIST MIDDLE" for the layout. LEN is the
 *                       time of MPIX_Type_iov_len for the whole type. LIST is the time for each
 *                       segment when all segments are listed, or the first 2^20 of them if there
 *                       are more. Each call of MPIX_Type_iov lists the next 1024 segments, into the
 *                       same array. MIDDLE is the time of one segment in the middle.
 *
 * Times are in nanoseconds. Each is the minimum over a first call and several rounds. A round
 * repeats the call until 200 us have passed, and gives the mean time of its calls. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "layouts.h"

enum { ARRAY = 1024, MAX_LISTED = 1 << 20, ROUNDS = 9 };
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }

static MPI_Datatype t;
static MPI_Count size, all, bytes, listed;
static MPIX_Iov iov[ARRAY];

static void len(void) { MPIX_Type_iov_len(t, size, &all, &bytes); }
static void list(void)
{
    MPI_Count n;
    for (listed = 0; listed < all && listed < MAX_LISTED; listed += n) {
        MPIX_Type_iov(t, listed, iov, ARRAY, &n);
        if (n <= 0) { fprintf(stderr, "%lld of %lld segments\n", (long long)listed, (long long)all); exit(1); }
    }
}
static void middle(void) { MPI_Count n; MPIX_Type_iov(t, all / 2, iov, 1, &n); }

/* Returns the nanoseconds of a call. A call that takes a second or more is not repeated. */
static double best_time(void (*call)(void))
{
    double start = now(), best;
    call();
    best = now() - start;
    for (int round = 0; round < ROUNDS && best < 1e9; round++) {
        long n = 0;
        double time = 0;
        for (start = now(); time < 2e5; time = now() - start) call(), n++;
        if (time / n < best) best = time / n;
    }
    return best;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc < 2) return 2;
    t = make[atoi(argv[1])]();
    MPI_Type_commit(&t);
    MPI_Type_size_x(t, &size);
    double first = best_time(len), each = best_time(list), one = best_time(middle);
    printf("segments %lld %lld %.1f %.3f %.1f\n", (long long)all, (long long)bytes, first, each / listed, one);
    MPI_Finalize();
    return 0;
}
