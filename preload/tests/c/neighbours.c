/* Makes random neighbourhood collective calls with derived types on grids, graphs and distributed
 * graphs. The results are compared with the definition of the calls (MPI 5.0, 8.6).
 *
 * Each rank chooses its own layout for the type signature of a call. Calls are blocking,
 * nonblocking or persistent. Arguments: number of calls, seed, maximum number of elements in a
 * call. Prints "wrong N" and the number of calls of each kind and in each mode. */
#include "layouts.h"

#include <stdio.h>

#pragma GCC diagnostic ignored "-Wstringop-overread" /* MPI_UNWEIGHTED is not an array */

enum { GATHER, GATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, KINDS };
static const char *const names[KINDS] = {"allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"};
enum { GRID, GRAPH, DIRECTED, TOPOLOGIES };

enum { RANKS = 64, EDGES = 16 };

/* The edges of the topology for every rank: its destinations, its sources, and for each source the
 * index that this edge has among the destinations of the source. */
static struct {
    int in, out;
    int to[EDGES], from[EDGES], edge[EDGES];
} of[RANKS];

/* Sets the indices `edge` of all ranks. If there are several edges from one rank to another, the
 * k-th of them in the order of the sender is the k-th of them in the order of the receiver. */
static void match(int size)
{
    for (int r = 0; r < size; r++)
        for (int k = 0; k < of[r].in; k++) {
            int s = of[r].from[k], nth = 0;
            for (int i = 0; i < k; i++) nth += of[r].from[i] == s;
            for (int d = 0; d < of[s].out; d++)
                if (of[s].to[d] == r && nth-- == 0) of[r].edge[k] = d;
        }
}

/* Returns whether one more edge between two ranks may be added to the topology. */
static int may_join(int from, int to)
{
#ifdef CONFUSES_EDGES
    /* MPICH before 5.0.2 takes the messages of several edges between the same two ranks in another
     * order, so make at most one edge in this direction. */
    for (int i = 0; i < of[from].out; i++)
        if (of[from].to[i] == to) return 0;
#endif
    return of[from].out < EDGES && of[to].in < EDGES;
}

static MPI_Comm grid(int size)
{
    int n = 1 + below(3), dims[3] = {0}, periods[3];
    MPI_Comm comm;
    for (int d = 0; d < n; d++) periods[d] = below(2);
    MPI_Dims_create(size, n, dims);
#ifdef CONFUSES_PAIRS
    /* If both neighbours of a rank in a dimension are the same process, Open MPI's nonblocking
     * calls and all calls of Intel MPI confuse the message that the process sends downwards with
     * the one that it sends upwards. So a dimension of one or two ranks is not periodic here. */
    for (int d = 0; d < n; d++) periods[d] &= dims[d] > 2;
#endif
    MPI_Cart_create(MPI_COMM_WORLD, n, dims, periods, 0, &comm);
    for (int r = 0; r < size; r++) {
        int at[3], there[3];
        MPI_Cart_coords(comm, r, n, at);
        of[r].in = of[r].out = 2 * n;
        for (int k = 0; k < 2 * n; k++) {
            memcpy(there, at, sizeof at);
            there[k / 2] += k % 2 ? 1 : -1;
            int peer = MPI_PROC_NULL, inside = there[k / 2] >= 0 && there[k / 2] < dims[k / 2];
            if (inside || periods[k / 2]) MPI_Cart_rank(comm, there, &peer);
            of[r].to[k] = of[r].from[k] = peer;
            /* The message from the lower neighbour is the one that this neighbour has sent upwards,
             * and the other way round. */
            of[r].edge[k] = k ^ 1;
        }
    }
    return comm;
}

static MPI_Comm graph(int size)
{
    MPI_Comm comm;
    memset(of, 0, sizeof of);
    for (int e = 0; e < 2 * size; e++) {
        int a = below(size), b = below(size);
        if (a == b || of[b].out == EDGES || !may_join(a, b)) continue;
        of[a].to[of[a].out++] = b;
        of[b].to[of[b].out++] = a;
    }
    int index[RANKS], edges[RANKS * EDGES], n = 0;
    for (int r = 0; r < size; r++) {
        of[r].in = of[r].out;
        memcpy(of[r].from, of[r].to, sizeof of[r].to);
        for (int k = 0; k < of[r].out; k++) edges[n++] = of[r].to[k];
        index[r] = n;
    }
    match(size);
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
    return comm;
}

