// Makes MPI calls with receives that are too short. The program's error handler then leaves the
// MPI call by an exception or a jump. The program prints what its buffers and requests contain
// right after that and after later calls. The output is compared with that of a run without the
// preload library.
//
// Usage: thrown exception|jump waitall|persistent|sendrecv|alltoallw
#include <mpi.h>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

enum { N = 1000, ROUNDS = 20 };
static bool jumps;
static jmp_buf target;
static int in[3][4 * N], out[4 * N];
static MPI_Datatype vector;
static MPI_Comm comm;
static int rank, ranks, caught;

static unsigned sum(const int *a) {
    unsigned s = 0;
    for (int i = 0; i < 4 * N; i++) s = s * 31 + (unsigned)a[i];
    return s;
}

// The requests and statuses of the current call. Each request belongs to one of the buffers of
// `in` from index `first` to `last` - 1.
static MPI_Request *requests;
static MPI_Status statuses[3];
static int first, last;

// Returns whether the operation on buffer `i` has ended. If the operation goes on, its buffer must
// not be read.
static bool ended(int i) {
    return requests == nullptr || requests[i - first] == MPI_REQUEST_NULL || statuses[i - first].MPI_ERROR != MPI_ERR_PENDING;
}

static unsigned now() {
    unsigned s = 0;
    for (int i = first; i < last; i++) s = s * 31 + (ended(i) ? sum(in[i]) : 0);
    return s;
}

// A checksum of what the error handler has found in the buffers each time it was called.
static unsigned seen;

static void leave(MPI_Comm *, int *code, ...) {
    seen = seen * 31 + now();
    if (jumps) longjmp(target, *code ? *code : 1);
    throw std::runtime_error("an error of MPI");
}

// Makes a call that may be left by a jump or an exception, and counts how often that happens. No
// object with a destructor exists between the jump and this function, since a jump runs no
// destructors.
template <class F> static void attempt(F call) {
    if (jumps) {
        if (setjmp(target) == 0) call();
        else caught++;
        return;
    }
    try {
        call();
    } catch (const std::runtime_error &) {
        caught++;
    }
}

static void clear() {
    for (auto &buffer : in) memset(buffer, 0xff, sizeof buffer);
}

// Declares which buffers the next call fills, and by which requests it fills them.
static void expect(int from, int to, MPI_Request *by) {
    first = from, last = to, requests = by;
    for (auto &status : statuses) status.MPI_ERROR = MPI_SUCCESS;
}

static void print_outcome(const char *what) {
    printf("%s: caught %d, seen %u, bytes %u, requests", what, caught, seen, now());
    for (int i = first; requests != nullptr && i < last; i++)
        printf(" %s", requests[i - first] == MPI_REQUEST_NULL ? "null" : ended(i) ? "ended" : "pending");
    printf("\n");
}

static void send(int count, int tag, MPI_Request *request) {
    MPI_Isend(out, count, vector, rank, tag, comm, request);
}

// Waits for one request after another, first for the receives `r` and then for the sends `s`, and
// prints what each receive has brought.
static void wait_each(const char *what, MPI_Request *r, MPI_Request *s, int n) {
    static MPI_Request *one;
    for (int i = 0; i < n; i++) {
        expect(i, i + 1, one = &r[i]);
        attempt([] { MPI_Wait(one, statuses); });
        print_outcome(what);
    }
    for (int i = 0; i < n; i++) {
        expect(0, 0, nullptr);
        one = &s[i];
        attempt([] { MPI_Wait(one, MPI_STATUS_IGNORE); });
    }
}

// Completes three receives by one MPI_Waitall. The second receive is too short for its message.
static void waitall() {
    static MPI_Request r[3], s[3];
    clear();
    for (int i = 0; i < 3; i++) MPI_Irecv(in[i], 1, vector, rank, i, comm, &r[i]);
    for (int i = 0; i < 3; i++) send(i == 1 ? 2 : 1, i, &s[i]);
    expect(0, 3, r);
    attempt([] { MPI_Waitall(3, r, statuses); });
    print_outcome("waitall");
    wait_each("waitall, then each", r, s, 3);
}

// Completes two persistent receives in four rounds. In every other round, the second receive is
// too short for its message. The first two rounds wait for both receives by one call, and the
// other two rounds wait for the second receive first.
static void persistent() {
    static MPI_Request r[2], s[2];
    for (int i = 0; i < 2; i++) MPI_Recv_init(in[i], 1, vector, rank, i, comm, &r[i]);
    for (int round = 0; round < 4; round++) {
        clear();
        MPI_Startall(2, r);
        for (int i = 0; i < 2; i++) send(round % 2 == 0 && i == 1 ? 2 : 1, i, &s[i]);
        if (round < 2) {
            expect(0, 2, r);
            attempt([] { MPI_Waitall(2, r, statuses); });
        } else {
            expect(1, 2, &r[1]);
            attempt([] { MPI_Wait(&r[1], statuses); });
        }
        print_outcome("persistent");
        wait_each("persistent, then each", r, s, 2);
    }
    for (auto &request : r) MPI_Request_free(&request);
}

static void sendrecv() {
    clear();
    expect(0, 1, nullptr);
    attempt([] {
        MPI_Sendrecv(out, 2, vector, rank, 4, in[0], 1, vector, rank, 4, comm, MPI_STATUS_IGNORE);
    });
    print_outcome("sendrecv");
    clear();
    expect(1, 2, nullptr);
    attempt([] {
        MPI_Sendrecv(out, 2, vector, rank, 5, in[1], 2, vector, rank, 5, comm, MPI_STATUS_IGNORE);
    });
    print_outcome("sendrecv, right");
}

// Calls MPI_Alltoallw with receives of one instance. The message from the other rank is too long,
// and the message from this rank to itself is not.
static void alltoallw() {
    static int sent[2], received[2], at[2], places[2];
    static MPI_Datatype types[2];
    for (int i = 0; i < ranks; i++) {
        sent[i] = i == rank ? 1 : 2;
        received[i] = 1;
        at[i] = 0;
        places[i] = i * (int)sizeof in[0];
        types[i] = vector;
    }
    clear();
    expect(0, 0, nullptr);
    MPI_Comm world = comm, once;
    MPI_Comm_dup(world, &once);
    comm = once;
    attempt([] { MPI_Alltoallw(out, sent, at, types, in, received, places, types, comm); });
    // How much of the long message from the other rank has arrived depends on the MPI library, and
    // the rest may still arrive. So print only the bytes from this rank.
    printf("alltoallw: caught %d, own bytes %u\n", caught, sum(in[rank]));
    comm = world;
    MPI_Barrier(comm);
    clear();
    for (int i = 0; i < ranks; i++) sent[i] = received[i] = 2;
    attempt([] { MPI_Alltoallw(out, sent, at, types, in, received, places, types, comm); });
    printf("alltoallw, right: bytes %u %u\n", sum(in[0]), sum(in[1]));
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    jumps = std::string(argv[1]) == "jump";
    const std::string what = argv[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(leave, &handler);
    // Some MPI libraries call the error handler of MPI_COMM_WORLD for errors of requests.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Type_vector(N, 1, 2, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    for (int i = 0; i < 4 * N; i++) out[i] = 7 * i + 1;
    for (int round = 0; round < ROUNDS; round++) {
        out[0] = round;
        if (what == "waitall") waitall();
        if (what == "persistent") persistent();
        if (what == "sendrecv") sendrecv();
        if (what == "alltoallw") alltoallw();
    }
    MPI_Type_free(&vector);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
