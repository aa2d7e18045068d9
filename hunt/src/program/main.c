
int main(int argc, char **argv)
{
    CALL(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Datatype t = build();
    if (COMMIT)
        CALL(MPI_Type_commit(&t));
    MAP;
    check(t);
    puts(bad ? "wrong" : "right");
    fflush(stdout);
    MPI_Finalize();
    return bad;
}
