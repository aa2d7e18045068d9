/* Makes random one-sided operations with derived types. Prints the results of every call, with
 * hashes of the bytes that were got and of the windows. The output must not depend on the preload
 * library.
 *
 * The program also computes the expected contents of the windows and of the bytes that were got,
 * except where several ranks accumulate at one place.
 *
 * Arguments: number of epochs, seed, maximum number of elements in an operation, and any fourth
 * argument if the ranks share no memory. Windows are made in every way that MPI has; epochs are
 * those of fences, of groups and of locks. Each rank chooses the layouts of its origin data, and
 * frees their types as soon as the call has returned. An origin buffer is overwritten as soon as it
 * belongs to the program again. For a get with a request, this may be before the request is
 * completed, for example after a flush. Some calls are wrong. */
#include "layouts.h"

#include <stdarg.h>
#include <stdio.h>

enum { CREATED, ALLOCATED, SHARED, DYNAMIC, WINDOWS };
enum { FENCE, GROUP, LOCK, LOCK_ALL, EPOCHS };
enum { PUT, ACCUMULATE, RPUT, RACCUMULATE, RGET, OPS };
static const char *const names[OPS] = {"put", "accumulate", "rput", "raccumulate", "rget"};
/* The ways to complete an operation. LATER completes it at the end of its epoch, and all other ways
 * complete it before that. */
enum { LATER, FLUSH, FLUSH_LOCAL, FLUSH_ALL, FLUSH_LOCAL_ALL, REQUEST, ASKED, FREED, WAYS };
enum { RANK = 1, EPOCH, COUNT, TARGET_TYPE, OP, SHORTER, NOBODY, FAULTS };
enum { SLOTS = 3 };
static char *text;
static size_t used, capacity;
static int raised, last, ranks, rank;

static void say(const char *format, ...)
{
    va_list arguments;
    if (capacity - used < 1024) text = realloc(text, capacity = 2 * capacity + 4096);
    va_start(arguments, format);
    used += (size_t)vsnprintf(text + used, capacity - used, format, arguments);
    va_end(arguments);
}

static void handler(MPI_Win *win, int *code, ...)
{
    (void)win;
    raised++;
    MPI_Error_class(*code, &last);
}

static unsigned long long hash(const char *bytes, size_t n)
{
    unsigned long long h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)bytes[i]) * 1099511628211u;
    return h;
}

static int class_of(int code)
{
    int class = 0;
    if (code) MPI_Error_class(code, &class);
    return class;
}

/* A kind of elements that operations accumulate: a named type, its size, and whether it is an
 * integer type or a type of pairs, which have operations of their own. */
struct element {
    MPI_Datatype type;
    int size;
    int integer;
    int pair;
};
enum { ELEMENTS = 8 };

/* Makes a layout of `n` elements of one named type. `variant` selects the distances and the order
 * of the elements. */
static struct layout elements(const struct element *e, int n, int variant)
{
    struct layout l = {.n = n};
    MPI_Datatype inner;
    for (int i = 0; i < n; i++) {
        l.bytes[i] = e->size;
        l.at[i] = (MPI_Aint)e->size * (variant == 0 ? 2 * i : variant == 1 ? i + i / 3 : 2 * (n - 1 - i));
    }
    MPI_Type_create_hindexed_block(n, 1, l.at, e->type, &inner);
    l.extent = (MPI_Aint)e->size * (2 * n + variant);
    MPI_Type_create_resized(inner, 0, l.extent, &l.type);
    MPI_Type_free(&inner);
    MPI_Type_commit(&l.type);
    return l;
}

/* Writes the value of element i that the rank `from` accumulates to `p`. It is a small number, so
 * that sums are exact in any order. */
