/* Tests of the constructors, in both the int and the large-count form. They check envelope,
 * contents and bounds, and packed bytes that were computed by hand. A type that is made again from
 * the contents must be equal. */
#include <ddtc.h>
#include "check.h"

static int source[4096];

/* Packs and unpacks one instance of `t`. The instance must consist of the `n` ints of `source` at
 * the indices in `indices`. */
static void packs(ddtc_datatype t, int n, const int *indices)
{
    int packed[256], position = 0, size, back[4096];
    OK(ddtc_type_commit(&t));
    OK(ddtc_pack_size(1, t, &size));
    EQ(size, n * (int)sizeof(int));
    OK(ddtc_pack(source, 1, t, packed, sizeof packed, &position));
    EQ(position, size);
    for (int i = 0; i < n; i++) EQ(packed[i], source[indices[i]]);
    memset(back, 0xee, sizeof back);
    position = 0;
    OK(ddtc_unpack(packed, size, &position, back, 1, t));
    EQ(position, size);
    int mapped[4096] = {0};
    for (int i = 0; i < n; i++) {
        EQ(back[indices[i]], source[indices[i]]);
        mapped[indices[i]] = 1;
    }
    for (int i = 0; i < 4096; i++)
        if (!mapped[i]) EQ(back[i], (int)0xeeeeeeee);
    /* Packs ranges that begin at each byte of the packed stream. */
    for (ddtc_count cut = 0; cut <= size; cut++) {
        char piece[256 * sizeof(int)];
        ddtc_count got;
        OK(ddtc_pack_range(source, 1, t, cut, piece, sizeof piece, &got));
        EQ(got, size - cut);
        BYTES(piece, (char *)packed + cut, got);
    }
}

struct contents {
    int combiner;
    ddtc_count ni, na, nc, nd;
    int i[64];
    ddtc_aint a[64];
    ddtc_count c[64];
    ddtc_datatype d[64];
};

static struct contents decode(ddtc_datatype t)
{
    struct contents x;
    memset(&x, 0x7f, sizeof x);
    OK(ddtc_type_get_envelope_c(t, &x.ni, &x.na, &x.nc, &x.nd, &x.combiner));
    OK(ddtc_type_get_contents_c(t, 64, 64, 64, 64, x.i, x.a, x.c, x.d));
    for (ddtc_count k = x.ni; k < 64; k++) EQ(x.i[k], 0x7f7f7f7f);
    if (x.nc == 0) {
        int ni, na, nd, combiner, i[64];
        ddtc_aint a[64];
        ddtc_datatype d[64];
        OK(ddtc_type_get_envelope(t, &ni, &na, &nd, &combiner));
        TRUE(ni == x.ni && na == x.na && nd == x.nd && combiner == x.combiner);
        OK(ddtc_type_get_contents(t, ni, na, nd, i, a, d));
        BYTES(i, x.i, ni * sizeof *i);
        BYTES(a, x.a, na * sizeof *a);
        /* All children in this program are predefined. */
        for (int k = 0; k < nd; k++) EQ(d[k], x.d[k]);
    } else {
        int ni, na, nd, combiner, i[64];
        ddtc_aint a[64];
        ddtc_datatype d[64];
        FAILS(DDTC_ERR_TYPE, "large-count", ddtc_type_get_envelope(t, &ni, &na, &nd, &combiner));
        FAILS(DDTC_ERR_TYPE, "large-count", ddtc_type_get_contents(t, 64, 64, 64, i, a, d));
        /* The functions without `_c` refuse to decode a type that a large-count constructor built.
         * But they decode a duplicate of such a type. */
        ddtc_datatype dup;
        OK(ddtc_type_dup(t, &dup));
        OK(ddtc_type_get_envelope(dup, &ni, &na, &nd, &combiner));
        TRUE(ni == 0 && na == 0 && nd == 1 && combiner == DDTC_COMBINER_DUP);
        OK(ddtc_type_free(&dup));
    }
    return x;
}

#define SHAPE(x, COMBINER, NI, NA, NC, ND)                                                                             \
    do {                                                                                                               \
        EQ((x).combiner, COMBINER);                                                                                    \
        EQ((x).ni, NI);                                                                                                \
        EQ((x).na, NA);                                                                                                \
        EQ((x).nc, NC);                                                                                                \
        EQ((x).nd, ND);                                                                                                \
        if ((ND) > 0) EQ((x).d[0], DDTC_TYPE_INT);                                                                     \
    } while (0)
