
/* The values are packed from a place where they stand one after the other, and unpacked by the datatype. */
static void check(MPI_Datatype t)
{
    unsigned char *values = stream_of(2), *to = memory(3), *want = memory(3), *stream = malloc(2 * SIZE + 64);
    MPI_Datatype line = flat(ELEMENTS);
    int position = 0, end;
    CALL(MPI_Pack(values, 1, line, stream, 2 * SIZE + 64, &position, MPI_COMM_SELF));
    end = position;
    position = 0;
    CALL(MPI_Unpack(stream, end, &position, to, COUNT, t, MPI_COMM_SELF));
    same("position after unpacking", end, position);
    scatter(values, SIZE, want);
    same_memory("unpacked", want, to);
}
