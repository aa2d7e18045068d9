/* Measures the layouts of ddtc's benchmark in an Open MPI 6.0 with mover-provider-6.patch. Each type
 * is made twice: before the provider is registered, so that Open MPI's own engine moves it, and
 * afterwards. Batches of calls with the two types alternate.
 *
 *     times pack        MPI_Pack and MPI_Unpack, in one process: the minimum over the batches
 *     times messages    half of a round trip between two ranks: the median over the batches
 *
 * Each row has the bytes, nanoseconds without the provider and with it, the ratio of the two, and
 * whether the provider took the type. Rows of types that it left are a control: the same functions
 * move both types. What both types pack and unpack is compared first. The command
 * `ddtc bench --mpi-source FOLDER` writes layouts.h. */
#include <math.h>

#include "bench.h"
#include "layouts.h"

enum { LAYOUTS = sizeof layouts / sizeof *layouts, ROUNDS = 15 };

extern void ddtc_provider_register(void);
extern struct {
    unsigned long commits, refused, destructs, sends, receives, bytes_packed, bytes_unpacked;
} ddtc_provider_counts;

int rank, ranks;
static int slow[2], rows[2]; /* of types that the provider left, and of those that it took */
static double sums[2], limit;

struct job {
    const struct layout *l;
    MPI_Datatype type;
    char *user, *packed;
};

double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void pack(struct job *j)
{
    int at = 0;
    MPI_Pack(j->user, j->l->count, j->type, j->packed, (int)j->l->bytes, &at, MPI_COMM_SELF);
}

static void unpack(struct job *j)
{
    int at = 0;
    MPI_Unpack(j->packed, (int)j->l->bytes, &at, j->user, j->l->count, j->type, MPI_COMM_SELF);
}

static void turn(struct job *j)
{
    for (int half = 0; half < 2; half++)
        if ((rank + half) % 2 == 0) MPI_Send(j->user, j->l->count, j->type, 1 - rank, 1, MPI_COMM_WORLD);
        else MPI_Recv(j->user, j->l->count, j->type, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double batch_of(void (*body)(struct job *), struct job *j, long n)
{
    if (ranks > 1) MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    for (long i = 0; i < n; i++) body(j);
    return (now() - start) / (double)n / ranks;
}

static int by_value(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

/* Measures `body` with the plain type and with the other type, and prints the row. */
static void measure(const char *what, void (*body)(struct job *), struct job *jobs, int taken)
{
    double all[2][ROUNDS];
    for (int way = 0; way < 2; way++) batch_of(body, &jobs[way], 20);
    long n = 1 + (long)(1e6 / batch_of(body, &jobs[0], 3));
    MPI_Bcast(&n, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++)
        for (int way = 0; way < 2; way++) all[way ^ (round & 1)][round] = batch_of(body, &jobs[way ^ (round & 1)], n);
    for (int way = 0; way < 2; way++) qsort(all[way], ROUNDS, sizeof(double), by_value);
    int which = ranks > 1 ? ROUNDS / 2 : 0;
    double ratio = all[1][which] / all[0][which];
    rows[taken]++, sums[taken] += log(ratio), slow[taken] += ratio > limit;
    if (rank == 0)
        printf("%s %s, %ld, %.0f, %.0f, %.2f, %s%s\n", what, jobs->l->name, jobs->l->bytes, all[0][which], all[1][which], ratio,
               taken ? "taken" : "left", ratio > limit ? ", above the limit" : "");
}

/* Stops if the two types do not pack the same bytes, or do not unpack them to the same places. */
static void check(struct job *jobs, long span)
{
    const struct layout *l = jobs->l;
    char *packed[2], *memory[2], *user = jobs->user;
    for (int way = 0; way < 2; way++) {
        packed[way] = calloc(1, (size_t)l->bytes);
        memory[way] = calloc(1, (size_t)span);
        struct job j = {l, jobs[way].type, user, packed[way]};
        pack(&j);
        j.user = memory[way] - l->low;
        unpack(&j);
    }
    if (memcmp(packed[0], packed[1], (size_t)l->bytes) || memcmp(memory[0], memory[1], (size_t)span)) {
        printf("%s: the provider moves other bytes than Open MPI\n", l->name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int way = 0; way < 2; way++) free(packed[way]), free(memory[way]);
}

int main(int argc, char **argv)
{
    static MPI_Datatype plain[LAYOUTS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int messages = argc > 1 && !strcmp(argv[1], "messages");
    if (ranks != 1 + messages) {
        fprintf(stderr, "times pack needs one rank, and times messages two\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    limit = messages ? 1.10 : 1.05;
    for (int i = 0; i < LAYOUTS; i++) {
        plain[i] = layouts[i].make();
        MPI_Type_commit(&plain[i]);
    }
    ddtc_provider_register();
    for (int i = 0; i < LAYOUTS; i++) {
        const struct layout *l = &layouts[i];
        long span = l->high - l->low;
        unsigned long commits = ddtc_provider_counts.commits;
        char *whole = malloc((size_t)span);
        struct job jobs[2] = {{l, plain[i], whole - l->low, malloc((size_t)l->bytes)}};
        jobs[1] = jobs[0];
        jobs[1].type = l->make();
        MPI_Type_commit(&jobs[1].type);
        int taken = ddtc_provider_counts.commits > commits;
        for (long k = 0; k < span; k++) whole[k] = (char)(k * 7 + k / 251);
        check(jobs, span);
        if (messages) {
            measure("message", turn, jobs, taken);
        } else {
            measure("pack", pack, jobs, taken);
            measure("unpack", unpack, jobs, taken);
        }
        for (int way = 0; way < 2; way++) MPI_Type_free(&jobs[way].type);
        free(whole);
        free(jobs->packed);
    }
    for (int taken = 0; rank == 0 && taken < 2; taken++)
        printf("times: %d rows of types that are %s, geometric mean %.2f, %d above %.2f\n", rows[taken], taken ? "taken" : "left",
               exp(sums[taken] / rows[taken]), slow[taken], limit);
    MPI_Finalize();
    return 0;
}
