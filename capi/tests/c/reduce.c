/* Tests of reductions (MPI 5.0, 6.9): MPI_Reduce_local with arbitrary layouts, unpacking with an
 * operation, operations that the program created, and calls that are refused. */
#include <ddtc/mpi.h>
#include <math.h>
#include "check.h"

static int calls, rows, aligned = 1;
static ddtc_datatype called_with;

/* An operation that is neither commutative nor associative: in + 10 * inout. */
static void weighted(void *in, void *inout, int *len, ddtc_datatype *datatype)
{
    int i, *from = in, *to = inout;
    for (i = 0; i < *len; i++)
        to[i] = from[i] + 10 * to[i];
    calls++;
    rows += *len;
    called_with = *datatype;
    aligned &= (uintptr_t)in % sizeof(int) == 0 && (uintptr_t)inout % sizeof(int) == 0;
}

struct location {
    double value;
    int index;
};

static void sooner(void *in, void *inout, ddtc_count *len, ddtc_datatype *datatype)
{
    struct location *from = in, *to = inout;
    ddtc_count i;
    for (i = 0; i < *len; i++)
        if (from[i].index < to[i].index)
            to[i] = from[i];
    calls++;
    called_with = *datatype;
}

static void sums(void)
{
    double in[6] = {1, 2, 3, 4, 5, 6}, out[6] = {10, 20, 30, 40, 50, 60};
    MPI_Datatype column, twice;
    int packed[4] = {1, 2, 3, 4}, ints[2] = {100, 200}, position = 0;
    MPI_Count large = 4;
    OK(MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &column));
    FAILS(MPI_ERR_TYPE, "must be committed", MPI_Reduce_local(in, out, 1, column, MPI_SUM));
    OK(MPI_Type_commit(&column));
    OK(MPI_Reduce_local(in, out, 1, column, MPI_SUM));
    TRUE(out[0] == 11 && out[1] == 20 && out[2] == 33 && out[3] == 40 && out[4] == 55 && out[5] == 60);
    OK(MPI_Reduce_local_c(in, out, 6, MPI_DOUBLE, MPI_MAX));
    TRUE(out[0] == 11 && out[1] == 20 && out[5] == 60);
    OK(MPI_Reduce_local(NULL, NULL, 0, MPI_DOUBLE, MPI_SUM));
    OK(MPI_Reduce_local(in, out, 6, MPI_DOUBLE, MPI_REPLACE));
    BYTES(out, in, sizeof in);

    /* The type maps each of two elements twice. Both contributions to an element are added. */
    OK(MPI_Type_create_hvector(2, 2, 0, MPI_INT, &twice));
    OK(MPI_Type_commit(&twice));
    OK(ddtc_unpack_reduce(packed, sizeof packed, &position, ints, 1, twice, DDTC_SUM));
    EQ(position, 16);
    EQ(ints[0], 104);
    EQ(ints[1], 206);
    OK(ddtc_unpack_reduce_c(packed, sizeof packed, &large, ints, 1, MPI_INT, DDTC_MIN));
    EQ(large, 8);
    EQ(ints[0], 2);
    /* The type `twice` maps each of two elements twice. MPI_Reduce_local reads both buffers with
     * this type, so it adds packed[0] twice to ints[0], and packed[1] twice to ints[1]. */
    OK(MPI_Reduce_local(packed, ints, 1, twice, MPI_SUM));
    EQ(ints[0], 4);
    EQ(ints[1], 210);
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&twice));
}

static void locations(void)
{
    struct location in[3] = {{1, 5}, {2, 5}, {NAN, 5}}, out[3] = {{1, 7}, {1, 7}, {0, 7}};
    unsigned char packed[36];
    int position = 0, i;
    memset(packed, 0, sizeof packed);
    for (i = 0; i < 3; i++) {
        memcpy(packed + 12 * i, &in[i].value, 8);
        memcpy(packed + 12 * i + 8, &in[i].index, 4);
    }
    OK(MPI_Reduce_local(in, out, 3, MPI_DOUBLE_INT, MPI_MINLOC));
    EQ(out[0].index * 100 + out[1].index * 10 + out[2].index, 577);
    OK(ddtc_unpack_reduce(packed, sizeof packed, &position, out, 3, MPI_DOUBLE_INT, DDTC_MAXLOC));
    EQ(position, 36);
    TRUE(out[1].value == 2 && out[1].index == 5 && out[2].value == 0 && out[2].index == 7);
}

