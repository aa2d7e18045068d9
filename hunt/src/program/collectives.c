
static void move(int which, unsigned char *from, int n, MPI_Datatype out, unsigned char *to, int m, MPI_Datatype in)
{
    int zero = 0;
    if (which == 0)
        CALL(MPI_Allgather(from, n, out, to, m, in, MPI_COMM_SELF));
    else if (which == 1)
        CALL(MPI_Gather(from, n, out, to, m, in, 0, MPI_COMM_SELF));
    else if (which == 2)
        CALL(MPI_Scatter(from, n, out, to, m, in, 0, MPI_COMM_SELF));
    else
        CALL(MPI_Alltoallw(from, &n, &zero, &out, to, &m, &zero, &in, MPI_COMM_SELF));
}

static void one_sided(int which, unsigned char *from, int n, MPI_Datatype out, unsigned char *to, int m, MPI_Datatype in)
{
    MPI_Win window;
    CALL(MPI_Win_create(to + LOW, LENGTH, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window));
    CALL(MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN));
    CALL(MPI_Win_fence(0, window));
    if (which == 0)
        CALL(MPI_Put(from, n, out, 0, -LOW, m, in, window));
    else if (which == 1)
        CALL(MPI_Get(from, n, out, 0, -LOW, m, in, window));
    else
        CALL(MPI_Accumulate(from, n, out, 0, -LOW, m, in, MPI_SUM, window));
    CALL(MPI_Win_fence(0, window));
    CALL(MPI_Win_free(&window));
}

static void check(MPI_Datatype t)
{
    static const char *names[] = {"MPI_Allgather", "MPI_Gather", "MPI_Scatter", "MPI_Alltoallw"};
    MPI_Datatype line = flat(ELEMENTS);
    unsigned char *from = memory(1), *stream_want = gathered(from), *values = stream_of(2), *want = memory(3);
    unsigned char *stream = calloc(SIZE + 64, 1), *to;
    scatter(values, SIZE, want);
    for (int which = 0; which < 4; which++) {
        move(which, from, COUNT, t, stream, 1, line);
        same_stream(names[which], stream_want, stream);
        if (OVERLAPS)
            continue;
        to = memory(3);
        move(which, values, 1, line, to, COUNT, t);
        same_memory(names[which], want, to);
    }
    if (OVERLAPS || bad)
        return;
    to = memory(3);
    one_sided(0, values, 1, line, to, COUNT, t);
    same_memory("MPI_Put", want, to);
    memset(stream, 0, SIZE);
    one_sided(1, stream, 1, line, from, COUNT, t);
    same_stream("MPI_Get", stream_want, stream);
    if (!SUM || !ENTRIES)
        return;
    /* Small values, so that sums are in the lowest byte of each element. */
    memset(values, 0, SIZE);
    to = memory(3), want = memory(3);
    for (long i = 0; i < SIZE; i += SIZE / ELEMENTS)
        values[i] = i / (SIZE / ELEMENTS) % 100;
    scatter(values, SIZE, to);
    one_sided(2, values, 1, line, to, COUNT, t);
    for (long i = 0; i < SIZE; i++)
        stream[i] = 2 * values[i];
    scatter(stream, SIZE, want);
    same_memory("MPI_Accumulate", want, to);
}
