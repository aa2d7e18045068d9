/* Tests all constructors of types. All expected results were determined by hand: the bounds, the
 * numbers of contiguous pieces, and the packed data. */
#include "interface.h"

static int ints[64];

/* Packs one instance of `t` from the address `ints + at`, and compares the packed data with the
 * `n` entries of `ints` whose indexes are in `entries`. Then unpacks the data to another array, and
 * checks that only the entries with these indexes are written. */
static void packs(ytype t, int at, int n, const intptr_t *entries)
{
    int packed[64], expected[64];
    uintptr_t actual;
    memset(packed, -1, sizeof packed);
    OK(yaksa_pack(ints + at, 1, t, 0, packed, sizeof packed, &actual, NULL, OP_REPLACE));
    EQ(actual, 4 * n);
    for (int i = 0; i < n; i++) expected[i] = (int)entries[i];
    BYTES(packed, expected, 4 * n);
    EQ(packed[n], -1);
    int back[64];
    memset(back, -1, sizeof back);
    OK(yaksa_unpack(packed, actual, back + at, 1, t, 0, &actual, NULL, OP_REPLACE));
    EQ(actual, 4 * n);
    for (int i = 0; i < 64; i++) {
        int mapped = 0;
        for (int j = 0; j < n; j++) mapped |= entries[j] == i;
        EQ(back[i], mapped ? i : -1);
    }
}

static void predefined(void)
{
    static const struct { ytype t; int size, extent; } known[] = {
        {T_BOOL, 1, 1}, {T_CHAR, 1, 1}, {T_UNSIGNED_CHAR, 1, 1}, {T_WCHAR, sizeof(wchar_t), sizeof(wchar_t)}, {T_INT8, 1, 1},
        {T_UINT64, 8, 8}, {T_INT, 4, 4}, {T_UNSIGNED_SHORT, 2, 2}, {T_LONG, sizeof(long), sizeof(long)},
        {T_INT_FAST16, sizeof(int_fast16_t), sizeof(int_fast16_t)}, {T_UINT_FAST32, sizeof(uint_fast32_t), sizeof(uint_fast32_t)},
        {T_INT_LEAST16, 2, 2}, {T_BYTE, 1, 1}, {T_INTMAX, 8, 8}, {T_SIZE, 8, 8}, {T_PTRDIFF, 8, 8}, {T_FLOAT, 4, 4},
        {T_DOUBLE, 8, 8}, {T_LONG_DOUBLE, sizeof(long double), sizeof(long double)}, {T_C_COMPLEX, 8, 8},
        {T_C_DOUBLE_COMPLEX, 16, 16}, {T_C_LONG_DOUBLE_COMPLEX, 2 * sizeof(long double), 2 * sizeof(long double)},
        {T_FLOAT_INT, 8, 8}, {T_2INT, 8, 8},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        bounds(known[i].t, known[i].size, 0, known[i].extent, 0, known[i].extent);
        EQ(pieces(1, known[i].t), 1);
        EQ(pieces(7, known[i].t), 1);
    }
    /* Pair types with a gap after the second part, or between the two parts. */
    bounds(T_DOUBLE_INT, 12, 0, 16, 0, 12);
    EQ(pieces(3, T_DOUBLE_INT), 3);
    bounds(T_LONG_DOUBLE_INT, sizeof(long double) + 4, 0, 2 * sizeof(long double), 0, sizeof(long double) + 4);
    bounds(T_SHORT_INT, 6, 0, 8, 0, 8);
    EQ(pieces(3, T_SHORT_INT), 6);
    bounds(T_NULL, 0, 0, 0, 0, 0);
    EQ(pieces(5, T_NULL), 1);
}

