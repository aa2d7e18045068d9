/* Measures all layouts of layouts.h. MPI_Pack and MPI_Unpack are compared with the faster of two
 * loops. The first three calls of MPI_Pack with a new type are measured separately. Messages of a
 * derived type between two ranks are compared with messages of bytes that such a loop packs and
 * unpacks. The command `ddtc bench --mpi-source` writes layouts.h. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "bench.h"
#include "layouts.h"

enum { LAYOUTS = sizeof layouts / sizeof *layouts, WARM = 300 };

struct job {
    const struct layout *l;
    MPI_Datatype type;
    char *user, *packed;
    int style;
};

static void mpi_pack(void *context)
{
    struct job *j = context;
    int at = 0;
    MPI_Pack(j->user, j->l->count, j->type, j->packed, (int)j->l->bytes, &at, MPI_COMM_SELF);
}

static void mpi_unpack(void *context)
{
    struct job *j = context;
    int at = 0;
    MPI_Unpack(j->packed, (int)j->l->bytes, &at, j->user, j->l->count, j->type, MPI_COMM_SELF);
}

static void hand_pack(void *context)
{
    struct job *j = context;
    j->l->pack[j->style](j->user, j->packed, NULL, j->l->tables);
}

static void hand_unpack(void *context)
{
    struct job *j = context;
    j->l->unpack[j->style](j->user, j->packed, NULL, j->l->tables);
}

/* Sends a message of the derived type from rank 0 to rank 1 and back. */
static void derived_turn(void *context)
{
    struct job *j = context;
    for (int half = 0; half < 2; half++)
        if ((rank + half) % 2 == 0) MPI_Send(j->user, j->l->count, j->type, 1 - rank, 1, MPI_COMM_WORLD);
        else MPI_Recv(j->user, j->l->count, j->type, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void hand_turn(void *context)
{
    struct job *j = context;
    for (int half = 0; half < 2; half++)
        if ((rank + half) % 2 == 0) {
            hand_pack(j);
            MPI_Send(j->packed, (int)j->l->bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(j->packed, (int)j->l->bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            hand_unpack(j);
        }
}

/* Commits the type of a layout and fills the buffers. The gaps get values, too, so that the checks
 * notice if a gap is overwritten. Returns the memory that must be freed. */
static char *begin(struct job *j, const struct layout *l)
{
    char *whole = memory(l->high - l->low);
    *j = (struct job){.l = l, .type = l->make(), .user = whole - l->low, .packed = memory(l->bytes)};
    MPI_Type_commit(&j->type);
    fill(whole, l->high - l->low, 7 + (unsigned)rank);
    return whole;
}

static void end(struct job *j, char *whole)
{
    MPI_Type_free(&j->type);
    free(whole);
    free(j->packed);
}

static void check_packing(struct job *j, char *whole)
{
    const struct layout *l = j->l;
    long span = l->high - l->low;
    char *want = memory(l->bytes), *other = memory(span), *first = memory(span), *packed = j->packed;
    for (j->style = 0; j->style < 2; j->style++) {
        j->packed = want;
        hand_pack(j);
        j->packed = packed;
        memset(packed, 0, (size_t)l->bytes);
        mpi_pack(j);
        same(l->name, "packed", packed, want, l->bytes);
        fill(want, l->bytes, 99);
        memcpy(packed, want, (size_t)l->bytes);
        j->user = first - l->low;
        memcpy(first, whole, (size_t)span);
        mpi_unpack(j);
        j->user = other - l->low;
        memcpy(other, whole, (size_t)span);
        hand_unpack(j);
        same(l->name, "unpacked", first, other, span);
        j->user = whole - l->low;
    }
    j->style = 0;
    free(want);
    free(other);
    free(first);
}

/* Measures `body` with both loops of a layout, stores the number of the faster loop in `style`, and
 * returns the time of that loop. All ranks choose by the times of rank 0. */
static double better(struct job *j, void (*body)(void *), int together)
{
    double times[2];
    for (j->style = 0; j->style < 2; j->style++) times[j->style] = time_of(body, j, 3, together);
    MPI_Bcast(times, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    j->style = times[1] < times[0];
    return times[j->style];
}

void bench_pack(void)
{
    for (int i = 0; i < LAYOUTS; i++) {
        struct job j;
        char row[100], *whole = begin(&j, &layouts[i]);
        check_packing(&j, whole);
        snprintf(row, sizeof row, "pack %s", layouts[i].name);
        say(row, "mpi", time_of(mpi_pack, &j, WARM, 0));
        say(row, "hand", better(&j, hand_pack, 0));
        snprintf(row, sizeof row, "unpack %s", layouts[i].name);
        say(row, "mpi", time_of(mpi_unpack, &j, WARM, 0));
        say(row, "hand", better(&j, hand_unpack, 0));
        end(&j, whole);
    }
}

/* Measures the first three calls of MPI_Pack with a new type, each of them once: a second type with
 * the same layout could find what the library has kept of the first one. All memory that the calls
 * use has been touched before. */
void bench_first(void)
{
    static const char *const calls[] = {"first", "second", "third"};
    for (int i = 0; i < LAYOUTS; i++) {
        struct job j;
        char row[100], *whole = begin(&j, &layouts[i]);
        for (int call = 0; call < 3; call++) {
            double start = now();
            mpi_pack(&j);
            double stop = now();
            snprintf(row, sizeof row, "%s pack %s", calls[call], layouts[i].name);
            say(row, "mpi", stop - start);
        }
        char *packed = j.packed;
        j.packed = memory(layouts[i].bytes);
        j.style = 0;
        hand_pack(&j);
        same(layouts[i].name, "packed", packed, j.packed, layouts[i].bytes);
        free(packed);
        end(&j, whole);
    }
}

/* Calls of yaksa_iov in this process. If MPICH moves a message by CMA, the receiver lists the
 * contiguous pieces of the types by this function; otherwise it calls it for no message. */
static double lists;

/* Counts a call that MPICH makes, and passes it on to the library. The dynamic linker prefers this
 * definition, since it is in the executable. The real function has seven arguments, all of which are
 * pointers or integers of 8 bytes. */
__attribute__((visibility("default"))) int yaksa_iov(long a, long b, long c, long d, long e, long f, long g)
{
    static int (*real)(long, long, long, long, long, long, long);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "yaksa_iov");
    lists++;
    return real(a, b, c, d, e, f, g);
}

/* Checks a message of the derived type: rank 1 must receive the same bytes in the same places as if
 * the data were packed and unpacked by the loops. Returns on rank 0 how often rank 1 has listed
 * pieces for the message. */
static double check_message(struct job *j, char *whole)
{
    const struct layout *l = j->l;
    long span = l->high - l->low;
    char *received = memory(span), *want = memory(span), *packed = memory(l->bytes);
    double listed = 0;
    if (rank == 0) {
        MPI_Send(j->user, l->count, j->type, 1, 1, MPI_COMM_WORLD);
        hand_pack(j);
        MPI_Send(j->packed, (int)l->bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(&listed, 1, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        memcpy(received, whole, (size_t)span);
        memcpy(want, whole, (size_t)span);
        lists = 0;
        MPI_Recv(received - l->low, l->count, j->type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        listed = lists;
        MPI_Recv(packed, (int)l->bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        l->unpack[0](want - l->low, packed, NULL, l->tables);
        same(l->name, "received", received, want, span);
        MPI_Send(&listed, 1, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
    }
    free(received);
    free(want);
    free(packed);
    return listed;
}

/* Prints for each layout, in addition to times, the bytes of a message and how often its receiver
 * lists pieces: -1 for contiguous data, which need no list. */
void bench_messages(void)
{
    for (int i = 0; i < LAYOUTS; i++) {
        struct job j;
        char row[100], *whole = begin(&j, &layouts[i]);
        snprintf(row, sizeof row, "message %s", layouts[i].name);
        double listed = check_message(&j, whole);
        hand_pack(&j);
        say(row, "lists", memcmp(j.packed, j.user + j.l->low, (size_t)j.l->bytes) ? listed : -1);
        say(row, "length", (double)layouts[i].bytes);
        double derived = time_of(derived_turn, &j, WARM / 3, 1);
        double hand = better(&j, hand_turn, 1);
        say(row, "mpi", derived / 2);
        say(row, "hand", hand / 2);
        end(&j, whole);
    }
}
