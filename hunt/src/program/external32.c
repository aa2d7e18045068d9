
static void check(MPI_Datatype t)
{
    unsigned char *from = memory(3), *to = memory(3), *want = memory(3), *stream = malloc(EXTERNAL + 64);
    MPI_Aint size, position = 0;
    scatter(values, SIZE, from);
    CALL(MPI_Pack_external_size("external32", COUNT, t, &size));
    same("MPI_Pack_external_size", EXTERNAL, size);
    memset(stream, 0xee, EXTERNAL + 64);
    CALL(MPI_Pack_external("external32", from, COUNT, t, stream, EXTERNAL + 64, &position));
    same("position after MPI_Pack_external", EXTERNAL, position);
    for (long i = 0; i < EXTERNAL; i++)
        if (stream[i] != external[i]) {
            printf("byte %ld in external32: expected %#04x, got %#04x\n", i, external[i], stream[i]);
            bad = 1;
            break;
        }
    position = 0;
    CALL(MPI_Unpack_external("external32", external, EXTERNAL, &position, to, COUNT, t));
    scatter(values, SIZE, want);
    same_memory("from external32", want, to);
}
