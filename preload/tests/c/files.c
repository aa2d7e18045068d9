/* Makes random calls on a file, with derived types in memory. Prints the results of every call,
 * with hashes of the bytes that were read and of the file. The output must not depend on the
 * preload library.
 *
 * Arguments: the file, number of calls, seed, maximum number of elements in a call. Each rank
 * chooses its own layout in memory. The view of the file is one of bytes, doubles, stripes by rank,
 * elements with gaps, and external32. There are calls of one rank and calls of all ranks, with
 * individual and shared file pointers and explicit offsets, and with small and large counts. Some
 * reads pass the end of the file, and some calls are wrong. */
#include "layouts.h"

#include <stdarg.h>
#include <stdio.h>

enum { WRITE, WRITE_AT, READ, READ_AT, WRITE_ALL, WRITE_AT_ALL, READ_ALL, READ_AT_ALL, WRITE_SHARED, WRITE_ORDERED, OPS };
enum { BYTES, DOUBLES, STRIPES, GAPS, EXTERNAL, VIEWS };
static const char *const names[OPS] = {"write",    "write_at",    "read",         "read_at",      "write_all", "write_at_all",
                                       "read_all", "read_at_all", "write_shared", "write_ordered"};
static char *text;
static size_t used, capacity;
static int raised, last;

static void say(const char *format, ...)
{
    va_list arguments;
    if (capacity - used < 1024) text = realloc(text, capacity = 2 * capacity + 4096);
    va_start(arguments, format);
    used += (size_t)vsnprintf(text + used, capacity - used, format, arguments);
    va_end(arguments);
}

static void handler(MPI_File *file, int *code, ...)
{
    (void)file;
    raised++;
    MPI_Error_class(*code, &last);
}

static uint64_t hash(const char *bytes, size_t n)
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)bytes[i]) * 1099511628211u;
    return h;
}

static int class_of(int code)
{
    int class = 0;
    if (code) MPI_Error_class(code, &class);
    return class;
}

/* Makes a layout of two doubles in reverse order. It has no gaps, because MPICH overruns its
 * buffers if it converts layouts with gaps to external32. */
static struct layout swapped(void)
{
    struct layout l = {.n = 2, .bytes = {8, 8}, .at = {8, 0}, .extent = 16};
    MPI_Type_create_hindexed_block(2, 1, l.at, MPI_DOUBLE, &l.type);
    MPI_Type_commit(&l.type);
    return l;
}

/* `made` makes the call `op`. FORM selects the function with large counts if `large` is true, and
 * the function with int counts otherwise. */