static void simple(void)
{
    ytype t, u;
    OK(yaksa_type_create_contig(3, T_INT, NULL, &t));
    bounds(t, 12, 0, 12, 0, 12);
    EQ(pieces(9, t), 1);
    packs(t, 5, 3, LIST(5, 6, 7));
    OK(yaksa_type_create_dup(t, NULL, &u));
    OK(yaksa_type_free(t));
    bounds(u, 12, 0, 12, 0, 12);
    packs(u, 0, 3, LIST(0, 1, 2));
    OK(yaksa_type_free(u));

    OK(yaksa_type_create_vector(3, 2, 4, T_INT, NULL, &t));
    bounds(t, 24, 0, 40, 0, 40);
    EQ(pieces(1, t), 3);
    EQ(pieces(2, t), 6);
    packs(t, 1, 6, LIST(1, 2, 5, 6, 9, 10));
    /* A type of two copies of the vector `t`. The second copy begins at the upper bound of the
     * first. */
    OK(yaksa_type_create_contig(2, t, NULL, &u));
    bounds(u, 48, 0, 80, 0, 80);
    EQ(pieces(1, u), 6);
    packs(u, 0, 12, LIST(0, 1, 4, 5, 8, 9, 10, 11, 14, 15, 18, 19));
    OK(yaksa_type_free(u));
    OK(yaksa_type_free(t));

    OK(yaksa_type_create_vector(3, 2, 2, T_INT, NULL, &t));
    EQ(pieces(4, t), 1);
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_vector(3, 1, -2, T_INT, NULL, &t));
    bounds(t, 12, -16, 20, -16, 20);
    packs(t, 6, 3, LIST(6, 4, 2));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_hvector(2, 2, 12, T_INT, NULL, &t));
    bounds(t, 16, 0, 20, 0, 20);
    packs(t, 0, 4, LIST(0, 1, 3, 4));
    OK(yaksa_type_free(t));
    /* The stride is the length of a block, but negative. The blocks touch, but their addresses
     * descend in the order of the packed data, so each block is a contiguous piece of its own. */
    OK(yaksa_type_create_hvector(2, 1, -4, T_INT, NULL, &t));
    EQ(pieces(2, t), 4);
    packs(t, 3, 2, LIST(3, 2));
    OK(yaksa_type_free(t));
}

static void lists(void)
{
    ytype t;
    OK(yaksa_type_create_indexed_block(3, 2, LIST(4, 0, 9), T_INT, NULL, &t));
    bounds(t, 24, 0, 44, 0, 44);
    EQ(pieces(1, t), 3);
    packs(t, 0, 6, LIST(4, 5, 0, 1, 9, 10));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_hindexed_block(2, 1, LIST(8, 20), T_INT, NULL, &t));
    bounds(t, 8, 8, 16, 8, 16);
    packs(t, 0, 2, LIST(2, 5));
    OK(yaksa_type_free(t));
    /* Two types: one has blocks at equal distances, as a vector has, and the other has blocks
     * that directly follow each other in memory. */
    OK(yaksa_type_create_indexed_block(3, 1, LIST(0, 3, 6), T_INT, NULL, &t));
    packs(t, 2, 3, LIST(2, 5, 8));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_indexed(3, LIST(1, 2, 3), LIST(2, 3, 5), T_INT, NULL, &t));
    bounds(t, 24, 8, 24, 8, 24);
    EQ(pieces(2, t), 1);
    packs(t, 1, 6, LIST(3, 4, 5, 6, 7, 8));
    OK(yaksa_type_free(t));
    /* Blocks of length 0 do not affect the bounds, whatever their displacements are. */
    OK(yaksa_type_create_indexed(4, LIST(0, 2, 0, 1), LIST(-900, 3, 900, 1), T_INT, NULL, &t));
    bounds(t, 12, 4, 16, 4, 16);
    EQ(pieces(1, t), 2);
    packs(t, 0, 3, LIST(3, 4, 1));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_hindexed(2, LIST(1, 2), LIST(12, 0), T_INT, NULL, &t));
    bounds(t, 12, 0, 16, 0, 16);
    packs(t, 4, 3, LIST(7, 4, 5));
    OK(yaksa_type_free(t));
}

