/* Tests of decoding: references, chains of duplicates, empty types, short arrays, 64-bit values and
 * large contents. */
#include <ddtc.h>
#include <limits.h>
#include "check.h"

int main(void)
{
    ddtc_datatype v, s, d[4], e;
    int i[8], ni, na, nd, combiner, n;
    ddtc_aint a[8];
    ddtc_count c[8], size;

    /* Decoding returns a child that is a derived type as a new reference, and a child that is a
     * named type as the same handle. */
    OK(ddtc_type_vector(2, 1, 3, DDTC_TYPE_DOUBLE, &v));
    ddtc_datatype types[3] = {v, DDTC_TYPE_INT, v};
    OK(ddtc_type_create_struct(3, (int[]){1, 1, 1}, (ddtc_aint[]){0, 64, 80}, types, &s));
    OK(ddtc_type_free(&v));
    OK(ddtc_type_get_contents(s, 8, 8, 3, i, a, d));
    EQ(d[1], DDTC_TYPE_INT);
    TRUE(d[0] != d[2] && d[0] != types[0]);
    for (int k = 0; k < 3; k += 2) {
        OK(ddtc_type_get_envelope(d[k], &ni, &na, &nd, &combiner));
        EQ(combiner, DDTC_COMBINER_VECTOR);
        OK(ddtc_type_free(&d[k]));
        EQ(d[k], DDTC_DATATYPE_NULL);
    }
    FAILS(DDTC_ERR_TYPE, "predefined", ddtc_type_free(&d[1]));

    /* The lengths of the arrays may be larger than needed. A length that is too small is an error,
     * and nothing is written. */
    i[0] = -7;
    FAILS(DDTC_ERR_ARG, "max_integers = 3", ddtc_type_get_contents(s, 3, 8, 3, i, a, d));
    FAILS(DDTC_ERR_ARG, "max_addresses = 2", ddtc_type_get_contents(s, 8, 2, 3, i, a, d));
    FAILS(DDTC_ERR_ARG, "max_datatypes = 2", ddtc_type_get_contents(s, 8, 8, 2, i, a, d));
    FAILS(DDTC_ERR_ARG, "max_datatypes = -1", ddtc_type_get_contents(s, 8, 8, -1, i, a, d));
    FAILS(DDTC_ERR_ARG, "array_of_integers", ddtc_type_get_contents(s, 8, 8, 3, NULL, a, d));
    EQ(i[0], -7);
    OK(ddtc_type_free(&s));

    /* Named types have no contents. */
    OK(ddtc_type_get_envelope(DDTC_TYPE_INT, &ni, &na, &nd, &combiner));
    TRUE(ni == 0 && na == 0 && nd == 0 && combiner == DDTC_COMBINER_NAMED);
    FAILS(DDTC_ERR_TYPE, "named", ddtc_type_get_contents(DDTC_TYPE_INT, 8, 8, 3, i, a, d));
    FAILS(DDTC_ERR_TYPE, "named", ddtc_type_get_contents_c(DDTC_TYPE_INT, 8, 8, 8, 3, i, a, c, d));

    /* A duplicate of a predefined type is committed, even if the predefined type was never used
     * before. */
    ddtc_datatype unused[] = {DDTC_TYPE_REAL2, DDTC_TYPE_LONG_DOUBLE_INT, DDTC_TYPE_COMPLEX32}, again;
    for (int i = 0; i < LENGTH(unused); i++) {
        char from[64] = {1, 2, 3}, to[64] = {0};
        int position = 0;
        OK(ddtc_type_dup(unused[i], &v));
        OK(ddtc_type_dup(v, &again));
        OK(ddtc_pack(from, 1, v, to, sizeof to, &position));
        position = 0;
        OK(ddtc_pack(from, 1, again, to, sizeof to, &position));
        TRUE(position > 0 && to[0] == 1 && to[1] == 2);
        OK(ddtc_type_free(&v));
        OK(ddtc_type_free(&again));
    }

    /* A duplicate of a predefined type is a derived type. Decoding a chain of duplicates returns
     * every duplicate in the chain. */
    OK(ddtc_type_dup(DDTC_TYPE_INT, &v));
    OK(ddtc_type_dup(v, &s));
    OK(ddtc_type_get_contents(s, 0, 0, 1, NULL, NULL, d));
    OK(ddtc_type_get_contents(d[0], 0, 0, 1, NULL, NULL, d + 1));
    EQ(d[1], DDTC_TYPE_INT);
    OK(ddtc_type_free(&d[0]));
    OK(ddtc_type_free(&v));
    OK(ddtc_type_free(&s));

    /* Types without data keep their combiner. */
    OK(ddtc_type_create_struct(0, NULL, NULL, NULL, &e));
    OK(ddtc_type_get_envelope(e, &ni, &na, &nd, &combiner));
    TRUE(ni == 1 && na == 0 && nd == 0 && combiner == DDTC_COMBINER_STRUCT);
    OK(ddtc_type_get_contents(e, 1, 0, 0, i, NULL, NULL));
    EQ(i[0], 0);
    OK(ddtc_type_free(&e));
    OK(ddtc_type_indexed(0, NULL, NULL, DDTC_TYPE_INT, &e));
    OK(ddtc_type_get_envelope(e, &ni, &na, &nd, &combiner));
    TRUE(ni == 1 && nd == 1 && combiner == DDTC_COMBINER_INDEXED);
    OK(ddtc_type_commit(&e));
    n = 0;
    OK(ddtc_pack(NULL, 17, e, NULL, 0, &n));
    OK(ddtc_type_free(&e));

    /* If the result for a type with large counts does not fit in an int, it is DDTC_UNDEFINED. */
    OK(ddtc_type_contiguous_c((ddtc_count)1 << 40, DDTC_TYPE_INT, &v));
    OK(ddtc_type_size(v, &n));
    EQ(n, DDTC_UNDEFINED);
    OK(ddtc_type_size_c(v, &size));
    EQ(size, (ddtc_count)1 << 42);
    OK(ddtc_pack_size(1, v, &n));
    EQ(n, DDTC_UNDEFINED);
    OK(ddtc_get_elements(v, (ddtc_count)1 << 40, &n));
    EQ(n, DDTC_UNDEFINED);
    OK(ddtc_get_elements_x(v, (ddtc_count)1 << 40, &size));
    EQ(size, (ddtc_count)1 << 38);
    OK(ddtc_type_free(&v));
    /* The text notation does not say whether a type was built by a large-count constructor. If a
     * count does not fit in an int, the parsed type counts as built by a large-count constructor.
     */
    OK(ddtc_type_parse("contiguous(4294967296, int)", &v));
    FAILS(DDTC_ERR_TYPE, "large-count", ddtc_type_get_contents(v, 1, 0, 1, i, a, d));
    OK(ddtc_type_free(&v));

    /* Tests the numbers of elements and instances in received bytes. */
    OK(ddtc_type_create_struct(2, (int[]){1, 3}, (ddtc_aint[]){0, 8},
                               (ddtc_datatype[]){DDTC_TYPE_DOUBLE, DDTC_TYPE_INT}, &s));
    OK(ddtc_get_elements(s, 20 + 8 + 4, &n));
    EQ(n, 6);
    OK(ddtc_get_elements(s, 9, &n));
    EQ(n, DDTC_UNDEFINED);
    OK(ddtc_get_count(s, 60, &n));
    EQ(n, 3);
    OK(ddtc_get_count(s, 61, &n));
    EQ(n, DDTC_UNDEFINED);
    FAILS(DDTC_ERR_COUNT, "bytes = -1", ddtc_get_elements(s, -1, &n));
    OK(ddtc_type_free(&s));

    /* Decodes a type whose contents have 100000 blocks. */
    enum { BLOCKS = 100000 };
    int *lengths = malloc(BLOCKS * sizeof(int)), *ints = malloc((BLOCKS + 1) * sizeof(int));
    ddtc_aint *places = malloc(BLOCKS * sizeof(ddtc_aint)), *addresses = malloc(BLOCKS * sizeof(ddtc_aint));
    for (int k = 0; k < BLOCKS; k++) {
        lengths[k] = 1 + k % 5;
        places[k] = 32 * (ddtc_aint)k;
    }
    OK(ddtc_type_create_hindexed(BLOCKS, lengths, places, DDTC_TYPE_INT, &v));
    OK(ddtc_type_get_contents(v, BLOCKS + 1, BLOCKS, 1, ints, addresses, d));
    EQ(ints[0], BLOCKS);
    BYTES(ints + 1, lengths, BLOCKS * sizeof(int));
    BYTES(addresses, places, BLOCKS * sizeof(ddtc_aint));

    /* Reads sections of the list of 100000 blocks, which the window accessors of 1996 call windows.
     * A section may begin at any block. ddtc_type_contents must write nothing after the entries of
     * the section. */
    OK(ddtc_type_envelope(v, &n, &combiner));
    TRUE(n == BLOCKS && combiner == DDTC_HINDEXED);
    for (int start = 0; start < BLOCKS; start += 33333) {
        int l[4];
        ddtc_aint p[4], stride = -5;
        ddtc_datatype w[4] = {0};
        OK(ddtc_type_contents(v, start, 3, l, &stride, p, w));
        int filled = start + 3 <= BLOCKS ? 3 : BLOCKS - start;
        BYTES(l, lengths + start, filled * sizeof(int));
        BYTES(p, places + start, filled * sizeof(ddtc_aint));
        TRUE(w[0] == DDTC_TYPE_INT && w[1] == 0 && stride == -5);
    }
    OK(ddtc_type_free(&v));
    free(lengths), free(ints), free(places), free(addresses);
    return 0;
}
