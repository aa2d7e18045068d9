/* Random collective calls with derived types, judged by their definition: what every rank received, and that gaps keep their bytes.
 *
 * Each rank takes its own layout of the call's signature. Arguments: calls, seed, most elements of a call. Prints "wrong N" and how many
 * calls of each kind were made. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLTOALL, ALLTOALLV, KINDS };
static const char *const names[KINDS] = {"bcast",   "gather",    "gatherv",  "scatter",
                                         "scatterv", "allgather", "alltoall", "alltoallv"};

enum { MOST = 64 };

/* A layout: the displacements of its basic elements in the order of its type map. */
struct layout {
    MPI_Datatype type;
    int n;
    int bytes[MOST];
    MPI_Aint at[MOST];
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

/* A layout of signature `kind`: 0 a structure of int, double and three floats, whose packed elements lie across places that are multiples of
 * 8; -1 one of double, int and float, whose elements don't; else that many doubles. */
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
        MPI_Aint at[MOST];
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

/* The value of an element that `from` sends to `to`, as bytes. */
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

/* What is sent must stay as it is. */
#define KEEP() memcpy(before, out, (size_t)(sn * s.extent + 4096))

static int same(const struct layout *l, const char *a, const char *b, long count)
{
    return memcmp(a, b, (size_t)(count * l->extent + 4096)) == 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int calls = argc > 1 ? atoi(argv[1]) : 100, most = argc > 3 ? atoi(argv[3]) : 2000;
    int seed = argc > 2 ? atoi(argv[2]) : 1, world, wrong = 0, made[KINDS] = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm comms[4] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comms[2]);
    if (size > 1) MPI_Intercomm_create(comms[2], 0, MPI_COMM_WORLD, world % 2 ? 0 : 1, 7, &comms[3]);
    state = (uint64_t)seed * 0x2545f4914f6cdd1du + 1;

    for (int call = 0; call < calls; call++) {
        /* The same choices on every rank. */
        int op = below(KINDS), kind = below(3) == 0 ? 1 + below(MOST) : -below(2);
        int which = size > 1 ? below(4) : below(3), place = below(4) == 0, turn = below(3);
        long count;
        switch (below(4)) {
        case 0: count = 1 + below(4); break;
        case 1: count = size - 1 + below(3); break;
        case 2: count = 1 + below(most); break;
        default: count = 1 + below(most) / (1 + below(16)); break;
        }
        if (op == BCAST) count *= 1 + below(8);
        uint64_t root_choice = next();
        MPI_Comm comm = comms[which];
        int rank, p, inter = which == 3;
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &p);
        int blocks = p, group = 0;
        if (inter) {
            MPI_Comm_remote_size(comm, &blocks);
            group = world % 2;
            place = 0;
        }
        /* Root: a rank of the communicator, or of the group 0 of two. */
        int zeros = (size + 1) / 2;
        int root = (int)(root_choice % (uint64_t)(inter ? zeros : p));
        int rooted = op <= SCATTERV, at_root = rank == root && group == 0;
        int argument = !inter ? root : group == 1 ? root : at_root ? MPI_ROOT : MPI_PROC_NULL;
        int takes = !rooted || !inter || group == 1;
        if (kind > 8 && count > 400) count = 400;
#ifdef CUTS_SEGMENTS
        /* MPICH's own algorithms send bytes to derived types, and refuse segments that end inside an element. */
        if (kind == 0 && count > 150 / size) count = 1 + 150 / size;
#endif
        if (size > 8 && count > 3000 / size) count = 1 + 3000 / size;

