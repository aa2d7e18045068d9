
static void packs(const char *what, MPI_Datatype t)
{
    unsigned char *from = memory(1), *want = gathered(from), *stream = calloc(SIZE + 64, 1);
    int position = 0;
    CALL(MPI_Pack(from, COUNT, t, stream, SIZE + 64, &position, MPI_COMM_SELF));
    same("packed bytes", SIZE, position);
    same_stream(what, want, stream);
    free(stream);
    free(want);
}

static void check(MPI_Datatype t)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    CALL(MPI_Type_get_name(t, name, &length));
    same("length of the name of a new datatype", 0, length);
    CALL(MPI_Type_set_name(t, "ddtc"));
    CALL(MPI_Type_get_name(t, name, &length));
    same("whether the name is the one set", 0, strcmp(name, "ddtc"));
    CALL(MPI_Type_commit(&t));
    if (!SIZE)
        return;
    packs("committed twice", t);
    MPI_Datatype orphan = orphaned(), duplicate;
    CALL(MPI_Type_commit(&orphan));
    CALL(MPI_Type_dup(orphan, &duplicate));
    packs("parts freed", orphan);
    CALL(MPI_Type_free(&orphan));
    packs("original freed", duplicate);
    static MPI_Datatype many[1100];
    int n = 1100 / NODES + 1;
    for (int i = 0; i < n; i++) {
        many[i] = build();
        CALL(MPI_Type_commit(&many[i]));
    }
    packs("the last of many", many[n - 1]);
    packs("one of many", many[n / 2]);
}
