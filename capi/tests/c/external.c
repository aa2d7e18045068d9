/* Tests of external32 (MPI 5.0, 5.3, 14.5.2). They use MPI's names and cover bytes computed by
 * hand, positions, values that do not fit, and the functions for runtimes. */
#include <ddtc/mpi.h>
#include <limits.h>
#include "check.h"

struct particle {
    int id;
    long cell;
    short tag[2];
    double weight;
};

static MPI_Datatype particle_type(void)
{
    MPI_Datatype t, resized;
    OK(MPI_Type_create_struct(4, (int[]){1, 1, 2, 1},
                              (MPI_Aint[]){offsetof(struct particle, id), offsetof(struct particle, cell),
                                           offsetof(struct particle, tag), offsetof(struct particle, weight)},
                              (MPI_Datatype[]){MPI_INT, MPI_LONG, MPI_SHORT, MPI_DOUBLE}, &t));
    OK(MPI_Type_create_resized(t, 0, sizeof(struct particle), &resized));
    OK(MPI_Type_free(&t));
    return resized;
}

/* The particle {1, -2, {3, 4}, 1.0} in external32. */
static const unsigned char wanted[20] = {0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0, 3, 0, 4, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0};

int main(void)
{
    struct particle source[2] = {{1, -2, {3, 4}, 1.0}, {1, -2, {3, 4}, 1.0}}, back[2];
    unsigned char packed[64], again[64];
    MPI_Aint size, position;
    MPI_Count large_size, large;
    MPI_Datatype t, v;
    int i;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    t = particle_type();
    /* Only the size is available before the type is committed. */
    OK(MPI_Pack_external_size("external32", 2, t, &size));
    EQ(size, 40);
    position = 0;
    FAILS(MPI_ERR_TYPE, "must be committed", MPI_Pack_external("external32", source, 2, t, packed, 64, &position));
    OK(MPI_Type_commit(&t));
    OK(MPI_Pack_external_size_c("external32", 2, t, &large_size));
    EQ(large_size, 40);
    OK(MPI_Pack_external_size("external32", INT_MAX, t, &size));
    EQ(size, 20LL * INT_MAX);

    /* Two calls pack one after the other, after 4 bytes that are already in the buffer. */
    memset(packed, 0xaa, sizeof packed);
    position = 4;
    OK(MPI_Pack_external("external32", source, 1, t, packed, sizeof packed, &position));
    EQ(position, 24);
    OK(MPI_Pack_external("external32", source + 1, 1, t, packed, sizeof packed, &position));
    EQ(position, 44);
    BYTES(packed + 4, wanted, 20);
    BYTES(packed + 24, wanted, 20);
    EQ(packed[3], 0xaa);
    EQ(packed[44], 0xaa);
    large = 0;
    OK(MPI_Pack_external_c("external32", source, 2, t, again, 40, &large));
    EQ(large, 40);
    BYTES(again, packed + 4, 40);

    memset(back, 0, sizeof back);
    position = 4;
    OK(MPI_Unpack_external("external32", packed, 44, &position, back, 2, t));
    EQ(position, 44);
    large = 0;
    OK(MPI_Unpack_external_c("external32", again, 40, &large, back, 2, t));
    EQ(large, 40);
    for (i = 0; i < 2; i++) {
        EQ(back[i].id, 1);
        EQ(back[i].cell, -2);
        EQ(back[i].tag[0] * 10 + back[i].tag[1], 34);
        TRUE(back[i].weight == 1.0);
    }

    /* A long that does not fit in four bytes is an error. Here that long is the second element of
     * the second particle. */
    source[1].cell = 1L << 31;
    position = 0;
    FAILS(MPI_ERR_CONVERSION, "element = 6 (MPI_LONG",
          MPI_Pack_external("external32", source, 2, t, packed, sizeof packed, &position));
    EQ(position, 0);
    BYTES(packed, wanted, 20);

    position = 0;
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP, "native", MPI_Pack_external("native", source, 1, t, packed, 64, &position));
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP, "datarep", MPI_Pack_external_size("", 1, t, &size));
    FAILS(MPI_ERR_ARG, "datarep", MPI_Pack_external(NULL, source, 1, t, packed, 64, &position));
    FAILS(MPI_ERR_COUNT, "incount", MPI_Pack_external("external32", source, -1, t, packed, 64, &position));
    FAILS(MPI_ERR_TRUNCATE, "outsize", MPI_Pack_external("external32", source, 1, t, packed, 19, &position));
    FAILS(MPI_ERR_TRUNCATE, "insize", MPI_Unpack_external("external32", packed, 19, &position, back, 1, t));
    FAILS(MPI_ERR_BUFFER, "outbuf", MPI_Pack_external("external32", source, 1, t, NULL, 64, &position));
    FAILS(MPI_ERR_BUFFER, "buffer", MPI_Pack_external("external32", NULL, 1, t, packed, 64, &position));
    position = 65;
    FAILS(MPI_ERR_ARG, "position", MPI_Pack_external("external32", source, 1, t, packed, 64, &position));
    EQ(position, 65);

    /* Tests a strided type whose values a kernel swaps, and a predefined pair type. */
    {
        int column[6] = {1, 99, 2, 99, 3, 99};
        OK(MPI_Type_vector(3, 1, 2, MPI_INT, &v));
        OK(MPI_Type_commit(&v));
        position = 0;
        OK(MPI_Pack_external("external32", column, 1, v, packed, sizeof packed, &position));
        BYTES(packed, ((unsigned char[]){0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3}), 12);
        OK(MPI_Type_free(&v));
        position = 0;
        OK(MPI_Pack_external("external32", column, 1, MPI_SHORT_INT, packed, sizeof packed, &position));
        EQ(position, 6);
    }

    /* Tests the functions for runtimes. */
    {
        const ddtc_committed *committed;
        const ddtc_applied *applied;
        ddtc_count bytes;
        source[1].cell = -2;
        OK(ddtc_type_get_committed(t, &committed));
        OK(ddtc_committed_external32(committed, &applied));
        OK(ddtc_committed_release(committed));
        OK(ddtc_applied_size(applied, 2, &bytes));
        EQ(bytes, 40);
        memset(packed, 0, sizeof packed);
        /* Only whole values are packed: 12 of 19 bytes, because the next value has 8 bytes. */
        OK(ddtc_applied_range(applied, DDTC_PACK, source, 2, 0, packed, 19, &bytes));
        EQ(bytes, 12);
        OK(ddtc_applied_range(applied, DDTC_PACK, source, 2, 12, packed + 12, 64, &bytes));
        EQ(bytes, 28);
        BYTES(packed, wanted, 20);
        BYTES(packed + 20, wanted, 20);
        memset(back, 0, sizeof back);
        OK(ddtc_applied_range(applied, DDTC_UNPACK, back, 2, 0, packed, 40, &bytes));
        EQ(back[1].cell, -2);
        FAILS(DDTC_ERR_ARG, "offset = 13", ddtc_applied_range(applied, DDTC_PACK, source, 2, 13, packed, 64, &bytes));
        /* Errors of ddtc_applied_range have the same classes as those of ddtc_committed_range. */
        FAILS(DDTC_ERR_ARG, "offset = -1", ddtc_applied_range(applied, DDTC_PACK, source, 2, -1, packed, 64, &bytes));
        FAILS(DDTC_ERR_ARG, "max_bytes = -1", ddtc_applied_range(applied, DDTC_PACK, source, 2, 0, packed, -1, &bytes));
        FAILS(DDTC_ERR_COUNT, "count = -1", ddtc_applied_range(applied, DDTC_PACK, source, -1, 0, packed, 64, &bytes));
        FAILS(DDTC_ERR_ARG, "direction", ddtc_applied_range(applied, 2, source, 2, 0, packed, 64, &bytes));
        FAILS(DDTC_ERR_BUFFER, "packed", ddtc_applied_range(applied, DDTC_PACK, source, 2, 0, NULL, 64, &bytes));
        OK(ddtc_applied_retain(applied));
        OK(ddtc_applied_release(applied));
        OK(ddtc_applied_release(applied));
        FAILS(DDTC_ERR_ARG, "applied", ddtc_applied_release(NULL));
    }
    OK(MPI_Type_free(&t));
    OK(MPI_Finalize());
    return 0;
}