static void structs(void)
{
    ytype t, u;
    struct { char c; int i; double d[2]; } s[2];
    char packed[64];
    uintptr_t actual;
    for (size_t i = 0; i < sizeof s; i++) ((unsigned char *)s)[i] = (unsigned char)i;
    OK(yaksa_type_create_struct(3, LIST(1, 1, 2), LIST(0, 4, 8), TYPES(T_CHAR, T_INT, T_DOUBLE), NULL, &t));
    bounds(t, 21, 0, 24, 0, 24);
    EQ(pieces(1, t), 3);
    OK(yaksa_pack(s, 2, t, 0, packed, sizeof packed, &actual, NULL, OP_REPLACE));
    EQ(actual, 42);
    EQ(packed[0], 0);
    BYTES(packed + 1, (char *)s + 4, 20);
    EQ(packed[21], 24);
    BYTES(packed + 22, (char *)s + 28, 20);
    OK(yaksa_type_free(t));
    /* The extent of a struct is rounded up to the alignment of its members if the members do not
     * all have the same type. `int` and `unsigned` count as one type here. */
    OK(yaksa_type_create_struct(2, LIST(1, 1), LIST(0, 8), TYPES(T_DOUBLE, T_CHAR), NULL, &t));
    bounds(t, 9, 0, 16, 0, 9);
    EQ(pieces(2, t), 2);
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_struct(2, LIST(1, 1), LIST(0, 5), TYPES(T_INT, T_INT), NULL, &t));
    bounds(t, 8, 0, 9, 0, 9);
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_struct(2, LIST(1, 1), LIST(0, 5), TYPES(T_INT, T_UNSIGNED), NULL, &t));
    bounds(t, 8, 0, 9, 0, 9);
    OK(yaksa_type_free(t));
    /* Members with block length 0 affect neither the bounds nor the alignment of a struct. */
    OK(yaksa_type_create_struct(3, LIST(0, 1, 1), LIST(-99, 4, 0), TYPES(T_DOUBLE, T_CHAR, T_INT), NULL, &t));
    bounds(t, 5, 0, 8, 0, 5);
    OK(yaksa_type_free(t));
    /* The bounds of a struct are the minimum and the maximum of the bounds of all members, resized
     * or not. The old MPI types `MPI_LB` and `MPI_UB` overrode the bounds of all other members; a
     * resized member does not. */
    OK(yaksa_type_create_resized(T_INT, -4, 6, NULL, &u));
    bounds(u, 4, -4, 6, 0, 4);
    OK(yaksa_type_create_struct(2, LIST(1, 1), LIST(0, 8), TYPES(u, T_CHAR), NULL, &t));
    bounds(t, 5, -4, 16, 0, 9);
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_contig(3, u, NULL, &t));
    bounds(t, 12, -4, 18, 0, 16);
    EQ(pieces(1, t), 3);
    OK(yaksa_type_free(t));
    OK(yaksa_type_free(u));
}

static void resized(void)
{
    ytype t, u;
    OK(yaksa_type_create_resized(T_INT, 0, 12, NULL, &t));
    bounds(t, 4, 0, 12, 0, 4);
    EQ(pieces(1, t), 1);
    EQ(pieces(2, t), 2);
    OK(yaksa_type_create_vector(2, 2, 3, t, NULL, &u));
    bounds(u, 16, 0, 60, 0, 52);
    EQ(pieces(1, u), 4);
    packs(u, 0, 4, LIST(0, 3, 9, 12));
    OK(yaksa_type_free(u));
    /* A second resize gives the type its original bounds again. */
    OK(yaksa_type_create_resized(t, 0, 4, NULL, &u));
    EQ(pieces(5, u), 1);
    OK(yaksa_type_free(u));
    OK(yaksa_type_create_resized(T_INT, 0, 4, NULL, &u));
    bounds(u, 4, 0, 4, 0, 4);
    OK(yaksa_type_free(u));
    OK(yaksa_type_create_resized(T_INT, 8, -8, NULL, &u));
    bounds(u, 4, 8, -8, 0, 4);
    OK(yaksa_type_create_contig(3, u, NULL, &t));
    bounds(t, 12, -8, 8, -16, 20);
    packs(t, 9, 3, LIST(9, 7, 5));
}

