/* A module that twompi.c loads. Its function `run` exchanges messages of a derived type with the
 * process itself, and prints the version of the MPI library and how often a call failed or a
 * message was wrong. It returns this number. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 300 };

int run(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, initialized, failures = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    MPI_Initialized(&initialized);
    if (!initialized)
        MPI_Init(NULL, NULL);
    MPI_Datatype column;
    failures += MPI_Type_vector(3, 1, 2, MPI_INT, &column) != MPI_SUCCESS;
    failures += MPI_Type_commit(&column) != MPI_SUCCESS;
    for (int i = 0; i < ROUNDS; i++) {
        int sent[6] = {i, 2, i + 1, 4, i + 2, 6}, received[6] = {-1, -1, -1, -1, -1, -1};
        failures += MPI_Sendrecv(sent, 1, column, 0, 1, received, 1, column, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE) != MPI_SUCCESS;
        failures += received[0] != i || received[1] != -1 || received[2] != i + 1 || received[3] != -1 || received[4] != i + 2;
    }
    failures += MPI_Type_free(&column) != MPI_SUCCESS;
    printf("%s: %d failures\n", version, failures);
    fflush(stdout);
    return failures;
}
