
static int copies, deletes;

static int copy(MPI_Datatype t, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)t, (void)keyval, (void)extra;
    copies++;
    *(void **)out = (char *)in + 0x10;
    *flag = (intptr_t)in % 2 == 0;
    return MPI_SUCCESS;
}

static int delete(MPI_Datatype t, int keyval, void *value, void *extra)
{
    (void)t, (void)keyval, (void)extra, (void)value;
    deletes++;
    return MPI_SUCCESS;
}

static void check(MPI_Datatype t)
{
    MPI_Datatype duplicate;
    intptr_t values[3] = {0x1100, 0x1200, 0x1301};
    int keyvals[3];
    for (int i = 0; i < 3; i++) {
        CALL(MPI_Type_create_keyval(copy, delete, &keyvals[i], NULL));
        CALL(MPI_Type_set_attr(t, keyvals[i], (void *)values[i]));
    }
    CALL(MPI_Type_dup(t, &duplicate));
    same("copy callbacks of MPI_Type_dup", 3, copies);
    for (int i = 0; i < 3; i++) {
        void *value = NULL;
        int flag;
        CALL(MPI_Type_get_attr(duplicate, keyvals[i], &value, &flag));
        same("whether the duplicate has the attribute", i < 2, flag);
        if (flag)
            same("attribute of the duplicate", values[i] + 0x10, (intptr_t)value);
    }
    MPI_Aint lb[2], extent[2];
    CALL(MPI_Type_get_extent(t, &lb[0], &extent[0]));
    CALL(MPI_Type_get_extent(duplicate, &lb[1], &extent[1]));
    same("lower bound of the duplicate", lb[0], lb[1]);
    same("extent of the duplicate", extent[0], extent[1]);
    CALL(MPI_Type_delete_attr(duplicate, keyvals[0]));
    same("delete callbacks of MPI_Type_delete_attr", 1, deletes);
    CALL(MPI_Type_free(&duplicate));
    same("delete callbacks after MPI_Type_free", 2, deletes);
    for (int i = 0; i < 3; i++)
        CALL(MPI_Type_delete_attr(t, keyvals[i]));
    same("delete callbacks after all", 5, deletes);
}