static void arrays(void)
{
    ytype t, u;
    OK(yaksa_type_create_subarray(2, LIST(4, 5), LIST(2, 3), LIST(1, 1), ORDER_C, T_INT, NULL, &t));
    bounds(t, 24, 0, 80, 24, 32);
    EQ(pieces(1, t), 2);
    packs(t, 0, 6, LIST(6, 7, 8, 11, 12, 13));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_subarray(2, LIST(4, 5), LIST(2, 3), LIST(1, 1), ORDER_FORTRAN, T_INT, NULL, &t));
    bounds(t, 24, 0, 80, 20, 40);
    packs(t, 0, 6, LIST(5, 6, 9, 10, 13, 14));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_subarray(3, LIST(2, 3, 4), LIST(2, 1, 2), LIST(0, 2, 1), ORDER_C, T_INT, NULL, &t));
    bounds(t, 16, 0, 96, 36, 56);
    packs(t, 0, 4, LIST(9, 10, 21, 22));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_subarray(1, LIST(10), LIST(3), LIST(4), ORDER_C, T_INT, NULL, &t));
    bounds(t, 12, 0, 40, 16, 12);
    packs(t, 0, 3, LIST(4, 5, 6));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_subarray(1, LIST(10), LIST(1), LIST(0), ORDER_C, T_INT, NULL, &t));
    bounds(t, 4, 0, 40, 0, 4);
    packs(t, 0, 1, LIST(0));
    OK(yaksa_type_free(t));
    /* Three subarrays: the whole array, two whole rows, and an empty one. */
    OK(yaksa_type_create_subarray(2, LIST(3, 4), LIST(3, 4), LIST(0, 0), ORDER_C, T_INT, NULL, &t));
    EQ(pieces(3, t), 1);
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_subarray(2, LIST(5, 4), LIST(2, 4), LIST(1, 0), ORDER_C, T_INT, NULL, &t));
    EQ(pieces(3, t), 3);
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_subarray(2, LIST(5, 4), LIST(2, 0), LIST(1, 0), ORDER_C, T_INT, NULL, &t));
    bounds(t, 0, 0, 80, 0, 0);
    EQ(pieces(3, t), 1);
    OK(yaksa_type_free(t));
    /* A subarray of an array whose elements are vectors with a gap. */
    OK(yaksa_type_create_vector(2, 1, 2, T_INT, NULL, &u));
    OK(yaksa_type_create_subarray(1, LIST(4), LIST(2), LIST(1), ORDER_C, u, NULL, &t));
    bounds(t, 16, 0, 48, 12, 24);
    packs(t, 0, 4, LIST(3, 5, 6, 8));
}

static void nothing(void)
{
    ytype t = 1, u;
    OK(yaksa_type_create_contig(0, T_INT, NULL, &t));
    EQ(t, T_NULL);
    t = 1;
    OK(yaksa_type_create_vector(3, 0, 5, T_INT, NULL, &t));
    EQ(t, T_NULL);
    t = 1;
    OK(yaksa_type_create_hvector(0, 3, 5, T_INT, NULL, &t));
    EQ(t, T_NULL);
    t = 1;
    OK(yaksa_type_create_indexed(2, LIST(0, 0), LIST(1, 2), T_INT, NULL, &t));
    EQ(t, T_NULL);
    t = 1;
    OK(yaksa_type_create_hindexed(0, NULL, NULL, T_INT, NULL, &t));
    EQ(t, T_NULL);
    t = 1;
    OK(yaksa_type_create_indexed_block(2, 0, LIST(1, 2), T_INT, NULL, &t));
    EQ(t, T_NULL);
    t = 1;
    OK(yaksa_type_create_hindexed_block(0, 7, NULL, T_INT, NULL, &t));
    EQ(t, T_NULL);
    t = 1;
    OK(yaksa_type_create_struct(2, LIST(0, 3), LIST(0, 0), TYPES(T_INT, T_NULL), NULL, &t));
    EQ(t, T_NULL);
    t = 1;
    OK(yaksa_type_create_subarray(0, NULL, NULL, NULL, ORDER_C, T_INT, NULL, &t));
    EQ(t, T_NULL);
    t = 1;
    OK(yaksa_type_create_dup(T_NULL, NULL, &t));
    EQ(t, T_NULL);
    OK(yaksa_type_free(t));
    /* A resized null type has bounds but no data. As a member of a struct it affects the bounds
     * of the struct. But a contiguous type of several copies of it is the null type, whose bounds
     * are 0. */
    OK(yaksa_type_create_resized(T_NULL, -8, 24, NULL, &t));
    bounds(t, 0, -8, 24, 0, 0);
    OK(yaksa_type_create_struct(2, LIST(1, 1), LIST(0, 0), TYPES(t, T_INT), NULL, &u));
    bounds(u, 4, -8, 24, 0, 4);
    OK(yaksa_type_create_contig(3, t, NULL, &u));
    EQ(u, T_NULL);
}

int main(void)
{
    for (int i = 0; i < 64; i++) ints[i] = i;
    OK(yaksa_init(NULL));
    predefined();
    simple();
    lists();
    structs();
    resized();
    arrays();
    nothing();
    OK(yaksa_finalize());
    return 0;
}