        struct layout s = layout(kind, (world + turn) % 3), r = layout(kind, (world + call) % 3);
        int *counts = calloc(blocks, sizeof *counts), *sd = calloc(blocks, sizeof *sd), *rd = calloc(blocks, sizeof *rd);
        int *scounts = calloc(blocks, sizeof *scounts);
        long total = 0, stotal = 0;
        /* Who is who in a message: world ranks, so that both groups agree. */
        for (int i = 0; i < blocks; i++) {
            /* Length of what rank i and this one exchange in the calls with lengths of their own. */
            counts[i] = (int)((count + 3L * i) % (count + 1));
            scounts[i] = counts[i];
            if (op == ALLTOALLV) {
                counts[i] = (int)((count + 5L * i + 7L * rank) % (count + 1));
                scounts[i] = (int)((count + 5L * rank + 7L * i) % (count + 1));
            }
        }
        /* In reverse order with gaps, so that places are not those of packed parts. */
        for (int i = blocks - 1; i >= 0; i--) {
            rd[i] = (int)total;
            total += counts[i] + 1;
            sd[i] = (int)stotal;
            stotal += scounts[i] + 1;
        }
        long equal = count * blocks;
        long sn = op == GATHER || op == ALLGATHER || op == GATHERV ? count : op == SCATTERV || op == ALLTOALLV ? stotal : equal;
        if (op == GATHERV) sn = count + 1;
        long rn = op == SCATTER ? count : op == SCATTERV ? count + 1 : op == GATHERV || op == ALLTOALLV ? total : equal;
        if (op == BCAST) sn = rn = count;
        char *out = buffer(&s, sn), *in = buffer(&r, rn), *wanted = buffer(&r, rn), *before = buffer(&s, sn);
        /* A rank's number in values: its own in the group that it is in; receivers know the other's by its place. */
        int me = rank;
        /* In rooted calls with lengths a rank's own length is that of its place at the root. */
        int mine = (int)((count + 3L * me) % (count + 1));
        int code = 0;
        switch (op) {
        case BCAST:
            if (at_root) put(&r, in, 0, count, call, root, 0);
            if (at_root || takes) put(&r, wanted, 0, count, call, root, 0);
            KEEP();
            code = MPI_Bcast(in, (int)count, r.type, argument, comm);
            break;
        case GATHER:
            put(&s, out, 0, count, call, me, 0);
            if (at_root) {
                for (int i = 0; i < blocks; i++) put(&r, wanted, i * count, count, call, i, 0);
                if (place) put(&r, in, rank * count, count, call, me, 0);
            }
            KEEP();
            code = MPI_Gather(at_root && place ? MPI_IN_PLACE : out, (int)count, s.type, in, (int)count, r.type, argument, comm);
            break;
        case GATHERV:
            put(&s, out, 0, mine, call, me, 0);
            if (at_root) {
                for (int i = 0; i < blocks; i++) put(&r, wanted, rd[i], counts[i], call, i, 0);
                if (place) put(&r, in, rd[rank], counts[rank], call, me, 0);
            }
            KEEP();
            code = MPI_Gatherv(at_root && place ? MPI_IN_PLACE : out, mine, s.type, in, counts, rd, r.type, argument, comm);
            break;
        case SCATTER:
            if (at_root)
                for (int i = 0; i < blocks; i++) put(&s, out, i * count, count, call, 0, i);
            if (takes && !(at_root && place)) put(&r, wanted, 0, count, call, 0, me);
            KEEP();
            code = MPI_Scatter(out, (int)count, s.type, at_root && place ? MPI_IN_PLACE : in, (int)count, r.type, argument, comm);
            break;
        case SCATTERV:
            if (at_root)
                for (int i = 0; i < blocks; i++) put(&s, out, sd[i], scounts[i], call, 0, i);
            if (takes && !(at_root && place)) put(&r, wanted, 0, mine, call, 0, me);
            KEEP();
            code = MPI_Scatterv(out, scounts, sd, s.type, at_root && place ? MPI_IN_PLACE : in, mine, r.type, argument, comm);
            break;
        case ALLGATHER:
            put(&s, out, 0, count, call, me, group);
            for (int i = 0; i < blocks; i++) put(&r, wanted, i * count, count, call, i, inter ? 1 - group : 0);
            if (place) put(&r, in, rank * count, count, call, me, 0);
            KEEP();
            code = MPI_Allgather(place ? MPI_IN_PLACE : out, (int)count, s.type, in, (int)count, r.type, comm);
            break;
        case ALLTOALL:
            for (int i = 0; i < blocks; i++) put(&s, out, i * count, count, call, me, i);
            for (int i = 0; i < blocks; i++) put(&r, wanted, i * count, count, call, i, me);
            if (place)
                for (int i = 0; i < blocks; i++) put(&r, in, i * count, count, call, me, i);
            KEEP();
            code = MPI_Alltoall(place ? MPI_IN_PLACE : out, (int)count, s.type, in, (int)count, r.type, comm);
            break;
        case ALLTOALLV:
            for (int i = 0; i < blocks; i++) put(&s, out, sd[i], scounts[i], call, me, i);
            for (int i = 0; i < blocks; i++) put(&r, wanted, rd[i], counts[i], call, i, me);
            KEEP();
            code = MPI_Alltoallv(out, scounts, sd, s.type, in, counts, rd, r.type, comm);
            break;
        }
        if (code != 0 || !same(&r, in, wanted, rn) || !same(&s, out, before, sn)) {
            if (wrong++ < 4)
                fprintf(stderr, "rank %d, call %d: %s of %ld, signature %d, communicator %d, root %d, place %d: code %d\n", world, call,
                        names[op], count, kind, which, root, place, code);
        }
        made[op]++;
        MPI_Type_free(&s.type);
        MPI_Type_free(&r.type);
        free(out); free(in); free(wanted); free(before);
        free(counts); free(scounts); free(sd); free(rd);
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (world == 0) {
        printf("wrong %d\n", all);
        for (int i = 0; i < KINDS; i++) printf("%s %d\n", names[i], made[i]);
    }
    MPI_Finalize();
    return 0;
}
