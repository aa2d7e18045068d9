/* Makes many derived types, which are committed once and kept, and sends messages of each type to
 * the rank itself several times.
 *
 * Usage: manytypes TYPES ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS = 200 * 16 };

int main(int argc, char **argv)
{
    static double sent[ELEMENTS], received[ELEMENTS];
    int types = atoi(argv[1]), rounds = atoi(argv[2]), wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Datatype *type = malloc((size_t)types * sizeof *type);
    for (int i = 0; i < types; i++) {
        MPI_Type_vector(64 + i % 64, 1 + i / 64 % 3, 4 + i % 5, MPI_DOUBLE, &type[i]);
        MPI_Type_commit(&type[i]);
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < types; i++) {
            int last = (64 + i % 64 - 1) * (4 + i % 5) + i / 64 % 3;
            sent[0] = round;
            sent[last] = i;
            received[0] = received[last] = -1;
            MPI_Sendrecv(sent, 1, type[i], 0, 0, received, 1, type[i], 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
            wrong += received[0] != round || received[last] != i;
        }
    for (int i = 0; i < types; i++)
        MPI_Type_free(&type[i]);
    free(type);
    printf("%d types, %d messages wrong\n", types, wrong);
    MPI_Finalize();
    return 0;
}
