/* Sends short and long messages of structures whose packed elements are not aligned, between two
 * ranks on one communicator and on an intercommunicator of two groups. If an MPI library cuts
 * messages into segments, the preload library must not give it messages whose segments would end
 * inside an element. Prints a line for each wrong message, and "wrong N". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of ways to send. The fourth way, MPI_Sendrecv_replace, is left out under MPICH. MPICH's
 * own implementation of this call packs into bytes, and so has the fault that this program looks
 * for. */
#ifdef CUTS_SEGMENTS
enum { WAYS = 3 };
#else
enum { WAYS = 4 };
#endif

struct layout {
    MPI_Datatype type;
    int n;
    int bytes[5];
    MPI_Aint at[5];
    MPI_Aint extent;
};

/* Makes a datatype of one of two signatures with one of two layouts. Signature 0 has int, double
 * and three floats; signature 1 has double and int, packed into 12 bytes. */
static struct layout layout(int signature, int variant)
{
    struct layout l = {0};
    MPI_Datatype inner;
    MPI_Datatype types[3] = {signature ? MPI_DOUBLE : MPI_INT, signature ? MPI_INT : MPI_DOUBLE, MPI_FLOAT};
    int lengths[3] = {1, 1, 3};
    MPI_Aint at[3] = {variant ? 8 : 0, variant ? 24 : 8, variant ? 40 : 16};
    MPI_Type_create_struct(signature ? 2 : 3, lengths, at, types, &inner);
    l.extent = variant ? 56 : 32;
    MPI_Type_create_resized(inner, 0, l.extent, &l.type);
    MPI_Type_commit(&l.type);
    MPI_Type_free(&inner);
    l.n = signature ? 2 : 5;
    for (int i = 0; i < l.n; i++) {
        l.bytes[i] = i == (signature ? 0 : 1) ? 8 : 4;
        l.at[i] = i < 2 ? at[i] : at[2] + 4 * (i - 2);
    }
    return l;
}

static void put(const struct layout *l, char *b, int count, int seed)
{
    for (int k = 0; k < count; k++)
        for (int i = 0; i < l->n; i++)
            for (int j = 0; j < l->bytes[i]; j++) b[k * l->extent + l->at[i] + j] = (char)(seed + 31 * k + 7 * i + 3 * j);
}

static char *filled(size_t bytes)
{
    char *b = malloc(bytes);
    memset(b, 0x5a, bytes);
    return b;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank, 7, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* Try all combinations of communicator, signature, count and way to send. Each message is sent
     * once as instances of a type of one structure, and once as one instance of a type of all
     * structures. Rank 0 sends, except that with way 3 both ranks exchange messages in place. */
    for (int group = 0; group < 2; group++)
        for (int signature = 0; signature < 2; signature++)
            for (int count = 1; count < 30000; count += 1 + count / 2)
                for (int kind = 0; kind < 2 * WAYS; kind++) {
                    int way = kind / 2, whole = kind % 2;
                    MPI_Comm comm = group ? inter : MPI_COMM_WORLD;
                    int peer = group ? 0 : 1 - rank, tag = way, code = 0;
                    struct layout l = layout(signature, rank);
                    MPI_Datatype type = l.type;
                    int n = count;
                    /* With `whole`, the message is one instance of a type of all structures. */
                    if (whole) {
                        MPI_Type_contiguous(count, l.type, &type);
                        MPI_Type_commit(&type);
                        n = 1;
                    }
                    size_t bytes = (size_t)(count * l.extent);
                    char *mine = filled(bytes), *wanted = filled(bytes);
                    MPI_Request request = MPI_REQUEST_NULL;
                    put(&l, mine, count, 10 * rank + way);
                    if (way == 3) {
                        put(&l, wanted, count, 10 * (1 - rank) + way);
                        code = MPI_Sendrecv_replace(mine, n, type, peer, tag, peer, tag, comm, MPI_STATUS_IGNORE);
                    } else if (rank == 0) {
                        put(&l, wanted, count, way);
                        if (way == 0) code = MPI_Send(mine, n, type, peer, tag, comm);
                        if (way == 1) code = MPI_Isend(mine, n, type, peer, tag, comm, &request);
                        if (way == 2) {
                            code = MPI_Ssend_init(mine, n, type, peer, tag, comm, &request);
                            code |= MPI_Start(&request);
                        }
                        code |= MPI_Wait(&request, MPI_STATUS_IGNORE);
                        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
                    } else {
                        MPI_Status status;
                        int got = -1;
                        put(&l, wanted, count, way);
                        code = MPI_Recv(mine, n, type, peer, tag, comm, &status);
                        MPI_Get_count(&status, type, &got);
                        if (code == 0 && got != n) code = -1;
                    }
                    if (code != 0 || memcmp(mine, wanted, bytes) != 0) {
                        wrong++;
                        printf("rank %d: group %d, signature %d, %d structures%s, way %d: code %d\n", rank, group, signature, count, whole ? " in one type" : "", way, code);
                    }
                    if (whole) MPI_Type_free(&type);
                    MPI_Type_free(&l.type);
                    free(mine);
                    free(wanted);
                }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("wrong %d\n", all);
    MPI_Finalize();
    return 0;
}
