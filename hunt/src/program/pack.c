
/* What is packed and unpacked again is as it was, and nothing else changes. */
static void check(MPI_Datatype t)
{
    unsigned char *from = memory(1), *to = memory(3), *want = memory(3), *stream_want = gathered(from);
    int room, position = 0, end;
    CALL(MPI_Pack_size(COUNT, t, MPI_COMM_SELF, &room));
    same("whether MPI_Pack_size is an upper bound", 1, room >= SIZE);
    if (room < SIZE)
        room = SIZE;
    unsigned char *stream = calloc(2 * room + 64, 1);
    CALL(MPI_Pack(from, COUNT, t, stream, room, &position, MPI_COMM_SELF));
    if (CHECK_FORMAT)
        same_stream("packed", stream_want, stream);
    if (CHECK_PADDING)
        same("whether all bytes are as in memory", 0, memcmp(stream, stream_want, SIZE));
    end = position;
    position = 0;
    if (OVERLAPS) {
        /* Nothing may be unpacked into entries that overlap. */
        unsigned char *values = stream_of(3);
        CALL(MPI_Unpack(stream, end, &position, values, 1, flat(ELEMENTS), MPI_COMM_SELF));
        same_stream("unpacked", stream_want, values);
        return;
    }
    CALL(MPI_Unpack(stream, end, &position, to, COUNT, t, MPI_COMM_SELF));
    same("position after unpacking", end, position);
    scatter(stream_want, SIZE, want);
    same_memory("unpacked", want, to);
    /* The same twice, from another position. */
    position = 5;
    CALL(MPI_Pack(from, COUNT, t, stream, 2 * room + 64, &position, MPI_COMM_SELF));
    same("position after packing from 5", 5 + end, position);
    CALL(MPI_Pack(from, COUNT, t, stream, 2 * room + 64, &position, MPI_COMM_SELF));
    same("position after packing again", 5 + 2 * end, position);
    position = 5 + end;
    to = memory(3);
    CALL(MPI_Unpack(stream, 5 + 2 * end, &position, to, COUNT, t, MPI_COMM_SELF));
    same_memory("unpacked from a position", want, to);
}