static void number(const struct element *e, char *p, int call, int from, long i)
{
    uint64_t v = value(call, from, 0, i) % 5;
    float f = (float)v;
    double d = (double)v;
    int pair[2] = {(int)v, (int)(i % 7) + from};
    if (e->pair) memcpy(p, pair, 8);
    else if (e->integer) memcpy(p, &v, e->size);
    else if (e->size == 4) memcpy(p, &f, 4);
    else memcpy(p, &d, 8);
}

/* Returns the offset in bytes of element i in instances of a layout or, if `dense` is true, in
 * packed data. */
static MPI_Aint place(const struct layout *l, int dense, long i)
{
    if (!dense) return i / l->n * l->extent + l->at[i % l->n];
    MPI_Aint size = 0, before = 0;
    for (int j = 0; j < l->n; j++) {
        if (j == i % l->n) before = size;
        size += l->bytes[j];
    }
    return i / l->n * size + before;
}

struct operation {
    int op, kind, element, variant, turn, dense, way, how, fault, large, which, shared, to, target, code;
    long count;
    MPI_Op by;
    struct layout l, there;
    char *buffer;
    int done;
    MPI_Request request;
};

#ifdef LARGE_COUNTS
#define FORM(name, ...) (o->large ? MPI_##name##_c(__VA_ARGS__) : MPI_##name(__VA_ARGS__))
#else
#define FORM(name, ...) MPI_##name(__VA_ARGS__)
#endif

static int issued(struct operation *o, MPI_Aint at, int target, int n, MPI_Datatype there, int m, MPI_Op op, MPI_Win win)
{
    o->request = MPI_REQUEST_NULL;
    switch (o->op) {
    case PUT: return FORM(Put, o->buffer, n, o->l.type, target, at, m, there, win);
    case ACCUMULATE: return FORM(Accumulate, o->buffer, n, o->l.type, target, at, m, there, op, win);
    case RPUT: return FORM(Rput, o->buffer, n, o->l.type, target, at, m, there, win, &o->request);
    case RACCUMULATE: return FORM(Raccumulate, o->buffer, n, o->l.type, target, at, m, there, op, win, &o->request);
    default: return FORM(Rget, o->buffer, n, o->l.type, target, at, m, there, win, &o->request);
    }
}

/* Returns the byte that the program puts at offset `at` of the part of a window from which ranks
 * get, for one epoch and one target rank. */
static char there(int epoch, int target, MPI_Aint at) { return (char)(at * 7 + epoch + target + at / 251); }

static long checked;

static void check(const char *what, int epoch, int k, const char *have, const char *want, size_t n)
{
    checked++;
    for (size_t i = 0; i < n; i++)
        if (have[i] != want[i]) {
            say("  WRONG %s %d.%d: byte %ld is %02x, not %02x\n", what, epoch, k, (long)i, have[i] & 255, want[i] & 255);
            return;
        }
}

/* Is called when an origin buffer belongs to the program again. Checks what was got, and overwrites
 * the buffer. */
static void over(struct operation *o, int epoch, int k)
{
    if (o->done) return;
    o->done = 1;
    size_t bytes = (size_t)(o->count * o->l.extent + 4096);
    if (o->op == RGET && !o->code) {
        char *want = buffer(&o->l, o->count);
        long m = o->fault == NOBODY ? 0 : o->fault == SHORTER && !o->dense ? (o->count + 1) / 2 : o->count;
        for (long i = 0; i < m * o->l.n; i++)
            for (int b = 0; b < o->l.bytes[i % o->l.n]; b++)
                want[place(&o->l, 0, i) + b] = there(epoch, o->target, place(&o->there, o->dense, i) + b);
        say("  got %016llx\n", hash(o->buffer, bytes));
        check("got", epoch, k, o->buffer, want, bytes);
        free(want);
    }
    memset(o->buffer, 0x77, bytes);
}

/* Returns whether an operation moves anything although the program makes it with the fault
 * `o->fault`. With some faults it does. */
static int moves(const struct operation *o)
{
    int accumulates = o->op == ACCUMULATE || o->op == RACCUMULATE;
    return o->fault != RANK && o->fault != COUNT && o->fault != TARGET_TYPE && o->fault != NOBODY && !(accumulates && o->fault == OP);
}