#ifdef LARGE_COUNTS
#define FORM(name, ...) (large ? MPI_File_##name##_c(__VA_ARGS__) : MPI_File_##name(__VA_ARGS__))
#else
#define FORM(name, ...) MPI_File_##name(__VA_ARGS__)
#endif
static int made(int op, int large, MPI_File f, MPI_Offset at, void *b, int n, MPI_Datatype t, MPI_Status *s)
{
    (void)large;
    switch (op) {
    case WRITE: return FORM(write, f, b, n, t, s);
    case WRITE_AT: return FORM(write_at, f, at, b, n, t, s);
    case READ: return FORM(read, f, b, n, t, s);
    case READ_AT: return FORM(read_at, f, at, b, n, t, s);
    case WRITE_ALL: return FORM(write_all, f, b, n, t, s);
    case WRITE_AT_ALL: return FORM(write_at_all, f, at, b, n, t, s);
    case READ_ALL: return FORM(read_all, f, b, n, t, s);
    case READ_AT_ALL: return FORM(read_at_all, f, at, b, n, t, s);
    case WRITE_SHARED: return FORM(write_shared, f, b, n, t, s);
    default: return FORM(write_ordered, f, b, n, t, s);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const char *name = argv[1];
    int calls = atoi(argv[2]), seed = atoi(argv[3]), max_count = atoi(argv[4]), rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm world = MPI_COMM_WORLD;
    state = (uint64_t)seed * 0x2545f4914f6cdd1du + 1;
    MPI_Datatype gaps, stripe, run;
    MPI_Type_create_resized(MPI_DOUBLE, 0, 12, &gaps);
    MPI_Type_commit(&gaps);
    MPI_Type_contiguous(6, MPI_INT, &run);
    MPI_Type_create_resized(run, 0, (MPI_Aint)24 * ranks, &stripe);
    MPI_Type_commit(&stripe);
    MPI_Errhandler counted;
    MPI_File_create_errhandler(handler, &counted);

    for (int call = 0; call < calls; call++) {
        int op = below(OPS), view = below(VIEWS), kind = below(3) == 0 ? 1 + below(MAX_ELEMENTS) : -below(2), turn = below(3);
        long count = below(3) ? 1 + below(max_count / 10) : 1 + below(max_count);
        int fault = below(8) == 0 ? 1 + below(4) : 0, past = below(4) == 0, atomic = below(6) == 0, hints = below(3), large = below(2);
        int handled = below(2), ignored = below(4) == 0, start = below(5);
        int writes = op != READ && op != READ_AT && op != READ_ALL && op != READ_AT_ALL;
        /* Calls of one rank with an individual file pointer or an explicit offset may get wrong
         * arguments (faults 2 to 4). In all other calls, only the mode in which the file is open
         * may be wrong (fault 1). */
        int alone = op <= READ_AT;
        if (!alone && fault != 1) fault = 0;
        if (kind > 0 && count > 3 * max_count / kind) count = 1 + 3 * max_count / kind;
        /* In a view of external32, Open MPI waits forever for bytes past the end of the file, so no
         * read passes the end there. */
        if (view == EXTERNAL) kind = 2, past = 0;
        struct layout l = view == EXTERNAL ? swapped() : layout(kind, (rank + turn) % 3);
        int size;
        MPI_Type_size(l.type, &size);
        /* `mine` is the number of bytes of the file that belong to one rank, `bytes` is the number
         * of bytes that the call moves, and `place` is the number of bytes in the view before the
         * first of them. */
        long mine = (long)max_count * 48, bytes = count * size, place = start * 48L;
        MPI_Info info = MPI_INFO_NULL;
        if (hints) {
            MPI_Info_create(&info);
            MPI_Info_set(info, "romio_cb_write", hints == 1 ? "enable" : "disable");
            MPI_Info_set(info, "romio_cb_read", hints == 1 ? "enable" : "disable");
            MPI_Info_set(info, "cb_buffer_size", "4096");
        }
        /* Write to the file everything that the call will read, except at the end of the file. Also
         * write the bytes in gaps of a view and between ranks: ROMIO would otherwise write
         * arbitrary bytes there. */
        if (rank == 0) {
            MPI_File f;
            long all = ranks * mine * 2;
            if ((op == WRITE || op == WRITE_AT || op == WRITE_SHARED) && view != STRIPES && view != GAPS) all = 100;
            if (!writes && past) all = view == STRIPES ? ranks * bytes / 2 : 7;
            char *filled = malloc(all + 1);
            for (long i = 0; i < all; i++) filled[i] = (char)(i * 7 + call + i / 251);
            MPI_File_delete(name, MPI_INFO_NULL);
            PMPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f);
            PMPI_File_write_at(f, 0, filled, (int)all, MPI_BYTE, MPI_STATUS_IGNORE);
            PMPI_File_close(&f);
            free(filled);
        }
        MPI_Barrier(world);
        MPI_File f;
        int mode = fault == 1 ? (writes ? MPI_MODE_RDONLY : MPI_MODE_WRONLY) : MPI_MODE_RDWR;
        int code = MPI_File_open(world, name, mode, info, &f);
        if (code) MPI_Abort(world, 3);
        if (handled) MPI_File_set_errhandler(f, counted);
        if (atomic) MPI_File_set_atomicity(f, 1);
        MPI_Offset disp = rank * mine * (view == GAPS ? 2 : 1), unit = 8;
        /* Calls with the shared file pointer need the same view on all ranks. So the displacement
         * must not depend on the rank, and the view must not be stripes by rank. */
        if (op >= WRITE_SHARED) {
            disp = 16;
            if (view == STRIPES) view = DOUBLES;
        }
        switch (view) {
        case BYTES: unit = 1; code = MPI_File_set_view(f, disp, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL); break;
        case DOUBLES: code = MPI_File_set_view(f, disp, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL); break;
        case STRIPES: unit = 4; code = MPI_File_set_view(f, 24L * rank, MPI_INT, stripe, "native", MPI_INFO_NULL); break;
        case GAPS: code = MPI_File_set_view(f, disp, gaps, gaps, "native", MPI_INFO_NULL); break;
        default: code = MPI_File_set_view(f, disp, MPI_DOUBLE, MPI_DOUBLE, "external32", MPI_INFO_NULL);
        }
        if (code) say("view %d: class %d\n", view, class_of(code));
        MPI_Offset at = place / unit, now = -1, shared = -1;
        char *buffer_of = buffer(&l, count);
        if (writes) put(&l, buffer_of, 0, count, call, rank, 0);
        if (op == WRITE || op == READ || op == WRITE_ALL || op == READ_ALL) MPI_File_seek(f, at, MPI_SEEK_SET);
        MPI_Status status;
        memset(&status, 0, sizeof status);
        /* Some MPI libraries return success after an error handler has run. Set the status before
         * the call, so that its contents are known in that case too. */
        MPI_Status_set_elements(&status, MPI_BYTE, (int)bytes);
        int n = (int)count;
        MPI_Datatype type = l.type;
        if (fault == 2) n = -1;
        if (fault == 3) at = -1;
        if (fault == 4) n = 0;
        code = 0;
        if (op != WRITE_SHARED || rank == call % ranks) code = made(op, large, f, at, buffer_of, n, type, ignored ? MPI_STATUS_IGNORE : &status);
        int whole = -1, elements = -1, got = -1;
        if (!code && !ignored && (op != WRITE_SHARED || rank == call % ranks)) {
            MPI_Get_count(&status, l.type, &whole);
            if (whole == MPI_UNDEFINED) whole = -2;
            MPI_Get_elements(&status, l.type, &elements);
            MPI_Get_count(&status, MPI_BYTE, &got);
        }
        if (fault != 1) {
            MPI_File_get_position(f, &now);
            MPI_Barrier(world);
            if (op >= WRITE_SHARED) MPI_File_get_position_shared(f, &shared);
        }
        /* Past the end of the file, MPI libraries leave arbitrary bytes in the buffer, so the data
         * of such reads is not hashed. */
        uint64_t data = past && !writes ? 0 : hash(buffer_of, (size_t)(count * l.extent + 4096));
        say("%d %s of %ld x %d B, view %d, fault %d, past %d: class %d, handler %d class %d, count %d elements %d bytes %d, at %ld shared %ld, %016llx\n", call,
            names[op], count, size, view, fault, past, class_of(code), raised, last, whole, elements, got, (long)now, (long)shared,
            (unsigned long long)data);
        raised = last = 0;
        MPI_File_close(&f);
        MPI_Barrier(world);
        if (rank == 0 && writes) {
            MPI_Offset all;
            PMPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
            PMPI_File_get_size(f, &all);
            char *there = malloc(all + 1);
            PMPI_File_read_at(f, 0, there, (int)all, MPI_BYTE, MPI_STATUS_IGNORE);
            PMPI_File_close(&f);
            say("file of %ld: %016llx\n", (long)all, (unsigned long long)hash(there, (size_t)all));
            free(there);
        }
        if (info != MPI_INFO_NULL) MPI_Info_free(&info);
        MPI_Type_free(&l.type);
        free(buffer_of);
        MPI_Barrier(world);
    }
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
        MPI_File_delete(name, MPI_INFO_NULL);
    } else {
        unsigned long n = used;
        MPI_Send(&n, 1, MPI_UNSIGNED_LONG, 0, 1, world);
        MPI_Send(text, (int)n, MPI_CHAR, 0, 2, world);
    }
    MPI_Errhandler_free(&counted);
    MPI_Type_free(&gaps);
    MPI_Type_free(&stripe);
    MPI_Type_free(&run);
    MPI_Finalize();
    return 0;
}
