
int main(int argc, char **argv)
{
    MPI_Datatype t = MPI_DATATYPE_NULL;
    int memory[4] = {0}, position = 0, code;
    char stream[64];
    CALL(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    (void)t, (void)memory, (void)position, (void)stream;
    code = MISUSE;
    if (code == MPI_SUCCESS)
        puts("expected an error, got MPI_SUCCESS");
    MPI_Finalize();
    return code == MPI_SUCCESS;
}