static MPI_Comm directed(int size, int rank)
{
    MPI_Comm comm;
    memset(of, 0, sizeof of);
    for (int e = 0; e < 2 * size; e++) {
        int a = below(size), b = below(size);
        if (!may_join(a, b)) continue;
        of[a].to[of[a].out++] = b;
        of[b].from[of[b].in++] = a;
    }
    match(size);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, of[rank].in, of[rank].from, MPI_UNWEIGHTED, of[rank].out, of[rank].to,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

#define RUN(name, ...)                                                                                          \
    CALL(mode, (call + rank) % 4, comm, memcpy(in, first, (size_t)(rn * r.extent + 4096)), MPI_Neighbor_##name, \
         MPI_Ineighbor_##name, MPI_Neighbor_##name##_init, __VA_ARGS__)

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int calls = argc > 1 ? atoi(argv[1]) : 100, max_count = argc > 3 ? atoi(argv[3]) : 1000;
    int seed = argc > 2 ? atoi(argv[2]) : 1, rank, size, wrong = 0, made[KINDS] = {0}, done[MODES] = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = (uint64_t)seed * 0x2545f4914f6cdd1du + 1;

    MPI_Comm comm = MPI_COMM_NULL;
    int topology = 0;
    for (int call = 0; call < calls; call++) {
        /* Make a new topology before every eighth call. In each call, all ranks choose the same
         * function, signature and count, and each rank chooses its own layouts. */
        if (call % 8 == 0) {
            if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
            topology = below(TOPOLOGIES);
            comm = topology == GRID ? grid(size) : topology == GRAPH ? graph(size) : directed(size, rank);
        }
        int op = below(KINDS), kind = below(3) == 0 ? 1 + below(MAX_ELEMENTS) : -below(2), turn = below(3), mode = any_mode();
        long count = below(3) ? 1 + below(max_count) : 1 + below(4);
        if (kind > 8 && count > 200) count = 200;
        if (size > 8 && count > 2000 / size) count = 1 + 2000 / size;
        struct layout s = layout(kind, (rank + turn) % 3), r = layout(kind, (rank + call) % 3);
        int outs = of[rank].out, ins = of[rank].in;
        int scounts[EDGES], rcounts[EDGES], sd[EDGES], rd[EDGES];
        MPI_Aint sa[EDGES], ra[EDGES];
        MPI_Datatype st[EDGES], rt[EDGES];
        long sn = op == GATHER || op == GATHERV ? count + 1 : 0, rn = 0;
        for (int i = 0; i < EDGES; i++) {
            st[i] = s.type;
            rt[i] = r.type;
            scounts[i] = rcounts[i] = sd[i] = rd[i] = 0;
            sa[i] = ra[i] = 0;
        }
        /* Compute the counts and displacements of the blocks. The counts depend on the sender and
         * the edge, if the call has a list of them. If the call has displacements, the blocks are
         * in reverse order with gaps between them. */
        for (int i = outs - 1; i >= 0; i--) {
            scounts[i] = op == ALLTOALL ? (int)count : (int)((count + 5L * rank + 7L * i) % (count + 1));
            sd[i] = op == ALLTOALL ? (int)count * i : (int)sn;
            sa[i] = sd[i] * s.extent;
            if (op > GATHERV) sn += scounts[i] + (op > ALLTOALL);
        }
        int own = op == GATHERV ? (int)((count + 5L * rank) % (count + 1)) : (int)count;
        for (int i = ins - 1; i >= 0; i--) {
            int from = of[rank].from[i];
            rcounts[i] = (int)count;
            if (op == GATHERV) rcounts[i] = (int)((count + 5L * from) % (count + 1));
            if (op > ALLTOALL) rcounts[i] = (int)((count + 5L * from + 7L * of[rank].edge[i]) % (count + 1));
            if (from == MPI_PROC_NULL) rcounts[i] = (int)count;
            int equal = op == GATHER || op == ALLTOALL;
            rd[i] = equal ? (int)count * i : (int)rn;
            ra[i] = rd[i] * r.extent;
            rn += rcounts[i] + !equal;
        }
        /* Fill the send buffer, and compute from the edges which contents are expected in the
         * receive buffer. The copy of the send buffer shows whether a call changes it. The copy of
         * the receive buffer restores the buffer before a persistent call is started again. */
        char *out = buffer(&s, sn), *in = buffer(&r, rn), *wanted = buffer(&r, rn), *before = buffer(&s, sn), *first = buffer(&r, rn);
        if (op == GATHER || op == GATHERV) {
            put(&s, out, 0, own, call, rank, 0);
        } else {
            for (int i = 0; i < outs; i++) put(&s, out, sd[i], scounts[i], call, rank, i);
        }
        for (int i = 0; i < ins; i++) {
            int from = of[rank].from[i], edge = op == GATHER || op == GATHERV ? 0 : of[rank].edge[i];
            if (from != MPI_PROC_NULL) put(&r, wanted, rd[i], rcounts[i], call, from, edge);
        }
        memcpy(before, out, (size_t)(sn * s.extent + 4096));
        memcpy(first, in, (size_t)(rn * r.extent + 4096));
        int code = 0;
        switch (op) {
        case GATHER: RUN(allgather, out, (int)count, s.type, in, (int)count, r.type); break;
        case GATHERV: RUN(allgatherv, out, own, s.type, in, rcounts, rd, r.type); break;
        case ALLTOALL: RUN(alltoall, out, (int)count, s.type, in, (int)count, r.type); break;
        case ALLTOALLV: RUN(alltoallv, out, scounts, sd, s.type, in, rcounts, rd, r.type); break;
        case ALLTOALLW: RUN(alltoallw, out, scounts, sa, st, in, rcounts, ra, rt); break;
        }
        if (code != 0 || !same(&r, in, wanted, rn) || !same(&s, out, before, sn)) {
            if (wrong++ < 4)
                fprintf(stderr, "rank %d, call %d: %s neighbor_%s of %ld, signature %d, topology %d: code %d\n", rank, call, modes[mode],
                        names[op], count, kind, topology, code);
        }
        made[op]++;
        done[mode]++;
        MPI_Type_free(&s.type);
        MPI_Type_free(&r.type);
        free(out); free(in); free(wanted); free(before); free(first);
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("wrong %d\n", all);
        for (int i = 0; i < KINDS; i++) printf("neighbor_%s %d\n", names[i], made[i]);
        for (int i = 0; i < MODES; i++) printf("%s %d\n", modes[i], done[i]);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
