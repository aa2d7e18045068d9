/* Tests of the window accessors in the merged proposal of TMC and NEC of 1996, rule by rule. */
#include <ddtc.h>
#include "check.h"

static int lengths[4];
static ddtc_aint stride, places[4];
static ddtc_datatype types[4];
static const ddtc_datatype untouched = (ddtc_datatype)(intptr_t)0x7777;

static void reset(void)
{
    for (int i = 0; i < 4; i++) lengths[i] = -9, places[i] = -9, types[i] = untouched;
    stride = -9;
}

static void shape(ddtc_datatype t, int count, int combiner)
{
    int n, c;
    OK(ddtc_type_envelope(t, &n, &c));
    EQ(n, count);
    EQ(c, combiner);
}

/* Reads a window and checks how many entries of each array were written. */
static void window(ddtc_datatype t, int start, int count, int nl, int ns, int np, int nt)
{
    reset();
    OK(ddtc_type_contents(t, start, count, lengths, &stride, places, types));
    for (int i = 0; i < 4; i++) {
        EQ(lengths[i] != -9, i < nl);
        EQ(places[i] != -9, i < np);
        EQ(types[i] != untouched, i < nt);
    }
    EQ(stride != -9, ns);
}

int main(void)
{
    ddtc_datatype t, v, d = DDTC_TYPE_DOUBLE;

    /* A window here is a section of a type's contents, which ddtc_type_contents returns from the
     * entry `start` on. A predefined type has the combiner MPI_BASIC and the count 1. Every window
     * of such a type has one entry, the type itself, whatever `start` is. */
    shape(d, 1, DDTC_BASIC);
    window(d, 0, 4, 0, 0, 0, 1);
    EQ(types[0], d);
    window(d, 1000, 1, 0, 0, 0, 1);
    OK(ddtc_type_create_f90_real(15, 307, &t));
    shape(t, 1, DDTC_BASIC);
    window(t, 0, 1, 0, 0, 0, 1);
    EQ(types[0], t);
    OK(ddtc_type_get_value_index(DDTC_TYPE_INT, DDTC_TYPE_INT64_T, &t));
    shape(t, 1, DDTC_BASIC);
    window(t, 0, 1, 0, 0, 0, 1);
    EQ(types[0], t);

    OK(ddtc_type_contiguous(7, d, &t));
    shape(t, 7, DDTC_CONTIG);
    window(t, 99, 1, 0, 0, 0, 1);
    EQ(types[0], d);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_vector(3, 2, -5, d, &v));
    shape(v, 3, DDTC_VECTOR);
    window(v, 99, 1, 1, 1, 0, 1);
    TRUE(lengths[0] == 2 && stride == -5 && types[0] == d);

    /* Derived types are returned as new references. */
    OK(ddtc_type_create_hvector(4, 1, 100, v, &t));
    shape(t, 4, DDTC_HVECTOR);
    window(t, 0, 1, 1, 1, 0, 1);
    TRUE(lengths[0] == 1 && stride == 100 && types[0] != v);
    shape(types[0], 3, DDTC_VECTOR);
    OK(ddtc_type_free(&types[0]));
    OK(ddtc_type_free(&t));
    OK(ddtc_type_hvector_integer(4, 1, 100, d, &t));
    shape(t, 4, DDTC_HVECTOR);
    OK(ddtc_type_free(&t));

    /* The call writes max(0, min(count, all - start)) entries of each list that the constructor
     * has, where `all` is the length of the lists. For indexed types it always writes the old type,
     * too. */
    OK(ddtc_type_indexed(3, (int[]){1, 2, 3}, (int[]){0, 10, 20}, d, &t));
    shape(t, 3, DDTC_INDEXED);
    window(t, 0, 2, 2, 0, 2, 1);
    TRUE(lengths[0] == 1 && lengths[1] == 2 && places[1] == 10 && types[0] == d);
    window(t, 2, 4, 1, 0, 1, 1);
    TRUE(lengths[0] == 3 && places[0] == 20);
    window(t, 3, 4, 0, 0, 0, 1);
    window(t, 2147483647, 2147483647, 0, 0, 0, 1);
    FAILS(DDTC_ERR_COUNT, "count = 0", ddtc_type_contents(t, 0, 0, lengths, &stride, places, types));
    FAILS(DDTC_ERR_COUNT, "count = -1", ddtc_type_contents(t, 0, -1, lengths, &stride, places, types));
    FAILS(DDTC_ERR_ARG, "start = -1", ddtc_type_contents(t, -1, 1, lengths, &stride, places, types));
    /* Arrays that a combiner does not use may be null. */
    OK(ddtc_type_contents(t, 0, 2, lengths, NULL, places, types));
    FAILS(DDTC_ERR_ARG, "array_types", ddtc_type_contents(t, 0, 2, lengths, NULL, places, NULL));
    OK(ddtc_type_free(&t));

    OK(ddtc_type_create_hindexed(2, (int[]){1, 2}, (ddtc_aint[]){80, 8}, d, &t));
    shape(t, 2, DDTC_HINDEXED);
    window(t, 1, 1, 1, 0, 1, 1);
    TRUE(lengths[0] == 2 && places[0] == 8);
    OK(ddtc_type_free(&t));

    ddtc_datatype members[3] = {DDTC_TYPE_INT, v, d};
    OK(ddtc_type_create_struct(3, (int[]){4, 5, 6}, (ddtc_aint[]){0, 100, 400}, members, &t));
    shape(t, 3, DDTC_STRUCT);
    window(t, 1, 4, 2, 0, 2, 2);
    TRUE(lengths[0] == 5 && lengths[1] == 6 && places[0] == 100 && places[1] == 400 && types[1] == d);
    OK(ddtc_type_free(&types[0]));
    window(t, 3, 1, 0, 0, 0, 0);
    OK(ddtc_type_free(&t));

    /* Combiners that the proposal does not have are refused, with their names in the message. */
    int n, c;
    OK(ddtc_type_dup(d, &t));
    FAILS(DDTC_ERR_TYPE, "MPI_COMBINER_DUP", ddtc_type_envelope(t, &n, &c));
    FAILS(DDTC_ERR_TYPE, "MPI_COMBINER_DUP", ddtc_type_contents(t, 0, 1, lengths, &stride, places, types));
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_resized(d, 0, 16, &t));
    FAILS(DDTC_ERR_TYPE, "MPI_COMBINER_RESIZED", ddtc_type_envelope(t, &n, &c));
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_indexed_block(1, 1, (int[]){0}, d, &t));
    FAILS(DDTC_ERR_TYPE, "MPI_COMBINER_INDEXED_BLOCK", ddtc_type_envelope(t, &n, &c));
    OK(ddtc_type_free(&t));

    OK(ddtc_type_contiguous_c((ddtc_count)1 << 31, DDTC_TYPE_CHAR, &t));
    FAILS(DDTC_ERR_VALUE_TOO_LARGE, "count = 2147483648", ddtc_type_envelope(t, &n, &c));
    OK(ddtc_type_free(&t));
    OK(ddtc_type_vector_c(1, (ddtc_count)1 << 31, 0, DDTC_TYPE_CHAR, &t));
    FAILS(DDTC_ERR_VALUE_TOO_LARGE, "2147483648", ddtc_type_contents(t, 0, 1, lengths, &stride, places, types));
    OK(ddtc_type_free(&t));
    OK(ddtc_type_free(&v));
    return 0;
}
