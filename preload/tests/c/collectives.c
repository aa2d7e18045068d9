/* Makes random collective calls with derived types, and compares the results with the definition of
 * each call: what every rank must have received, and that the bytes in gaps have not changed.
 *
 * Each rank chooses its own layout for the type signature of a call. Calls are blocking,
 * nonblocking or persistent. Arguments: number of calls, seed, maximum number of elements in a
 * call. Prints "wrong N" and the number of calls of each kind and in each mode. */
#include "layouts.h"

#include <stdio.h>

enum { BCAST, GATHER, GATHERV, SCATTER, SCATTERV, ALLGATHER, ALLTOALL, ALLTOALLV, ALLTOALLW, KINDS };
static const char *const names[KINDS] = {"bcast",    "gather",    "gatherv",  "scatter",  "scatterv",
                                         "allgather", "alltoall", "alltoallv", "alltoallw"};

/* KEEP copies both buffers before a call. The call must not change the send buffer, which is
 * compared with its copy afterwards. RUN makes the call; before it starts a persistent call a
 * second time, it restores the receive buffer from its copy. */
#define KEEP()                                                     \
    (memcpy(before, out, (size_t)(sn * s.extent + 4096)),          \
     memcpy(first, in, (size_t)(rn * r.extent + 4096)))
