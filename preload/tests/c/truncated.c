/* Sends messages that are longer than the receive, with random types on both sides, random lengths
 * and calls, and a random order of send and receive.
 *
 * The buffer of a receive ends where inaccessible memory begins or, in every other round, before
 * bytes that are checked. The receiving rank prints a line for each receive: the class of the code,
 * the count, the number of units that arrived, and the number of changed bytes elsewhere. With the
 * preload library on both ranks or on one, the lines must be those without it, apart from what
 * truncation.rs allows.
 *
 * Usage: truncated ROUNDS SEED [quiet | collective]. With `quiet`, lines are printed only for bytes
 * that changed elsewhere. With `collective`, the calls are collective and one rank gets more than
 * it has room for. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, CHECKED_AFTER = 2 * PAGE, BLANK = 0x5a };

/* The type signatures, and the number of bytes of one unit of each: INTS has ints, PAIRS has
 * structures of int, double and int, and WIDES has elements of the widest basic type. */
enum { INTS, PAIRS, WIDES, SIGNATURES };
static const int unit[SIGNATURES] = {4, 16, 32};
/* The layouts of a buffer's units: without gaps, with equal gaps, as structures, irregular, and
 * without gaps in a larger extent. */
enum { DENSE, STRIDED, STRUCTURES, INDEXED, PADDED, LAYOUTS };
static const char *const names[LAYOUTS] = {"dense", "strided", "structures", "indexed", "padded"};

static uint64_t state;
static uint64_t next(void) { state ^= state << 13; state ^= state >> 7; state ^= state << 17; return state; }
static long below(long n) { return (long)(next() % (uint64_t)n); }

/* One side of a transfer: `units` units of one signature in a layout, and the datatype and count
 * that describe them. */
struct side {
    int signature, layout, count;
    long units, bytes;
    MPI_Datatype type;
    int made;
};

/* Returns the displacement in the buffer of byte `at` of unit `i`. */
static long place(const struct side *s, long i, int at) {
    int u = unit[s->signature];
    if (s->signature == PAIRS && s->layout != DENSE) {
        int gap = at < 4 ? 0 : at < 12 ? 4 : 16;
        return i * (s->layout == STRUCTURES ? 48 : 40) + (s->layout == INDEXED ? i % 3 * 8 : 0) + at + gap;
    }
    switch (s->layout) {
    case STRIDED: return i * 3 * u + at;
    case STRUCTURES: return i / 4 * 8 * u + (i % 4 + (i % 4 > 1) + (i % 4 > 2)) * u + at;
    case INDEXED: return i * 2 * u + (i % 5 == 0) * u + at;
    default: return i * u + at;
    }
}

static void make(struct side *s) {
    static const MPI_Datatype basic[SIGNATURES] = {MPI_INT, MPI_BYTE, MPI_C_LONG_DOUBLE_COMPLEX};
    MPI_Datatype b = basic[s->signature], t, all;
    long n = s->units;
    int u = unit[s->signature];
    s->made = 1;
    s->count = 1;
    s->bytes = place(s, n - 1, u - 1) + 1;
    /* Make a datatype with the layout that `place` describes. Depending on signature and layout, it
     * is a named type or made by different constructors. `made` is 0 for named types, which are not
     * freed. */
    if (s->signature == PAIRS) {
        if (s->layout == DENSE) {
            s->type = MPI_PACKED, s->count = (int)(16 * n), s->made = 0;
            return;
        }
        MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 8, 28}, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE, MPI_INT}, &t);
        if (s->layout == INDEXED) {
            MPI_Aint *at = malloc(n * sizeof *at);
            for (long i = 0; i < n; i++) at[i] = place(s, i, 0);
            MPI_Type_create_hindexed_block((int)n, 1, at, t, &s->type);
            free(at);
        } else {
            MPI_Type_create_resized(t, 0, place(s, 1, 0), &all);
            if (n % 2) s->type = all, s->count = (int)n;
            else MPI_Type_contiguous((int)n, all, &s->type), MPI_Type_free(&all);
        }
        MPI_Type_free(&t);
    } else if (s->layout == DENSE) {
        s->type = b, s->count = (int)n, s->made = 0;
        return;
    } else if (s->layout == PADDED) {
        MPI_Type_contiguous((int)n, b, &t);
        MPI_Type_create_resized(t, 0, n * u + 64, &s->type);
        MPI_Type_free(&t);
    } else if (s->layout == STRIDED) {
        MPI_Type_vector((int)n, 1, 3, b, &s->type);
    } else if (s->layout == STRUCTURES && n % 4 == 0) {
        MPI_Type_create_struct(3, (int[]){2, 1, 1}, (MPI_Aint[]){0, 3 * u, 5 * u}, (MPI_Datatype[]){b, b, b}, &t);
        MPI_Type_create_resized(t, 0, 8 * u, &all);
        MPI_Type_contiguous((int)(n / 4), all, &s->type);
        MPI_Type_free(&t), MPI_Type_free(&all);
    } else {
        MPI_Aint *at = malloc(n * sizeof *at);
        for (long i = 0; i < n; i++) at[i] = place(s, i, 0);
        MPI_Type_create_hindexed_block((int)n, 1, at, b, &s->type);
        free(at);
    }
    MPI_Type_commit(&s->type);
}