static void own(void)
{
    int in[4] = {1, 2, 3, 4}, out[6] = {1, 1, 1, 1, 1, 1}, commute = 7, position = 1;
    unsigned char packed[17];
    struct location old[2] = {{9, 4}, {9, 4}};
    unsigned char pairs[24];
    MPI_Datatype odd, mixed;
    ddtc_op op, large, freed;
    double value = 3;
    int index = 2;
    OK(ddtc_op_create(weighted, 0, &op));
    OK(ddtc_op_create_c(sooner, 1, &large));
    OK(ddtc_op_commutative(op, &commute));
    EQ(commute, 0);
    OK(ddtc_op_commutative(large, &commute));
    EQ(commute, 1);
    OK(ddtc_op_commutative(DDTC_REPLACE, &commute));
    EQ(commute, 0);
    /* MPI_Reduce_local calls the program's function with the arguments that MPI_Reduce_local itself
     * got. */
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &odd));
    OK(MPI_Type_commit(&odd));
    OK(MPI_Reduce_local(in, out, 2, MPI_INT, op));
    TRUE(calls == 1 && rows == 2 && called_with == MPI_INT && out[0] == 11 && out[1] == 12 && out[2] == 1);
    OK(MPI_Reduce_local(in, out, 1, odd, op));
    TRUE(calls == 2 && called_with == odd);
    /* ddtc_unpack_reduce calls the program's function with arrays of the basic type. These arrays
     * are aligned even if the packed data are not. */
    memcpy(packed + 1, in, sizeof in);
    calls = rows = 0;
    out[0] = out[1] = out[2] = out[3] = 1;
    OK(ddtc_unpack_reduce(packed, sizeof packed, &position, out, 2, odd, op));
    EQ(position, 17);
    TRUE(rows == 4 && aligned && called_with == MPI_INT);
    TRUE(out[0] == 11 && out[1] == 1 && out[2] == 12 && out[3] == 13 && out[4] == 1 && out[5] == 14);
    memcpy(pairs, &value, 8);
    memcpy(pairs + 8, &index, 4);
    memcpy(pairs + 12, pairs, 12);
    position = 0;
    OK(ddtc_unpack_reduce(pairs, sizeof pairs, &position, old, 2, MPI_DOUBLE_INT, large));
    TRUE(old[0].value == 3 && old[1].index == 2 && called_with == MPI_DOUBLE_INT);
    /* An operation that the program created refuses a type with elements of two basic types. */
    OK(MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 4}, (MPI_Datatype[]){MPI_INT, MPI_UNSIGNED}, &mixed));
    OK(MPI_Type_commit(&mixed));
    position = 0;
    FAILS(MPI_ERR_OP, "element = 1 (MPI_UNSIGNED", ddtc_unpack_reduce(packed, 17, &position, out, 1, mixed, op));
    EQ(position, 0);
    freed = op;
    OK(ddtc_op_free(&op));
    TRUE(op == DDTC_OP_NULL);
    FAILS(MPI_ERR_OP, "not freed", MPI_Reduce_local(in, out, 1, MPI_INT, freed));
    OK(ddtc_op_free(&large));
    OK(MPI_Type_free(&odd));
    OK(MPI_Type_free(&mixed));
}

static void refusals(void)
{
    int in[2] = {1, 2}, out[2] = {7, 7}, position = 0;
    ddtc_op op = DDTC_SUM, null = DDTC_OP_NULL;
    FAILS(MPI_ERR_OP, "0 (MPI_CHAR at displacement 0)", MPI_Reduce_local(in, out, 1, MPI_CHAR, MPI_SUM));
    FAILS(MPI_ERR_OP, "MPI_MINLOC", MPI_Reduce_local(in, out, 1, MPI_INT, MPI_MINLOC));
    FAILS(MPI_ERR_OP, "MPI_LAND", MPI_Reduce_local(in, out, 1, MPI_INTEGER, MPI_LAND));
    FAILS(MPI_ERR_OP, "MPI_OP_NULL", MPI_Reduce_local(in, out, 1, MPI_INT, MPI_OP_NULL));
    FAILS(MPI_ERR_COUNT, "count", MPI_Reduce_local(in, out, -1, MPI_INT, MPI_SUM));
    FAILS(MPI_ERR_TYPE, "NULL", MPI_Reduce_local(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM));
    FAILS(MPI_ERR_TRUNCATE, "8 packed bytes", ddtc_unpack_reduce(in, 7, &position, out, 2, MPI_INT, DDTC_SUM));
    position = 9;
    FAILS(MPI_ERR_ARG, "position", ddtc_unpack_reduce(in, 8, &position, out, 1, MPI_INT, DDTC_SUM));
    /* Packing under a reduction is refused, even if the stream is empty. */
    {
        const ddtc_committed *ints;
        const ddtc_applied *sum;
        ddtc_count bytes = 5;
        OK(ddtc_type_get_committed(MPI_INT, &ints));
        OK(ddtc_committed_reduce(ints, DDTC_SUM, &sum));
        FAILS(DDTC_ERR_OP, "only unpack", ddtc_applied_range(sum, DDTC_PACK, in, 0, 0, out, 8, &bytes));
        FAILS(DDTC_ERR_OP, "only unpack", ddtc_applied_range(sum, DDTC_PACK, in, 2, 0, out, 0, &bytes));
        EQ(bytes, 5);
        OK(ddtc_applied_range(sum, DDTC_UNPACK, out, 0, 0, in, 8, &bytes));
        EQ(bytes, 0);
        OK(ddtc_applied_release(sum));
        OK(ddtc_committed_release(ints));
    }
    FAILS(MPI_ERR_OP, "predefined", ddtc_op_free(&op));
    FAILS(MPI_ERR_OP, "MPI_OP_NULL", ddtc_op_free(&null));
    FAILS(MPI_ERR_ARG, "function", ddtc_op_create(NULL, 1, &op));
    TRUE(position == 9 && out[0] == 7 && out[1] == 7 && op == DDTC_SUM);
}

int main(void)
{
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    sums();
    locations();
    own();
    refusals();
    OK(MPI_Finalize());
    return 0;
}