#define SAME(array, ...)                                                                                               \
    do {                                                                                                               \
        const long long same[] = {__VA_ARGS__};                                                                        \
        for (int same_i = 0; same_i < LENGTH(same); same_i++) EQ((array)[same_i], same[same_i]);                       \
    } while (0)
#define PACKS(t, ...)                                                                                                  \
    do {                                                                                                               \
        const int packs_i[] = {__VA_ARGS__};                                                                           \
        packs(t, LENGTH(packs_i), packs_i);                                                                            \
    } while (0)
#define INTS(...) ((const int[]){__VA_ARGS__})
#define AINTS(...) ((const ddtc_aint[]){__VA_ARGS__})
#define COUNTS(...) ((const ddtc_count[]){__VA_ARGS__})

static void bounds(ddtc_datatype t, long lb, long extent, long true_lb, long true_extent)
{
    ddtc_aint a, b;
    ddtc_count c, d;
    OK(ddtc_type_get_extent(t, &a, &b));
    TRUE(a == lb && b == extent);
    OK(ddtc_type_get_true_extent(t, &a, &b));
    TRUE(a == true_lb && b == true_extent);
    OK(ddtc_type_get_extent_c(t, &c, &d));
    TRUE(c == lb && d == extent);
    OK(ddtc_type_get_true_extent_x(t, &c, &d));
    TRUE(c == true_lb && d == true_extent);
}

