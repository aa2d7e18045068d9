/* Exchanges messages between two ranks, of types with gaps and of 1 KiB to 4 MiB. Each message is
 * received with the same type, and once more as packed bytes. The program also uses persistent
 * requests and a broadcast. It compares every received byte with what the type requires, and checks
 * that gaps are not overwritten. Only the padding inside of a long double may have any value: Open
 * MPI 6.0 copies such elements by assignments in C, which may leave the padding behind. The exit
 * status is 1 if something differs.
 *
 *     messages [generic]
 *
 * Give `generic` if one of the two ranks packs and unpacks by Open MPI's own generic functions, and
 * the other rank by the mover provider. When a message of packed bytes is cut inside of an element,
 * the generic functions join the two halves of the element in 16 bytes, so elements of 32 bytes do
 * not arrive whole. With `generic`, the program does not send such elements as packed bytes. */
#include <mpi.h>
#include <complex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 257 };

/* The layout of one instance of a type: pieces of basic elements, each at a place in bytes. */
struct layout {
    const char *name;
    int pieces, lengths[PIECES];
    MPI_Aint places[PIECES], extent;
    MPI_Datatype basics[PIECES], type;
    long bytes;
};

static void add(struct layout *l, MPI_Aint place, int length, MPI_Datatype basic)
{
    int size;
    MPI_Type_size(basic, &size);
    l->places[l->pieces] = place;
    l->lengths[l->pieces] = length;
    l->basics[l->pieces++] = basic;
    l->bytes += (long)length * size;
}

static void commit(struct layout *l)
{
    MPI_Datatype tight;
    MPI_Type_create_struct(l->pieces, l->lengths, l->places, l->basics, &tight);
    MPI_Type_create_resized(tight, 0, l->extent, &l->type);
    MPI_Type_free(&tight);
    MPI_Type_commit(&l->type);
}

static unsigned char value(long at, int salt) { return (unsigned char)((at * 2654435761u + salt * 40503u) >> 11); }

static int wrong;

/* Returns whether byte `at` of elements of this type is padding. On x86-64, each number of a long
 * double complex has 10 bytes and 6 bytes of padding. */
static int is_padding(MPI_Datatype basic, long at) { return basic == MPI_C_LONG_DOUBLE_COMPLEX && at % 16 >= 10; }

/* Returns whether the packed bytes of `count` instances are the same, apart from padding. */
static int same_packed(const struct layout *l, long count, const unsigned char *a, const unsigned char *b)
{
    for (long k = 0; k < count; k++)
        for (int p = 0; p < l->pieces; p++) {
            int size;
            MPI_Type_size(l->basics[p], &size);
            for (long i = 0; i < (long)l->lengths[p] * size; i++)
                if (*a++ != *b++ && !is_padding(l->basics[p], i)) return 0;
        }
    return 1;
}

/* Checks that `got` has the bytes of `count` instances at the places of the layout, and has the
 * initial value 0x77 everywhere else, apart from padding. */
static void compare(const struct layout *l, long count, const unsigned char *got, int salt, const char *what)
{
    for (long k = 0, at = 0; k < count; k++, at += l->extent) {
        unsigned char *expected = malloc(l->extent);
        memset(expected, 0x77, l->extent);
        for (int p = 0; p < l->pieces; p++) {
            int size;
            MPI_Type_size(l->basics[p], &size);
            for (long i = l->places[p], byte = 0; byte < (long)l->lengths[p] * size; i++, byte++)
                expected[i] = is_padding(l->basics[p], byte) ? got[at + i] : value(at + i, salt);
        }
        if (memcmp(expected, got + at, l->extent)) {
            printf("%s of %s, %ld instances: instance %ld differs\n", what, l->name, count, k);
            wrong++;
            k = count;
        }
        free(expected);
    }
}

int main(int argc, char **argv)
{
    static struct layout layouts[4];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) MPI_Abort(MPI_COMM_WORLD, 2);

    layouts[0] = (struct layout){.name = "{int, long double complex}", .extent = 48};
    add(&layouts[0], 0, 1, MPI_INT);
    add(&layouts[0], 16, 1, MPI_C_LONG_DOUBLE_COMPLEX);
    layouts[1] = (struct layout){.name = "{int, double, float[3]}", .extent = 32};
    add(&layouts[1], 0, 1, MPI_INT);
    add(&layouts[1], 8, 1, MPI_DOUBLE);
    add(&layouts[1], 16, 3, MPI_FLOAT);
    layouts[2] = (struct layout){.name = "indexed doubles"};
    for (int p = 0; p < PIECES; p++, layouts[2].extent += 16 + 8 * (p % 3)) add(&layouts[2], layouts[2].extent, 1, MPI_DOUBLE);
    layouts[3] = (struct layout){.name = "rows of {char, short}"};
    for (int p = 0; p < 64; p++, layouts[3].extent += 7) {
        add(&layouts[3], layouts[3].extent, 1, MPI_CHAR);
        add(&layouts[3], layouts[3].extent + 2, 1, MPI_SHORT);
    }

    for (int w = 0; w < 4; w++) {
        struct layout *l = &layouts[w];
        commit(l);
        for (long payload = 1024; payload <= 4 << 20; payload *= 4) {
            long count = payload / l->bytes + 1, span = count * l->extent;
            unsigned char *mine = malloc(span), *theirs = malloc(span), *packed = malloc(count * l->bytes), *again = malloc(count * l->bytes);
            int position = 0, salt = rank + 1, peer = 1 - rank;
            for (long i = 0; i < span; i++) mine[i] = value(i, salt);

            memset(theirs, 0x77, span);
            MPI_Sendrecv(mine, count, l->type, peer, 0, theirs, count, l->type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            compare(l, count, theirs, peer + 1, "a message");

            /* Send a message of the type to this rank itself and receive it as packed bytes. They
             * must be the bytes that MPI_Pack makes. Then send the packed bytes to the other rank,
             * which receives them with the type. */
            MPI_Pack(mine, count, l->type, again, count * l->bytes, &position, MPI_COMM_SELF);
            MPI_Sendrecv(mine, count, l->type, rank, 1, packed, count * l->bytes, MPI_PACKED, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!same_packed(l, count, packed, again)) wrong++, printf("%s: packed bytes differ\n", l->name);
            if (argc == 1 || w != 0) {
                memset(theirs, 0x77, span);
                MPI_Sendrecv(packed, position, MPI_PACKED, peer, 2, theirs, count, l->type, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                compare(l, count, theirs, peer + 1, "a message of packed bytes");
            }

            /* Make a persistent request for a send and one for a receive, and start both three
             * times. */
            MPI_Request requests[2];
            MPI_Send_init(mine, count, l->type, peer, 3, MPI_COMM_WORLD, &requests[0]);
            MPI_Recv_init(theirs, count, l->type, peer, 3, MPI_COMM_WORLD, &requests[1]);
            for (int start = 0; start < 3; start++) {
                memset(theirs, 0x77, span);
                MPI_Startall(2, requests);
                MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
                compare(l, count, theirs, peer + 1, "a persistent message");
            }
            MPI_Request_free(&requests[0]);
            MPI_Request_free(&requests[1]);

            memset(theirs, 0x77, span);
            MPI_Bcast(rank == 0 ? mine : theirs, count, l->type, 0, MPI_COMM_WORLD);
            if (rank == 1) compare(l, count, theirs, 1, "a broadcast");
            free(mine);
            free(theirs);
            free(packed);
            free(again);
        }
        MPI_Type_free(&l->type);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("messages: %d differences\n", wrong);
    MPI_Finalize();
    return wrong != 0;
}
