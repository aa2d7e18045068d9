/* Packs columns of a matrix, sends them from rank 0 to rank 1 many times, and prints the packed
 * bytes and what arrives. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 200, COLUMNS = 50, WIDTH = 3, TIMES = 40 };

static int sent[ROWS][COLUMNS], received[ROWS][COLUMNS];
static char packed[4 * ROWS * WIDTH];

/* Prints the length of some bytes and their FNV-1a hash. */
static void print(const char *what, const void *bytes, size_t length)
{
    unsigned long long hash = 14695981039346656037ULL;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211ULL;
    printf("%s: %zu bytes, %016llx\n", what, length, hash);
}

int main(int argc, char **argv)
{
    int rank, position = 0;
    MPI_Datatype columns;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++)
            sent[row][column] = 1000 * row + column;
    MPI_Type_vector(ROWS, WIDTH, COLUMNS, MPI_INT, &columns);
    MPI_Type_commit(&columns);
    for (int time = 0; time < TIMES; time++) {
        position = 0;
        MPI_Pack(&sent[0][time], 1, columns, packed, sizeof packed, &position, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Send(&sent[0][time], 1, columns, 1, time, MPI_COMM_WORLD);
        else
            MPI_Recv(&received[0][time], 1, columns, 0, time, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 1) {
        print("packed", packed, position);
        print("received", received, sizeof received);
        if (memcmp(&received[7][0], &sent[7][0], sizeof(int) * (TIMES + WIDTH - 1)) != 0)
            printf("wrong\n");
    }
    MPI_Type_free(&columns);
    MPI_Finalize();
}
