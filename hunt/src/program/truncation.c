#include <sys/mman.h>
#include <unistd.h>

/* What of n instances is sent or received: the datatype, or its values one after the other. */
struct end {
    MPI_Datatype type;
    long count, low, high, size;
    int contiguous;
    char *mapped;
};

static struct end end(MPI_Datatype t, long n, int is_flat)
{
    instances(n);
    struct end e = {t, n, LOW, HIGH, SIZE, 1, NULL};
    for (long i = 1; i < ENTRIES; i++)
        e.contiguous &= is_flat || map[i].at == map[i - 1].at + map[i - 1].bytes;
    if (is_flat)
        e.type = flat(ENTRIES), e.count = 1, e.low = 0, e.high = SIZE;
    e.mapped = calloc(e.high - e.low + 1, 1);
    memset(e.mapped, is_flat, e.high - e.low);
    for (long i = 0; i < ENTRIES && !is_flat; i++)
        memset(e.mapped + map[i].at - LOW, 1, map[i].bytes);
    return e;
}

/* Memory between inaccessible pages: accessible bytes before and after a place for displacements from low to high, or none behind it. */
static unsigned char *fenced(struct end e, long slack, unsigned char **first, long *length)
{
    long page = sysconf(_SC_PAGESIZE), span = e.high - e.low;
    *length = (span + 2 * slack + 16 + page - 1) / page * page;
    unsigned char *base = mmap(NULL, *length + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(*first = base + page, *length, PROT_READ | PROT_WRITE);
    memset(*first, 0xa5, *length);
    unsigned char *low = *first + *length - slack - span;
    while ((uintptr_t)(low - e.low) % 16)
        low--;
    return low - e.low;
}

static void receive(struct end from, struct end to, int posted, long slack)
{
    unsigned char *first, *data = (unsigned char *)malloc(from.high - from.low + 64);
    long length, span = to.high - to.low, wrong = 0, at = 0;
    unsigned char *sent = data + (16 - ((uintptr_t)data - from.low) % 16) % 16 - from.low;
    for (long i = from.low; i < from.high; i++)
        sent[i] = pattern(2, i - from.low);
    unsigned char *room = fenced(to, slack, &first, &length);
    for (long i = to.low; i < to.high; i++)
        room[i] = pattern(3, i - to.low);
    MPI_Request request;
    MPI_Status status;
    int code, class = MPI_SUCCESS;
    if (posted) {
        CALL(MPI_Irecv(room, to.count, to.type, 0, 7, MPI_COMM_SELF, &request));
        int told = MPI_Send(sent, from.count, from.type, 0, 7, MPI_COMM_SELF);
        code = MPI_Wait(&request, &status);
        code = code ? code : told;
    } else {
        CALL(MPI_Isend(sent, from.count, from.type, 0, 7, MPI_COMM_SELF, &request));
        code = MPI_Recv(room, to.count, to.type, 0, 7, MPI_COMM_SELF, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Error_class(code, &class);
    if (CHECK_CLASS)
        same("class of the receive", MPI_ERR_TRUNCATE, class);
    for (unsigned char *byte = first; byte < first + length; byte++) {
        long i = byte - (room + to.low);
        int want = i < 0 || i >= span ? 0xa5 : to.mapped[i] ? *byte : pattern(3, i);
        if (*byte != want && !wrong++)
            at = i + to.low;
    }
    if (wrong && !CHECK_CLASS) {
        printf("%ld bytes received into room for %ld: %ld bytes beside the type map written, the first at displacement %ld of %ld\n", from.size,
               to.size, wrong, at, to.high);
        bad = 1;
    }
    free(data);
    long page = sysconf(_SC_PAGESIZE);
    munmap(first - page, length + 2 * page);
}

static void check(MPI_Datatype t)
{
    static const long rooms[] = ROOMS;
    instances(1);
    long size = SIZE;
    for (unsigned i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        long n = rooms[i] > size ? rooms[i] / size : 1, more = rooms[i] / size > 1 ? rooms[i] / size / 2 : 1;
        for (int sides = 0; sides < 4; sides++) {
            struct end from = end(t, n + more, sides & 1), to = end(t, n, sides >> 1);
            /* Two such ends are a matter of their own. */
            if (!CHECK_CONTIGUOUS && from.contiguous && to.contiguous)
                continue;
            for (int posted = 0; posted < 2 && !bad && !OVERLAPS; posted++) {
                long reach = (from.high > to.high ? from.high : to.high) - (from.low < to.low ? from.low : to.low) + from.size;
                receive(from, to, posted, reach + 64);
                if (!bad)
                    receive(from, to, posted, 0);
            }
        }
    }
}