#define RUN(Name, name, ...)                                                                                   \
    CALL(mode, (call + world) % 4, comm, memcpy(in, first, (size_t)(rn * r.extent + 4096)), MPI_##Name,        \
         MPI_I##name, MPI_##Name##_init, __VA_ARGS__)

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int calls = argc > 1 ? atoi(argv[1]) : 100, max_count = argc > 3 ? atoi(argv[3]) : 2000;
    int seed = argc > 2 ? atoi(argv[2]) : 1, world, wrong = 0, made[KINDS] = {0}, done[MODES] = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm comms[4] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, world % 2, world, &comms[2]);
    if (size > 1) MPI_Intercomm_create(comms[2], 0, MPI_COMM_WORLD, world % 2 ? 0 : 1, 7, &comms[3]);
    state = (uint64_t)seed * 0x2545f4914f6cdd1du + 1;

    for (int call = 0; call < calls; call++) {
        /* Choose the function, type signature, communicator, mode and count of this call. All ranks
         * have the same seed, so they make the same choices. */
        int op = below(KINDS), kind = below(3) == 0 ? 1 + below(MAX_ELEMENTS) : -below(2);
        int which = size > 1 ? below(4) : below(3), place = below(4) == 0, turn = below(3), mode = any_mode();
        long count;
        switch (below(4)) {
        case 0: count = 1 + below(4); break;
        case 1: count = size - 1 + below(3); break;
        case 2: count = 1 + below(max_count); break;
        default: count = 1 + below(max_count) / (1 + below(16)); break;
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
        /* The root is a rank of the communicator or, for the intercommunicator, a rank of group 0,
         * which has the ranks with even numbers in MPI_COMM_WORLD. */
        int zeros = (size + 1) / 2;
        int root = (int)(root_choice % (uint64_t)(inter ? zeros : p));
        int rooted = op <= SCATTERV, at_root = rank == root && group == 0;
        int argument = !inter ? root : group == 1 ? root : at_root ? MPI_ROOT : MPI_PROC_NULL;
        int takes = !rooted || !inter || group == 1;
        if (kind > 8 && count > 400) count = 400;
#ifdef CUTS_SEGMENTS
        /* MPICH's nonblocking broadcast on an intercommunicator moves wrong bytes if ranks have
         * different layouts, so only its blocking broadcast is tried there. */
        if (op == BCAST && which == 3) mode = BLOCKING;
        /* MPICH's own collective algorithms send bytes to receivers that have derived types, and
         * MPICH refuses a segment of such a message that ends inside an element. So calls with the
         * signature 0, whose packed elements are not aligned, have few elements and short
         * messages. */
        if (kind == 0 && count > 150 / size) count = 1 + 150 / size;
#endif
        if (size > 8 && count > 3000 / size) count = 1 + 3000 / size;

        struct layout s = layout(kind, (world + turn) % 3), r = layout(kind, (world + call) % 3);
        int *counts = calloc(blocks, sizeof *counts), *sd = calloc(blocks, sizeof *sd), *rd = calloc(blocks, sizeof *rd);
        int *scounts = calloc(blocks, sizeof *scounts);
        MPI_Datatype *types = calloc(2 * blocks, sizeof *types);
        long total = 0, stotal = 0;
        /* Compute the number of elements that this rank receives from rank i (`counts`) and the
         * number that it sends to rank i (`scounts`). The sender and the receiver compute the same
         * number. */
        for (int i = 0; i < blocks; i++) {
            /* In MPI_Gatherv and MPI_Scatterv, which have one list of counts, the number of
             * elements depends only on rank i. In MPI_Alltoallv and MPI_Alltoallw it depends on
             * both ranks. */
            counts[i] = (int)((count + 3L * i) % (count + 1));
            scounts[i] = counts[i];
            if (op == ALLTOALLV || op == ALLTOALLW) {
                counts[i] = (int)((count + 5L * i + 7L * rank) % (count + 1));
                scounts[i] = (int)((count + 5L * rank + 7L * i) % (count + 1));
            }
        }
        /* Compute the displacements of the blocks in the receive buffer (`rd`) and in the send
         * buffer (`sd`). The blocks are in reverse order and have gaps between them, so that their
         * places differ from those in packed data. */
        for (int i = blocks - 1; i >= 0; i--) {
            rd[i] = (int)total;
            total += counts[i] + 1;
            sd[i] = (int)stotal;
            stotal += scounts[i] + 1;
        }
        long equal = count * blocks;
        long sn = op == GATHER || op == ALLGATHER || op == GATHERV ? count : op == SCATTERV || op >= ALLTOALLV ? stotal : equal;
        if (op == GATHERV) sn = count + 1;
        long rn = op == SCATTER ? count : op == SCATTERV ? count + 1 : op == GATHERV || op >= ALLTOALLV ? total : equal;
        if (op == BCAST) sn = rn = count;
        char *out = buffer(&s, sn), *in = buffer(&r, rn), *wanted = buffer(&r, rn), *before = buffer(&s, sn), *first = buffer(&r, rn);
        /* The values that a rank sends are computed from the rank of the sender in its own group.
         * Receivers know the sender's rank from the place of the block in the receive buffer. */
        int me = rank;
        /* In MPI_Gatherv and MPI_Scatterv, the number of elements that this rank sends to the root
         * or receives from it is the entry for this rank in the root's list. */
        int mine = (int)((count + 3L * me) % (count + 1));
        int code = 0;
        switch (op) {
        case BCAST:
            if (at_root) put(&r, in, 0, count, call, root, 0);
            if (at_root || takes) put(&r, wanted, 0, count, call, root, 0);
            KEEP();
            RUN(Bcast, bcast, in, (int)count, r.type, argument);
            break;
        case GATHER:
            put(&s, out, 0, count, call, me, 0);
            if (at_root) {
                for (int i = 0; i < blocks; i++) put(&r, wanted, i * count, count, call, i, 0);
                if (place) put(&r, in, rank * count, count, call, me, 0);
            }
            KEEP();
            RUN(Gather, gather, at_root && place ? MPI_IN_PLACE : out, (int)count, s.type, in, (int)count, r.type, argument);
            break;
        case GATHERV:
            put(&s, out, 0, mine, call, me, 0);
            if (at_root) {
                for (int i = 0; i < blocks; i++) put(&r, wanted, rd[i], counts[i], call, i, 0);
                if (place) put(&r, in, rd[rank], counts[rank], call, me, 0);
            }
            KEEP();
            RUN(Gatherv, gatherv, at_root && place ? MPI_IN_PLACE : out, mine, s.type, in, counts, rd, r.type, argument);
            break;
        case SCATTER:
            if (at_root)
                for (int i = 0; i < blocks; i++) put(&s, out, i * count, count, call, 0, i);
            if (takes && !(at_root && place)) put(&r, wanted, 0, count, call, 0, me);
            KEEP();
            RUN(Scatter, scatter, out, (int)count, s.type, at_root && place ? MPI_IN_PLACE : in, (int)count, r.type, argument);
            break;
        case SCATTERV:
            if (at_root)
                for (int i = 0; i < blocks; i++) put(&s, out, sd[i], scounts[i], call, 0, i);
            if (takes && !(at_root && place)) put(&r, wanted, 0, mine, call, 0, me);
            KEEP();
            RUN(Scatterv, scatterv, out, scounts, sd, s.type, at_root && place ? MPI_IN_PLACE : in, mine, r.type, argument);
            break;
        case ALLGATHER:
            put(&s, out, 0, count, call, me, group);
            for (int i = 0; i < blocks; i++) put(&r, wanted, i * count, count, call, i, inter ? 1 - group : 0);
            if (place) put(&r, in, rank * count, count, call, me, 0);
            KEEP();
            RUN(Allgather, allgather, place ? MPI_IN_PLACE : out, (int)count, s.type, in, (int)count, r.type);
            break;
        case ALLTOALL:
            for (int i = 0; i < blocks; i++) put(&s, out, i * count, count, call, me, i);
            for (int i = 0; i < blocks; i++) put(&r, wanted, i * count, count, call, i, me);
            if (place)
                for (int i = 0; i < blocks; i++) put(&r, in, i * count, count, call, me, i);
            KEEP();
            RUN(Alltoall, alltoall, place ? MPI_IN_PLACE : out, (int)count, s.type, in, (int)count, r.type);
            break;
        case ALLTOALLV:
            for (int i = 0; i < blocks; i++) put(&s, out, sd[i], scounts[i], call, me, i);
            for (int i = 0; i < blocks; i++) put(&r, wanted, rd[i], counts[i], call, i, me);
            KEEP();
            RUN(Alltoallv, alltoallv, out, scounts, sd, s.type, in, counts, rd, r.type);
            break;
        case ALLTOALLW:
            for (int i = 0; i < blocks; i++) put(&s, out, sd[i], scounts[i], call, me, i);
            for (int i = 0; i < blocks; i++) put(&r, wanted, rd[i], counts[i], call, i, me);
            KEEP();
            for (int i = 0; i < blocks; i++) {
                types[i] = s.type;
                types[blocks + i] = r.type;
                sd[i] *= (int)s.extent;
                rd[i] *= (int)r.extent;
            }
            RUN(Alltoallw, alltoallw, out, scounts, sd, types, in, counts, rd, types + blocks);
            break;
        }
        if (code != 0 || !same(&r, in, wanted, rn) || !same(&s, out, before, sn)) {
            if (wrong++ < 4)
                fprintf(stderr, "rank %d, call %d: %s %s of %ld, signature %d, communicator %d, root %d, place %d: code %d\n", world, call,
                        modes[mode], names[op], count, kind, which, root, place, code);
        }
        made[op]++;
        done[mode]++;
        MPI_Type_free(&s.type);
        MPI_Type_free(&r.type);
        free(out); free(in); free(wanted); free(before); free(first);
        free(counts); free(scounts); free(sd); free(rd); free(types);
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (world == 0) {
        printf("wrong %d\n", all);
        for (int i = 0; i < KINDS; i++) printf("%s %d\n", names[i], made[i]);
        for (int i = 0; i < MODES; i++) printf("%s %d\n", modes[i], done[i]);
    }
    MPI_Finalize();
    return 0;
}
