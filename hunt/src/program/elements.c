
/* Messages with some of the elements. */
static void check(MPI_Datatype t)
{
    if (OVERLAPS)
        return; /* Nothing may be received into entries that overlap. */
    long lengths[] = {0, 1, ELEMENTS / 2, ELEMENTS - 1, ELEMENTS, INSTANCE, INSTANCE + 1};
    for (int i = 0; i < 7; i++) {
        long n = lengths[i], bytes = 0, left = n;
        if (n > ELEMENTS)
            continue;
        MPI_Datatype line = flat(n);
        int size, count, elements;
        MPI_Type_size(line, &size);
        bytes = size;
        (void)left;
        unsigned char *values = stream_of(2), *to = memory(3), *want = memory(3);
        MPI_Status status;
        CALL(MPI_Sendrecv(values, n ? 1 : 0, line, 0, 7, to, COUNT, t, 0, 7, MPI_COMM_SELF, &status));
        CALL(MPI_Get_count(&status, t, &count));
        CALL(MPI_Get_elements(&status, t, &elements));
        printf("after %ld elements: count %d, elements %d\n", n, count, elements);
        if (CHECK_COUNTS) {
            same("MPI_Get_count", COUNT && bytes % (SIZE / COUNT) ? MPI_UNDEFINED : bytes / (SIZE / COUNT), count);
            same("MPI_Get_elements", n, elements);
        }
        if (CHECK_BYTES) {
            scatter(values, bytes, want);
            same_memory("received", want, to);
        }
    }
}
