
static void check(MPI_Datatype t)
{
    MPI_Count size;
    MPI_Aint lb, extent;
    CALL(MPI_Type_size_x(t, &size));
    if (CHECK_SIZE)
        same("size", WANT_SIZE, size);
    CALL(MPI_Type_get_extent(t, &lb, &extent));
    if (CHECK_BOUNDS) {
        same("lower bound", WANT_LB, lb);
        same("extent", WANT_EXTENT, extent);
    }
    CALL(MPI_Type_get_true_extent(t, &lb, &extent));
    if (CHECK_TRUE_BOUNDS) {
        same("true lower bound", WANT_TRUE_LB, lb);
        same("true extent", WANT_TRUE_EXTENT, extent);
    }
    int small;
    CALL(MPI_Type_size(t, &small));
    if (CHECK_SMALL_SIZE)
        same("size as an int", MPI_UNDEFINED, small);
}
