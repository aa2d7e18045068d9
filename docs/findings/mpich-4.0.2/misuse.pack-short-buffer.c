/*
 * misuse.pack-short-buffer: mpich 4.0.2
 * (position = 0, MPI_Pack(memory, 2, MPI_INT, stream, 7, &position, MPI_COMM_SELF))
 * MPI 5.0, 5.2: outsize is at least the position after the call
 * expected: an error class
 * got: MPI_SUCCESS
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad;

/* A legal call. */
#define CALL(call)                                                           \
    do {                                                                     \
        int code = (call), class = code;                                     \
        if (code != MPI_SUCCESS) {                                           \
            MPI_Error_class(code, &class);                                   \
            printf("expected MPI_SUCCESS, got class %d: %s\n", class, #call); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static void same(const char *what, long long expected, long long got)
{
    if (expected != got) {
        printf("%s: expected %lld, got %lld\n", what, expected, got);
        bad = 1;
    }
}

#define MISUSE (position = 0, MPI_Pack(memory, 2, MPI_INT, stream, 7, &position, MPI_COMM_SELF))

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
