/* Tests in the style of an MPI-1 program that includes mpi.h. They use names that MPI removed, such
 * as the bound markers, MPI_Type_struct and MPI_Address. They also cover queries of a status,
 * MPI_Comm_rank and other functions in a single process, error handlers that return, large counts,
 * and the window accessors of 1996 with the names of their proposal. */
#include <mpi.h>
#include "check.h"

struct particle {
    char kind;
    double x[3];
    int id;
};

/* Counts the blocks of a type as the proposal of the window accessors intended: reads one window
 * after the other into an array of fixed length, without allocating memory. */
static int count_blocks(MPI_Datatype type)
{
    int count, combiner, start, total = 0;
    int blocklens[8];
    MPI_Aint stride, disps[8];
    MPI_Datatype types[8];
    MPI_Type_envelope(type, &count, &combiner);
    switch (combiner) {
    case MPI_BASIC:
        return 1;
    case MPI_CONTIG:
    case MPI_VECTOR:
    case MPI_HVECTOR:
        return count;
    case MPI_INDEXED:
    case MPI_HINDEXED:
    case MPI_STRUCT:
        for (start = 0; start < count; start += 8) {
            int filled = count - start < 8 ? count - start : 8, i;
            MPI_Type_contents(type, start, 8, blocklens, &stride, disps, types);
            for (i = 0; i < filled; i++) total += blocklens[i];
        }
        return total;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct particle p[4], q[4];
    int lengths[5] = {1, 1, 3, 1, 1}, i, rank, size, flag, position = 0;
    MPI_Aint places[5], base, extent, lb = -1, ub = -1;
    MPI_Datatype types[5] = {MPI_LB, MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_UB}, t, h;
    char buffer[256];

    MPI_Initialized(&flag);
    EQ(flag, 0);
    MPI_Init(&argc, &argv);
    MPI_Initialized(&flag);
    EQ(flag, 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    TRUE(rank == 0 && size == 1);
    TRUE(MPI_Wtime() <= MPI_Wtime());

    MPI_Address(&p[0], &base);
    MPI_Address(&p[0].kind, &places[1]);
    MPI_Address(p[0].x, &places[2]);
    MPI_Address(&p[0].id, &places[3]);
    MPI_Address(&p[1], &places[4]);
    for (i = 1; i < 5; i++) places[i] -= base;
    places[0] = 0;
    MPI_Type_struct(5, lengths, places, types, &t);
    MPI_Type_extent(t, &extent);
    EQ(extent, sizeof(struct particle));
    MPI_Type_lb(t, &lb);
    MPI_Type_ub(t, &ub);
    TRUE(lb == 0 && ub == (MPI_Aint)sizeof(struct particle));
    MPI_Type_size(t, &size);
    EQ(size, 1 + 24 + 4);
    MPI_Type_size(MPI_LB, &size);
    EQ(size, 0);
    MPI_Type_commit(&t);
    memset(p, 0, sizeof p);
    memset(q, 0, sizeof q);
    for (i = 0; i < 4; i++) p[i].kind = (char)('a' + i), p[i].x[0] = i, p[i].x[2] = -i, p[i].id = 100 + i;
    MPI_Pack(p, 4, t, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
    EQ(position, 4 * 29);
    position = 0;
    MPI_Unpack(buffer, sizeof buffer, &position, q, 4, t, MPI_COMM_WORLD);
    BYTES(p, q, sizeof p);
    EQ(count_blocks(t), 7);

    /* A type that a C constructor of MPI-1 made has the combiner of the constructor that replaced
     * it. */
    int ni, na, nd, combiner;
    MPI_Type_get_envelope(t, &ni, &na, &nd, &combiner);
    TRUE(ni == 6 && na == 5 && nd == 5 && combiner == MPI_COMBINER_STRUCT);
    MPI_Type_hvector(2, 1, 100, MPI_INT, &h);
    MPI_Type_get_envelope(h, &ni, &na, &nd, &combiner);
    EQ(combiner, MPI_COMBINER_HVECTOR);
    MPI_Type_free(&h);
    MPI_Type_hindexed(2, lengths, places, MPI_INT, &h);
    EQ(count_blocks(h), 2);
    MPI_Type_free(&h);

    /* Tests queries of a status. */
    MPI_Status status;
    int elements;
    MPI_Count large;
    MPI_Status_set_elements(&status, t, 10);
    MPI_Get_count(&status, t, &elements);
    EQ(elements, 2);
    MPI_Get_elements(&status, t, &elements);
    EQ(elements, 10);
    MPI_Status_set_elements(&status, t, 2);
    MPI_Get_count(&status, t, &elements);
    EQ(elements, MPI_UNDEFINED);
    MPI_Status_set_elements_x(&status, MPI_BYTE, ((MPI_Count)3 << 32) + 1);
    MPI_Get_elements_x(&status, MPI_CHAR, &large);
    EQ(large, ((MPI_Count)3 << 32) + 1);
    MPI_Get_count(&status, MPI_CHAR, &elements);
    EQ(elements, MPI_UNDEFINED);
    MPI_Get_count(&status, MPI_INT, &elements);
    EQ(elements, MPI_UNDEFINED);

    /* Errors that are returned have a class and a message. */
    MPI_Errhandler handler;
    char text[MPI_MAX_ERROR_STRING];
    int class;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    EQ(handler, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Type_contiguous(-1, MPI_INT, &h);
    MPI_Error_class(code, &class);
    EQ(class, MPI_ERR_COUNT);
    MPI_Error_string(code, text, &i);
    TRUE(strstr(text, "count = -1") != NULL);
    EQ(MPI_Pack(p, 1, t, buffer, sizeof buffer, &position, MPI_COMM_NULL), MPI_ERR_COMM);
    EQ(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);

    /* Tests the conversion of handles to Fortran integers and back. */
    EQ(MPI_Type_f2c(MPI_Type_c2f(t)), t);
    EQ(MPI_Type_c2f(MPI_INTEGER), 0x219);

    MPI_Type_free(&t);
    EQ(t, MPI_DATATYPE_NULL);
    if (argc > 1) {
        MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
        MPI_Type_contiguous(-1, MPI_INT, &h);
    }
    MPI_Finalize();
    MPI_Finalized(&flag);
    EQ(flag, 1);
    return 0;
}