static unsigned char value(int round, long i, int at) {
    uint64_t x = ((uint64_t)round << 40 ^ (uint64_t)(i * 32 + at) << 4 ^ 7) * 0x9e3779b97f4a7c15u;
    x ^= x >> 31;
    unsigned char c = (unsigned char)(x >> 16);
    return c == BLANK ? 0x7f : c;
}

/* A buffer at `at` that ends where inaccessible memory begins or, if `checked_after` is not 0,
 * before `checked_after` bytes that are checked. */
struct memory {
    char *region, *at;
    size_t all, checked_after;
};

static struct memory memory(long bytes, int looked_at) {
    struct memory m;
    size_t inside = ((size_t)bytes + 2 * PAGE - 1) / PAGE * PAGE;
    m.all = inside + CHECKED_AFTER;
    m.region = mmap(NULL, m.all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m.region == MAP_FAILED) abort();
    m.at = m.region + inside - bytes;
    m.checked_after = looked_at ? CHECKED_AFTER : 0;
    memset(m.region, BLANK, inside + m.checked_after);
    if (!looked_at) mprotect(m.region + inside, CHECKED_AFTER, PROT_NONE);
    return m;
}

static int rank, round_, quiet, bad;
static char doing[256];

static void overrun(int signal) {
    (void)signal;
    char text[300];
    int n = snprintf(text, sizeof text, "rank %d: access outside a buffer: %s\n", rank, doing);
    if (write(2, text, (size_t)n) < 0) _exit(9);
    _exit(8);
}

/* Counts the units that a receive has put into its buffer and the bytes that it has changed
 * elsewhere, and prints the result of the receive. */
static void print_receive(const struct side *r, struct memory *m, int code, MPI_Status *status) {
    int class = MPI_SUCCESS, count = -9;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    MPI_Get_count(status, MPI_BYTE, &count);
    long came = 0, elsewhere = 0;
    size_t inside = m->all - CHECKED_AFTER;
    int u = unit[r->signature], going = 1;
    for (long i = 0; i < r->units; i++) {
        int right = 1;
        for (int b = 0; b < u; b++) {
            unsigned char *p = (unsigned char *)m->at + place(r, i, b);
            /* Six of the sixteen bytes of a long double have no meaning, so treat them as
             * unchanged. */
            if (r->signature == WIDES ? b % 16 > 9 : 0) *p = BLANK;
            else if (*p != value(round_, i, b)) right = 0;
            else *p = BLANK;
        }
        if (!right) going = 0;
        came += going;
    }
    for (char *p = m->region; p < m->region + inside + m->checked_after; p++) elsewhere += *p != BLANK;
    if (elsewhere) bad++;
    if (elsewhere || !quiet) printf("%s: class %d count %d came %ld elsewhere %ld\n", doing, class, count, came, elsewhere);
}

