
/* To oneself: the datatype to values one after the other, these to the datatype, the datatype to itself. */
static void check(MPI_Datatype t)
{
    MPI_Datatype line = flat(ELEMENTS);
    unsigned char *from = memory(1), *stream_want = gathered(from), *stream = calloc(SIZE + 64, 1);
    MPI_Status status;
    MPI_Request request;
    int count;
    CALL(MPI_Sendrecv(from, COUNT, t, 0, 7, stream, 1, line, 0, 7, MPI_COMM_SELF, &status));
    same_stream("sent", stream_want, stream);
    CALL(MPI_Get_count(&status, line, &count));
    same("MPI_Get_count of what was sent", 1, count);
    if (OVERLAPS)
        return;
    unsigned char *values = stream_of(2), *to = memory(3), *want = memory(3);
    CALL(MPI_Isend(values, 1, line, 0, 7, MPI_COMM_SELF, &request));
    CALL(MPI_Recv(to, COUNT, t, 0, 7, MPI_COMM_SELF, &status));
    CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
    scatter(values, SIZE, want);
    same_memory("received", want, to);
    CALL(MPI_Get_count(&status, t, &count));
    same("MPI_Get_count of what was received", COUNT, count);
    to = memory(3), want = memory(3);
    CALL(MPI_Sendrecv(from, COUNT, t, 0, 7, to, COUNT, t, 0, 7, MPI_COMM_SELF, &status));
    scatter(stream_want, SIZE, want);
    same_memory("sent to itself", want, to);
}