/* Computes the contents that the part of a window must have after operation `k` of the rank `from`.
 * No other operation writes to this part. */
static void made(const struct operation *o, const struct element *e, int epoch, int k, int from, char *want, MPI_Aint part)
{
    int accumulates = o->op == ACCUMULATE || o->op == RACCUMULATE;
    memset(want, accumulates ? 0 : 0x5a, part);
    long count = o->fault == SHORTER && !accumulates && !o->dense ? (o->count + 1) / 2 : o->count;
    for (long i = 0; moves(o) && i < count * o->there.n; i++) {
        char *p = want + place(&o->there, o->dense, i);
        uint64_t v = value(epoch, from, k, i);
        if (!accumulates) memcpy(p, &v, o->there.bytes[i % o->there.n]);
        else if (o->by != MPI_NO_OP) {
            int pair[2];
            number(e, p, epoch * SLOTS + k, from, i);
            /* The initial value and the initial index are 0. If the new value is 0 too, MPI_MAXLOC
             * takes the smaller index, which is the initial one. */
            if (e->pair && o->by == MPI_MAXLOC && (memcpy(pair, p, 8), pair[0] == 0)) memset(p, 0, 8);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int epochs = atoi(argv[1]), seed = atoi(argv[2]), max_count = atoi(argv[3]);
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    state = (uint64_t)seed * 0x2545f4914f6cdd1du + 1;
    const struct element kinds[ELEMENTS] = {{MPI_INT, 4, 1, 0},   {MPI_DOUBLE, 8, 0, 0}, {MPI_FLOAT, 4, 0, 0}, {MPI_LONG_LONG, 8, 1, 0},
                                            {MPI_SHORT, 2, 1, 0}, {MPI_BYTE, 1, 1, 0},   {MPI_2INT, 8, 0, 1},  {MPI_UNSIGNED, 4, 1, 0}};
    /* Compute the offsets of the parts of a window: for puts, for what only one rank accumulates,
     * for what all ranks accumulate, and for gets. */
    MPI_Aint part = 80L * max_count, put_at = 0, own_at = ranks * SLOTS * part, shared_at = 2 * own_at, got_at = shared_at + SLOTS * part;
    MPI_Aint bytes = got_at + part;
    MPI_Win wins[WINDOWS];
    char *memory[WINDOWS], *want = malloc(part);
    MPI_Aint *bases = calloc(ranks, sizeof *bases);
    memory[CREATED] = malloc(bytes);
    memory[DYNAMIC] = malloc(bytes);
    MPI_Win_create(memory[CREATED], bytes, 1, MPI_INFO_NULL, world, &wins[CREATED]);
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, world, &memory[ALLOCATED], &wins[ALLOCATED]);
    if (argc > 4) MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, world, &memory[SHARED], &wins[SHARED]);
    else MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, world, &memory[SHARED], &wins[SHARED]);
    MPI_Win_create_dynamic(MPI_INFO_NULL, world, &wins[DYNAMIC]);
    MPI_Win_attach(wins[DYNAMIC], memory[DYNAMIC], bytes);
    MPI_Aint base;
    MPI_Get_address(memory[DYNAMIC], &base);
    MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, world);
    MPI_Errhandler counted;
    MPI_Win_create_errhandler(handler, &counted);
    MPI_Group everybody;
    MPI_Comm_group(world, &everybody);

    for (int epoch = 0; epoch < epochs; epoch++) {
        int w = below(WINDOWS), e = below(EPOCHS), n = 1 + below(SLOTS), handled = below(2), hints = below(2), exclusive = below(2), shift = below(ranks), together = below(2);
        MPI_Win win = wins[w];
        char *mine = memory[w];
        struct operation operations[SLOTS];
        memset(operations, 0, sizeof operations);
        for (int k = 0; k < n; k++) {
            struct operation *o = &operations[k];
            o->op = below(e < LOCK ? RPUT : OPS);
            o->kind = below(3) == 0 ? 1 + below(MAX_ELEMENTS) : -below(2);
            o->element = below(ELEMENTS);
            o->variant = below(3);
            o->turn = below(3);
            o->dense = below(3) == 0;
            o->way = e < LOCK ? LATER : below(o->op < RPUT ? REQUEST : WAYS);
            o->how = below(4);
            o->large = below(2);
            o->which = below(4);
            o->shared = below(2);
            o->fault = below(8) == 0 ? 1 + below(FAULTS - 1) : 0;
#ifdef OPEN_MPI
            /* Open MPI crashes if an origin is shorter than its target, so this fault is left
             * out. */
            if (o->fault == SHORTER) o->fault = 0;
#endif
            o->count = below(3) ? 1 + below(max_count / 10) : 1 + below(max_count);
            int other = below(ranks);
            /* In an epoch that locks only one rank, all operations go to the locked rank. */
            o->to = e == LOCK ? shift : other;
            o->target = ((together ? 0 : rank) + o->to) % ranks;
            int accumulates = o->op == ACCUMULATE || o->op == RACCUMULATE;
            if (accumulates) o->kind = 1 + below(MAX_ELEMENTS);
            /* A dense target needs a layout of one named type. The layouts of kinds 0 and -1 are
             * structures of several named types. */
            if (o->kind <= 0) o->dense = 0;
            if (o->kind > 0 && o->count > 3 * max_count / o->kind) o->count = 1 + 3 * max_count / o->kind;
            if (accumulates && o->count > 2 * max_count / o->kind) o->count = 1 + 2 * max_count / o->kind;
        }
        MPI_Win_set_errhandler(win, handled ? counted : MPI_ERRORS_RETURN);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
        memset(mine, 0x5a, own_at);
        memset(mine + own_at, 0, got_at - own_at);
        for (MPI_Aint i = 0; i < part; i++) mine[got_at + i] = there(epoch, rank, i);
        MPI_Win_unlock(rank, win);
        MPI_Barrier(world);
        if (e == FENCE) MPI_Win_fence(hints ? MPI_MODE_NOPRECEDE : 0, win);
        if (e == GROUP) {
            MPI_Win_post(everybody, 0, win);
            MPI_Win_start(everybody, 0, win);
        }
        int where = ((together ? 0 : rank) + shift) % ranks;
        for (int k = 0; k < n; k++) {
            struct operation *o = &operations[k];
            const struct element *element = &kinds[o->element];
            int accumulates = o->op == ACCUMULATE || o->op == RACCUMULATE;
            int variant = (rank + o->variant) % 3;
            o->l = accumulates ? elements(element, o->kind, variant) : layout(o->kind, variant);
            o->there = accumulates ? elements(element, o->kind, o->turn) : layout(o->kind, o->turn);
            int here = (int)o->count, m = here, target = o->target;
            MPI_Datatype type = o->there.type, freed = type;
            if (o->dense) {
                type = accumulates ? element->type : MPI_DOUBLE;
                m *= o->l.n;
            }
            MPI_Op op = MPI_REPLACE;
            int shared = accumulates && o->shared;
            if (accumulates) {
                op = o->which == 0 ? MPI_REPLACE : o->which == 1 ? MPI_SUM : o->which == 2 ? MPI_MAX : MPI_BXOR;
                if (o->which == 3 && !element->integer) op = MPI_NO_OP;
#ifdef OPEN_MPI
                /* Open MPI gets MPI_BXOR of 8-byte elements wrong for derived types, unless the
                 * preload library converts them. */
                if (op == MPI_BXOR && element->size == 8) op = MPI_SUM;
#endif
                if (element->size == 1) op = o->which ? MPI_BXOR : MPI_REPLACE;
                if (element->pair) op = o->which ? MPI_MAXLOC : MPI_REPLACE;
                if (op == MPI_REPLACE) shared = 0;
            }
            MPI_Aint slot = (rank * SLOTS + k) * part;
            MPI_Aint at = o->op == RGET ? got_at : shared ? shared_at + k * part : accumulates ? own_at + slot : put_at + slot;
            if (w == DYNAMIC) at += bases[target];
            o->buffer = buffer(&o->l, o->count);
            o->by = op;
            o->shared = shared;
            if (accumulates)
                for (long i = 0; i < o->count * o->l.n; i++) number(element, o->buffer + place(&o->l, 0, i), epoch * SLOTS + k, rank, i);
            else if (o->op != RGET) put(&o->l, o->buffer, 0, o->count, epoch, rank, k);
            if (o->fault == RANK) target = ranks + 3;
            if (o->fault == COUNT) here = -1;
            if (o->fault == TARGET_TYPE) type = MPI_DATATYPE_NULL;
            if (o->fault == OP) op = MPI_OP_NULL;
            if (o->fault == SHORTER && !accumulates && !o->dense) {
                if (o->op == RGET) m = (m + 1) / 2;
                else here = (here + 1) / 2;
            }
            if (o->fault == NOBODY) target = MPI_PROC_NULL;
            /* With the fault EPOCH, make a put before the lock, so that it is in no epoch. */
            if (e == LOCK && k == 0) {
                if (o->fault == EPOCH && o->op == PUT && !o->code) say("outside: class %d\n", class_of(issued(o, at, target, here, type, m, op, win)));
                MPI_Win_lock(exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, where, 0, win);
            }
            if (e == LOCK_ALL && k == 0) MPI_Win_lock_all(0, win);
            o->code = issued(o, at, target, here, type, m, op, win);
            MPI_Type_free(&o->l.type);
            MPI_Type_free(&freed);
            say("%d.%d %s of %ld x %d (%d, %d, %d) to %d in epoch %d of window %d, way %d, fault %d: class %d, handler %d class %d\n", epoch, k, names[o->op],
                o->count, o->kind, o->element, o->which, shared, target, e, w, o->way, o->fault, class_of(o->code), raised, last);
            raised = last = 0;
            int refused = o->code || o->fault == RANK || o->fault == COUNT || o->fault == TARGET_TYPE || o->fault == OP;
            if (refused) {
                /* After an error handler has returned, some MPI libraries return success for the
                 * refused call. Treat it as failed in any case. */
                o->code = 1;
                o->done = 1;
                continue;
            }
            int flag = 0, code = 0;
            switch (o->way) {
            case FLUSH: code = MPI_Win_flush(o->target, win); break;
            case FLUSH_LOCAL: code = MPI_Win_flush_local(o->target, win); break;
            case FLUSH_ALL: code = e == LOCK_ALL ? MPI_Win_flush_all(win) : MPI_Win_flush(o->target, win); break;
            case FLUSH_LOCAL_ALL: code = e == LOCK_ALL ? MPI_Win_flush_local_all(win) : MPI_Win_flush_local(o->target, win); break;
            case REQUEST: complete(&o->request, o->how); break;
            case ASKED:
                while (!flag) MPI_Request_get_status(o->request, &flag, MPI_STATUS_IGNORE);
                break;
            case FREED:
#if defined OPEN_MPI || defined KEEPS_REQUESTS
                /* Open MPI and the libraries with KEEPS_REQUESTS report a request of an operation
                 * as invalid if it is freed while active, so wait for it instead. */
                MPI_Wait(&o->request, MPI_STATUS_IGNORE);
#else
                MPI_Request_free(&o->request);
                if (!(o->how & 1)) continue;
                MPI_Win_flush(o->target, win);
#endif
            }
            if (code) say("  class %d\n", class_of(code));
            if (o->way != LATER) over(o, epoch, k);
        }
        /* Complete the requests and end the epoch. If `hints` is 0, the requests are completed
         * first, otherwise the epoch ends first. */
        for (int late = 0; late < 2; late++) {
            if (late == hints) {
                MPI_Request requests[SLOTS];
                MPI_Status statuses[SLOTS];
                for (int k = 0; k < n; k++) requests[k] = operations[k].code ? MPI_REQUEST_NULL : operations[k].request;
                int code = MPI_Waitall(n, requests, statuses);
                if (code) say("  waitall: class %d\n", class_of(code));
                for (int k = 0; k < n; k++)
                    if (operations[k].op >= RPUT && operations[k].way != FREED) over(&operations[k], epoch, k);
            } else {
                int code = 0;
                switch (e) {
                case FENCE: code = MPI_Win_fence(exclusive ? MPI_MODE_NOSUCCEED : 0, win); break;
                case GROUP: code = MPI_Win_complete(win); break;
                case LOCK: code = MPI_Win_unlock(where, win); break;
                default: code = MPI_Win_unlock_all(win);
                }
                if (code) say("  end: class %d\n", class_of(code));
                for (int k = 0; k < n; k++) over(&operations[k], epoch, k);
                if (e == GROUP) MPI_Win_wait(win);
            }
        }
        MPI_Barrier(world);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
        for (int from = 0; from < ranks; from++)
            for (int k = 0; k < n; k++) {
                struct operation *o = &operations[k];
                int accumulates = o->op == ACCUMULATE || o->op == RACCUMULATE;
                if (o->op == RGET || o->shared || ((together ? 0 : from) + o->to) % ranks != rank) continue;
                made(o, &kinds[o->element], epoch, k, from, want, part);
                check(names[o->op], epoch, k, mine + (accumulates ? own_at : put_at) + (from * SLOTS + k) * part, want, part);
            }
        say("%d: window %016llx", epoch, hash(mine, bytes));
        MPI_Win_unlock(rank, win);
        for (int k = 0; k < n; k++) {
            /* Count the bytes of the buffer that have changed. Nothing may have written to it after
             * it belonged to the program again. */
            size_t all = operations[k].code ? 0 : (size_t)(operations[k].count * operations[k].l.extent + 4096), changed = 0;
            for (size_t i = 0; i < all; i++) changed += operations[k].buffer[i] != 0x77;
            say(", changed %ld", (long)changed);
            free(operations[k].buffer);
        }
        say("\n");
        MPI_Barrier(world);
    }