static void exchange(struct side *s, struct side *r, int sends, int receives, int early, int to, int from) {
    MPI_Comm c = MPI_COMM_WORLD;
    MPI_Request q;
    MPI_Status status;
    MPI_Message message;
    int code = 0, flag = 0;
    memset(&status, 0, sizeof status);
    struct memory out = {0}, in = {0};
    /* Make the buffers. The sender fills its buffer. The buffer of the receiver ends before
     * inaccessible memory or, in every second round, before bytes that are checked. */
    if (rank == from) {
        out = memory(s->bytes, 0);
        for (long i = 0; i < s->units; i++)
            for (int b = 0; b < unit[s->signature]; b++) out.at[place(s, i, b)] = (char)value(round_, i, b);
    }
    if (rank == to) in = memory(r->bytes, round_ % 2);
    if (to == from && rank != from) return;
    if (to == from) {
        /* Send a message to this rank itself. Either the receive or the send is nonblocking and
         * starts first. */
        if (early) {
            MPI_Irecv(in.at, r->count, r->type, to, 5, c, &q);
            MPI_Send(out.at, s->count, s->type, to, 5, c);
            code = MPI_Wait(&q, &status);
        } else {
            MPI_Isend(out.at, s->count, s->type, to, 5, c, &q);
            code = MPI_Recv(in.at, r->count, r->type, to, 5, c, &status);
            MPI_Wait(&q, MPI_STATUS_IGNORE);
        }
        print_receive(r, &in, code, &status);
    } else if (rank == from) {
        if (early) MPI_Recv(NULL, 0, MPI_BYTE, to, 1, c, MPI_STATUS_IGNORE);
        switch (sends) {
        case 0: MPI_Send(out.at, s->count, s->type, to, 5, c); break;
        case 1: MPI_Ssend(out.at, s->count, s->type, to, 5, c); break;
        case 2: MPI_Isend(out.at, s->count, s->type, to, 5, c, &q); MPI_Wait(&q, MPI_STATUS_IGNORE); break;
        default:
            MPI_Send_init(out.at, s->count, s->type, to, 5, c, &q);
            MPI_Start(&q);
            MPI_Wait(&q, MPI_STATUS_IGNORE);
            MPI_Request_free(&q);
        }
    } else if (rank == to) {
        int posts = early || receives == 1 || receives == 2;
        if (posts && receives == 2) MPI_Recv_init(in.at, r->count, r->type, from, 5, c, &q), MPI_Start(&q);
        else if (posts) MPI_Irecv(in.at, r->count, r->type, from, 5, c, &q);
        if (early) MPI_Send(NULL, 0, MPI_BYTE, from, 1, c);
        if (posts && receives == 3) {
            while (!flag) code = MPI_Test(&q, &flag, &status);
        } else if (posts) {
            code = MPI_Wait(&q, &status);
            if (receives == 2) MPI_Request_free(&q);
        } else if (receives == 3) {
            code = MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 2, in.at, r->count, r->type, from, 5, c, &status);
        } else if (receives == 4) {
            MPI_Mprobe(from, 5, c, &message, &status);
            code = MPI_Mrecv(in.at, r->count, r->type, &message, &status);
        } else if (receives == 5) {
            MPI_Mprobe(from, 5, c, &message, &status);
            MPI_Imrecv(in.at, r->count, r->type, &message, &q);
            code = MPI_Wait(&q, &status);
        } else {
            MPI_Probe(from, 5, c, &status);
            code = MPI_Recv(in.at, r->count, r->type, from, 5, c, &status);
        }
        print_receive(r, &in, code, &status);
    }
    if (out.region) munmap(out.region, out.all);
    if (in.region) munmap(in.region, in.all);
}

/* Makes a collective call in which rank 0 sends rank 1 more than rank 1 has room for. The call uses
 * a communicator of its own, since an error may leave messages behind. */
