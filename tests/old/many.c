/* Sends arrays of structures with a gap from rank 0 to rank 1, many times, as a program in which
 * ddtc gains does. Prints what arrives. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>

enum { COUNT = 4096, TIMES = 2000 };

struct particle {
    int id;
    double mass;
    float place[3];
};

static struct particle particles[COUNT];

int main(int argc, char **argv)
{
    const int lengths[] = {1, 1, 3};
    const MPI_Aint places[] = {offsetof(struct particle, id), offsetof(struct particle, mass), offsetof(struct particle, place)};
    const MPI_Datatype members[] = {MPI_INT, MPI_DOUBLE, MPI_FLOAT};
    MPI_Datatype packed, type;
    int rank;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_create_struct(3, lengths, places, members, &packed);
    MPI_Type_create_resized(packed, 0, sizeof(struct particle), &type);
    MPI_Type_commit(&type);
    for (int time = 0; time < TIMES; time++) {
        if (rank == 0) {
            for (int i = 0; i < COUNT; i++)
                particles[i] = (struct particle){i, time + i, {i, time, 1}};
            MPI_Send(particles, COUNT, type, 1, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(particles, COUNT, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < COUNT; i++)
                sum += particles[i].id + particles[i].mass + particles[i].place[0] + particles[i].place[1] + particles[i].place[2];
        }
    }
    if (rank == 1)
        printf("received: %.0f\n", sum);
    MPI_Type_free(&packed);
    MPI_Type_free(&type);
    MPI_Finalize();
}