int main(void)
{
    ddtc_datatype t, I = DDTC_TYPE_INT;
    struct contents x;
    for (int i = 0; i < 4096; i++) source[i] = i * 1001;

    OK(ddtc_type_contiguous(3, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_CONTIGUOUS, 1, 0, 0, 1);
    SAME(x.i, 3);
    PACKS(t, 0, 1, 2);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_contiguous_c(3, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_CONTIGUOUS, 0, 0, 1, 1);
    SAME(x.c, 3);
    PACKS(t, 0, 1, 2);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_vector(2, 2, 5, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_VECTOR, 3, 0, 0, 1);
    SAME(x.i, 2, 2, 5);
    bounds(t, 0, 28, 0, 28);
    PACKS(t, 0, 1, 5, 6);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_vector_c(2, 2, 5, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_VECTOR, 0, 0, 3, 1);
    SAME(x.c, 2, 2, 5);
    PACKS(t, 0, 1, 5, 6);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_create_hvector(3, 1, 8, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_HVECTOR, 2, 1, 0, 1);
    SAME(x.i, 3, 1);
    SAME(x.a, 8);
    PACKS(t, 0, 2, 4);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_hvector_c(3, 1, 8, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_HVECTOR, 0, 0, 3, 1);
    SAME(x.c, 3, 1, 8);
    PACKS(t, 0, 2, 4);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_hvector_integer(3, 1, 8, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_HVECTOR_INTEGER, 2, 1, 0, 1);
    SAME(x.i, 3, 1);
    SAME(x.a, 8);
    PACKS(t, 0, 2, 4);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_indexed(3, INTS(2, 0, 1), INTS(4, 99, 0), I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_INDEXED, 7, 0, 0, 1);
    SAME(x.i, 3, 2, 0, 1, 4, 99, 0);
    PACKS(t, 4, 5, 0);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_indexed_c(3, COUNTS(2, 0, 1), COUNTS(4, 99, 0), I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_INDEXED, 0, 0, 7, 1);
    SAME(x.c, 3, 2, 0, 1, 4, 99, 0);
    PACKS(t, 4, 5, 0);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_create_hindexed(2, INTS(1, 2), AINTS(40, 8), I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_HINDEXED, 3, 2, 0, 1);
    SAME(x.i, 2, 1, 2);
    SAME(x.a, 40, 8);
    PACKS(t, 10, 2, 3);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_hindexed_c(2, COUNTS(1, 2), COUNTS(40, 8), I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_HINDEXED, 0, 0, 5, 1);
    SAME(x.c, 2, 1, 2, 40, 8);
    PACKS(t, 10, 2, 3);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_hindexed_integer(2, INTS(1, 2), INTS(40, 8), I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_HINDEXED_INTEGER, 3, 2, 0, 1);
    SAME(x.a, 40, 8);
    PACKS(t, 10, 2, 3);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_create_indexed_block(2, 2, INTS(6, 1), I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_INDEXED_BLOCK, 4, 0, 0, 1);
    SAME(x.i, 2, 2, 6, 1);
    PACKS(t, 6, 7, 1, 2);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_indexed_block_c(2, 2, COUNTS(6, 1), I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_INDEXED_BLOCK, 0, 0, 4, 1);
    SAME(x.c, 2, 2, 6, 1);
    PACKS(t, 6, 7, 1, 2);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_create_hindexed_block(2, 2, AINTS(24, 4), I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_HINDEXED_BLOCK, 2, 2, 0, 1);
    SAME(x.i, 2, 2);
    SAME(x.a, 24, 4);
    PACKS(t, 6, 7, 1, 2);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_hindexed_block_c(2, 2, COUNTS(24, 4), I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_HINDEXED_BLOCK, 0, 0, 4, 1);
    SAME(x.c, 2, 2, 24, 4);
    PACKS(t, 6, 7, 1, 2);
    OK(ddtc_type_free(&t));

    ddtc_datatype types[2] = {DDTC_TYPE_INT, DDTC_TYPE_FLOAT};
    OK(ddtc_type_create_struct(2, INTS(1, 2), AINTS(8, 20), types, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_STRUCT, 3, 2, 0, 2);
    SAME(x.i, 2, 1, 2);
    SAME(x.a, 8, 20);
    EQ(x.d[1], DDTC_TYPE_FLOAT);
    PACKS(t, 2, 5, 6);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_struct_c(2, COUNTS(1, 2), COUNTS(8, 20), types, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_STRUCT, 0, 0, 5, 2);
    SAME(x.c, 2, 1, 2, 8, 20);
    PACKS(t, 2, 5, 6);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_struct_integer(2, INTS(1, 2), INTS(8, 20), types, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_STRUCT_INTEGER, 3, 2, 0, 2);
    SAME(x.a, 8, 20);
    PACKS(t, 2, 5, 6);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_create_subarray(2, INTS(3, 4), INTS(2, 2), INTS(1, 1), DDTC_ORDER_C, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_SUBARRAY, 8, 0, 0, 1);
    SAME(x.i, 2, 3, 4, 2, 2, 1, 1, DDTC_ORDER_C);
    bounds(t, 0, 48, 20, 24);
    PACKS(t, 5, 6, 9, 10);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_subarray_c(2, COUNTS(4, 3), COUNTS(2, 2), COUNTS(1, 1), DDTC_ORDER_FORTRAN, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_SUBARRAY, 2, 0, 6, 1);
    SAME(x.i, 2, DDTC_ORDER_FORTRAN);
    SAME(x.c, 4, 3, 2, 2, 1, 1);
    PACKS(t, 5, 6, 9, 10);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_create_darray(4, 1, 2, INTS(4, 6), INTS(DDTC_DISTRIBUTE_BLOCK, DDTC_DISTRIBUTE_CYCLIC),
                               INTS(DDTC_DISTRIBUTE_DFLT_DARG, 2), INTS(2, 2), DDTC_ORDER_C, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_DARRAY, 12, 0, 0, 1);
    SAME(x.i, 4, 1, 2, 4, 6, DDTC_DISTRIBUTE_BLOCK, DDTC_DISTRIBUTE_CYCLIC, DDTC_DISTRIBUTE_DFLT_DARG, 2, 2, 2,
         DDTC_ORDER_C);
    PACKS(t, 2, 3, 8, 9);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_darray_c(4, 1, 2, COUNTS(4, 6), INTS(DDTC_DISTRIBUTE_BLOCK, DDTC_DISTRIBUTE_CYCLIC),
                                 INTS(DDTC_DISTRIBUTE_DFLT_DARG, 2), INTS(2, 2), DDTC_ORDER_C, I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_DARRAY, 10, 0, 2, 1);
    SAME(x.i, 4, 1, 2, DDTC_DISTRIBUTE_BLOCK, DDTC_DISTRIBUTE_CYCLIC, DDTC_DISTRIBUTE_DFLT_DARG, 2, 2, 2,
         DDTC_ORDER_C);
    SAME(x.c, 4, 6);
    PACKS(t, 2, 3, 8, 9);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_create_resized(I, -8, 32, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_RESIZED, 0, 2, 0, 1);
    SAME(x.a, -8, 32);
    bounds(t, -8, 32, 0, 4);
    PACKS(t, 0);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_resized_c(I, -8, 32, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_RESIZED, 0, 0, 2, 1);
    SAME(x.c, -8, 32);
    PACKS(t, 0);
    OK(ddtc_type_free(&t));

    OK(ddtc_type_dup(I, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_DUP, 0, 0, 0, 1);
    PACKS(t, 0);
    OK(ddtc_type_free(&t));

    /* Unnamed predefined types are types without a name, such as those that
     * ddtc_type_create_f90_real returns. They cannot be freed and need no commit, and equal
     * arguments give equal handles. The contents of the types for a precision (f90) have no
     * datatypes. */
    ddtc_datatype u;
    OK(ddtc_type_create_f90_real(15, 307, &t));
    OK(ddtc_type_create_f90_real(15, 307, &u));
    EQ(t, u);
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_F90_REAL, 2, 0, 0, 0);
    SAME(x.i, 15, 307);
    bounds(t, 0, 8, 0, 8);
    FAILS(DDTC_ERR_TYPE, "predefined", ddtc_type_free(&t));
    PACKS(t, 0, 1);
    OK(ddtc_type_create_f90_complex(6, DDTC_UNDEFINED, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_F90_COMPLEX, 2, 0, 0, 0);
    SAME(x.i, 6, DDTC_UNDEFINED);
    PACKS(t, 0, 1);
    OK(ddtc_type_create_f90_integer(9, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_F90_INTEGER, 1, 0, 0, 0);
    SAME(x.i, 9);
    PACKS(t, 0);
    OK(ddtc_type_get_value_index(DDTC_TYPE_DOUBLE, DDTC_TYPE_INT, &t));
    EQ(t, DDTC_TYPE_DOUBLE_INT);
    OK(ddtc_type_get_value_index(DDTC_TYPE_INT, DDTC_TYPE_INT64_T, &t));
    x = decode(t);
    SHAPE(x, DDTC_COMBINER_VALUE_INDEX, 0, 0, 0, 2);
    EQ(x.d[1], DDTC_TYPE_INT64_T);
    bounds(t, 0, 16, 0, 16);
    FAILS(DDTC_ERR_TYPE, "predefined", ddtc_type_free(&t));
    OK(ddtc_type_get_value_index(DDTC_TYPE_CHAR, DDTC_TYPE_INT, &u));
    EQ(u, DDTC_DATATYPE_NULL);
    OK(ddtc_type_contiguous(2, DDTC_TYPE_INT, &u));
    FAILS(DDTC_ERR_TYPE, "value", ddtc_type_get_value_index(u, DDTC_TYPE_INT, &t));
    OK(ddtc_type_free(&u));
    /* If a child is an unnamed predefined type, decoding returns the same handle and not a new
     * reference. */
    OK(ddtc_type_contiguous(2, t, &u));
    OK(ddtc_type_get_contents(u, 1, 0, 1, x.i, x.a, x.d));
    EQ(x.d[0], t);
    OK(ddtc_type_free(&u));

    OK(ddtc_type_match_size(DDTC_TYPECLASS_REAL, 8, &t));
    EQ(t, DDTC_TYPE_REAL8);
    OK(ddtc_type_match_size(DDTC_TYPECLASS_COMPLEX, 8, &t));
    EQ(t, DDTC_TYPE_COMPLEX8);
    FAILS(DDTC_ERR_ARG, "size = 3", ddtc_type_match_size(DDTC_TYPECLASS_INTEGER, 3, &t));

    OK(ddtc_type_parse("vector(2, 2, 5, int)", &t));
    PACKS(t, 0, 1, 5, 6);
    char text[64];
    ddtc_count n = sizeof text;
    OK(ddtc_type_print(t, text, &n));
    EQ(n, (ddtc_count)strlen(text) + 1);
    OK(ddtc_type_free(&t));
    EQ(t, DDTC_DATATYPE_NULL);
    return 0;
}