static void together(struct side *s, struct side *r, int call) {
    MPI_Comm c;
    int code = MPI_SUCCESS;
    MPI_Status status;
    memset(&status, 0, sizeof status);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    struct memory out = memory(s->bytes, 0), in = memory(r->bytes, round_ % 2), met = memory(r->bytes, 0);
    /* Make correct calls first, since the preload library converts calls only with communicators
     * and types that the MPI library has accepted once. */
    MPI_Bcast(met.at, r->count, r->type, 0, c);
    MPI_Alltoallw(met.at, (int[]){0, 0}, (int[]){0, 0}, (MPI_Datatype[]){r->type, r->type}, met.at, (int[]){0, 0}, (int[]){0, 0},
                  (MPI_Datatype[]){r->type, r->type}, c);
    munmap(met.region, met.all);
    for (long i = 0; i < s->units; i++)
        for (int b = 0; b < unit[s->signature]; b++) out.at[place(s, i, b)] = (char)value(round_, i, b);
    if (call == 0) {
        if (rank) code = MPI_Bcast(in.at, r->count, r->type, 0, c);
        else MPI_Bcast(out.at, s->count, s->type, 0, c);
    } else if (call == 1) {
        int n[2] = {0, s->count}, none[2] = {0, 0};
        if (rank) code = MPI_Scatterv(NULL, NULL, NULL, MPI_BYTE, in.at, r->count, r->type, 0, c);
        else MPI_Scatterv(out.at, n, none, s->type, MPI_IN_PLACE, 0, MPI_BYTE, 0, c);
    } else {
        int n[2] = {0, s->count}, m[2] = {r->count, 0}, none[2] = {0, 0};
        MPI_Datatype st[2] = {s->type, s->type}, rt[2] = {r->type, r->type};
        if (rank) code = MPI_Alltoallw(out.at, none, none, st, in.at, m, none, rt, c);
        else MPI_Alltoallw(out.at, n, none, st, in.at, none, none, rt, c);
    }
    if (rank) print_receive(r, &in, code, &status);
    munmap(out.region, out.all);
    munmap(in.region, in.all);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&c);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    signal(SIGSEGV, overrun), signal(SIGBUS, overrun);
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) * 0x9e3779b97f4a7c15u + 0x1234567;
    quiet = argc > 3 && !strcmp(argv[3], "quiet");
    int collective = argc > 3 && !strcmp(argv[3], "collective");
    for (round_ = 1; round_ <= rounds; round_++) {
        static const long bytes[] = {256, 1024, 4096, 5000, 8192, 16384, 65536, 70000, 262144};
        struct side s = {0}, r = {0};
        s.signature = r.signature = (int)below(SIGNATURES);
#ifndef OPEN_MPI
        /* MPI libraries other than Open MPI move the widest basic types by value, so this signature
         * is not tried with them. */
        if (s.signature == WIDES) s.signature = r.signature = INTS;
#endif
        s.layout = (int)below(LAYOUTS), r.layout = (int)below(LAYOUTS);
        int u = unit[s.signature], up = below(4) != 0;
        long m = bytes[below(sizeof bytes / sizeof *bytes)] / u;
        if (below(3) == 0) m = m - m / 4 + below(m / 2 + 1);
        long n = up ? m + 1 + below(below(3) ? m : 3 * m) : 1 + below(m);
        if (below(2)) m = (m + 3) / 4 * 4, n = (n + 3) / 4 * 4;
        s.units = n, r.units = m;
        int from = (int)below(2), self = below(8) == 0, sends = (int)below(4), receives = (int)below(7), early = (int)below(2);
        if (s.signature == PAIRS && s.layout == PADDED) s.layout = STRUCTURES;
        if (r.signature == PAIRS && r.layout == PADDED) r.layout = STRUCTURES;
#ifdef OPEN_MPI
        /* Avoid a fault of Open MPI: if both ends are contiguous and the message is too long, Open
         * MPI writes past the end of the receive. */
        int contiguous = (s.layout == DENSE || s.layout == PADDED) && (r.layout == DENSE || r.layout == PADDED);
        if (contiguous && n > m) r.layout = STRIDED;
        /* Avoid another fault of Open MPI: it cuts contiguous data anywhere, and it does not join
         * an element of more than 16 bytes that arrives in two pieces. */
        if (s.signature == WIDES && (s.layout == DENSE || s.layout == PADDED)) s.layout = INDEXED;
#endif
        make(&s), make(&r);
        snprintf(doing, sizeof doing, "round %d rank %d unit %d %s %ld to %s %ld, send %d receive %d %s%s", round_, self ? from : 1 - from, u,
                 names[s.layout], n, names[r.layout], m, sends, receives, early ? "early" : "late", self ? " self" : "");
        if (collective) {
            int call = (int)below(3);
            if (s.layout != DENSE && s.layout != PADDED && s.count == 1 && n > m) {
                snprintf(doing, sizeof doing, "round %d unit %d %s %ld to %s %ld, call %d", round_, u, names[s.layout], n, names[r.layout], m, call);
                together(&s, &r, call);
            }
        } else if (rank < 2) exchange(&s, &r, sends, receives, early, self ? from : 1 - from, from);
        if (s.made) MPI_Type_free(&s.type);
        if (r.made) MPI_Type_free(&r.type);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (quiet) printf("rank %d: %d receives changed bytes elsewhere\n", rank, bad);
    fflush(stdout);
    MPI_Finalize();
    return bad != 0;
}