#ifdef PAST
    /* Refer to a function by its profiling name, but never call it. A call by this name would
     * bypass the preload library. */
    if (epochs < 0) PMPI_Win_flush_all(wins[CREATED]);
#endif
    MPI_Win_detach(wins[DYNAMIC], memory[DYNAMIC]);
    for (int w = 0; w < WINDOWS; w++) MPI_Win_free(&wins[w]);
    free(memory[CREATED]);
    free(memory[DYNAMIC]);
    free(bases);
    free(want);
    say("checked %ld\n", checked);
    /* Print on rank 0 the texts that all ranks have written, in the order of the ranks. */
    if (rank == 0) {
        if (used) fwrite(text, 1, used, stdout);
        for (int r = 1; r < ranks; r++) {
            unsigned long n;
            MPI_Recv(&n, 1, MPI_UNSIGNED_LONG, r, 1, world, MPI_STATUS_IGNORE);
            text = realloc(text, n + 1);
            MPI_Recv(text, (int)n, MPI_CHAR, r, 2, world, MPI_STATUS_IGNORE);
            fwrite(text, 1, n, stdout);
        }
    } else {
        unsigned long n = used;
        MPI_Send(&n, 1, MPI_UNSIGNED_LONG, 0, 1, world);
        MPI_Send(text, (int)n, MPI_CHAR, 0, 2, world);
    }
    MPI_Errhandler_free(&counted);
    MPI_Group_free(&everybody);
    MPI_Finalize();
    return 0;
}
