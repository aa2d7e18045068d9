/* Tests that calls with bad arguments return an error code, write nothing, and do not crash. */
#include "interface.h"

static const ytype garbage[] = {T_COUNT, 60, 63, 64, 65, 12345, 0xffffffff, 0x100000000, 0xdeadbeefdeadbeef, UINT64_MAX};

int main(void)
{
    ytype t = 77, u;
    uintptr_t n = 77, m = 77;
    intptr_t a = 77, b = 77;
    int x[8] = {1, 2, 3, 4}, y[8] = {0};
    yrequest request = 77;
    struct iovec list[4];
    OK(yaksa_init(NULL));
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        ytype g = garbage[i];
        FAILS(INTERNAL, yaksa_type_create_contig(2, g, NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_dup(g, NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_vector(2, 1, 2, g, NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_hvector(2, 1, 2, g, NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_indexed(1, LIST(1), LIST(1), g, NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_hindexed(1, LIST(1), LIST(1), g, NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_indexed_block(1, 1, LIST(1), g, NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_hindexed_block(1, 1, LIST(1), g, NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_struct(2, LIST(1, 1), LIST(0, 4), TYPES(T_INT, g), NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_resized(g, 0, 1, NULL, &t));
        FAILS(INTERNAL, yaksa_type_create_subarray(1, LIST(2), LIST(1), LIST(0), ORDER_C, g, NULL, &t));
        FAILS(INTERNAL, yaksa_type_get_size(g, &n));
        FAILS(INTERNAL, yaksa_type_get_extent(g, &a, &b));
        FAILS(INTERNAL, yaksa_type_get_true_extent(g, &a, &b));
        FAILS(INTERNAL, yaksa_type_free(g));
        FAILS(INTERNAL, yaksa_pack(x, 1, g, 0, y, 4, &n, NULL, OP_REPLACE));
        FAILS(INTERNAL, yaksa_unpack(x, 4, y, 1, g, 0, &n, NULL, OP_REPLACE));
        FAILS(INTERNAL, yaksa_ipack(x, 1, g, 0, y, 4, &n, NULL, OP_SUM, &request));
        FAILS(INTERNAL, yaksa_iunpack(x, 4, y, 1, g, 0, &n, NULL, OP_SUM, &request));
        FAILS(INTERNAL, yaksa_pack_stream(x, 1, g, 0, y, 4, &n, NULL, OP_REPLACE, NULL));
        FAILS(INTERNAL, yaksa_unpack_stream(x, 4, y, 1, g, 0, &n, NULL, OP_REPLACE, NULL));
        FAILS(INTERNAL, yaksa_iov_len(1, g, &n));
        FAILS(INTERNAL, yaksa_iov_len_max(1, g, 1, &n, &m));
        FAILS(INTERNAL, yaksa_iov((char *)x, 1, g, 0, list, 4, &n));
        FAILS(INTERNAL, yaksa_flatten_size(g, &n));
        FAILS(INTERNAL, yaksa_flatten(g, y));
    }
    /* The handle of a freed type no longer names a type, and none of the next 1000 new types
     * gets this handle. */
    OK(yaksa_type_create_contig(2, T_INT, NULL, &u));
    OK(yaksa_type_free(u));
    FAILS(INTERNAL, yaksa_type_free(u));
    for (int i = 0; i < 1000; i++) {
        ytype v;
        OK(yaksa_type_create_contig(2 + i, T_INT, NULL, &v));
        EQ(v == u, 0);
        FAILS(INTERNAL, yaksa_type_get_size(u, &n));
        OK(yaksa_type_free(v));
    }
    /* Predefined types cannot be freed. Freeing the null type succeeds and does nothing. */
    FAILS(INTERNAL, yaksa_type_free(T_INT));
    OK(yaksa_type_free(T_NULL));

    FAILS(INTERNAL, yaksa_type_create_contig(-1, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_contig(INTPTR_MAX, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_vector(-1, 1, 1, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_vector(2, -1, 1, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_vector(2, 1, INTPTR_MAX, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_hvector(INTPTR_MAX, INTPTR_MAX, 1, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_hvector(3, 1, INTPTR_MIN, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_indexed(-1, LIST(1), LIST(1), T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_indexed(2, LIST(1, -1), LIST(1, 1), T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_indexed(2, LIST(1, 2), LIST(1, INTPTR_MAX), T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_indexed(2, NULL, LIST(1, 1), T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_indexed(INTPTR_MAX, LIST(1), LIST(1), T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_hindexed(2, LIST(1, 1), NULL, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_hindexed_block(2, -3, LIST(1, 1), T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_hindexed_block(2, 3, LIST(INTPTR_MIN, INTPTR_MAX), T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_struct(2, LIST(1, 1), LIST(0, 0), NULL, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_struct(2, LIST(1, -1), LIST(0, 0), TYPES(T_INT, T_CHAR), NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_resized(T_INT, INTPTR_MAX, 1, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_subarray(-1, LIST(2), LIST(1), LIST(0), ORDER_C, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_subarray(1, LIST(2), LIST(1), LIST(2), ORDER_C, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_subarray(1, LIST(2), LIST(3), LIST(0), ORDER_C, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_subarray(1, LIST(0), LIST(0), LIST(0), ORDER_C, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_subarray(1, LIST(2), LIST(1), LIST(0), 7, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_subarray(2, LIST(INTPTR_MAX, 8), LIST(1, 1), LIST(0, 0), ORDER_C, T_INT, NULL, &t));
    FAILS(INTERNAL, yaksa_type_create_contig(2, T_INT, NULL, NULL));
    EQ(t, 77);

    /* Each of these calls has one bad argument: an offset beyond the end of the packed data, a
     * null pointer, an operation that does not exist, or a count for which the number of packed
     * bytes does not fit in 63 bits. */
    FAILS(INTERNAL, yaksa_pack(x, 1, T_INT, 5, y, 4, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_pack(x, 0, T_INT, 1, y, 4, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_pack(x, 1, T_INT, UINTPTR_MAX, y, 4, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_unpack(x, 4, y, 1, T_INT, 5, &n, NULL, OP_SUM));
    FAILS(INTERNAL, yaksa_pack(x, UINTPTR_MAX, T_INT, 0, y, 4, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_pack(x, (uintptr_t)1 << 61, T_INT, 0, y, 4, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_pack(NULL, 1, T_INT, 0, y, 4, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_pack(x, 1, T_INT, 0, NULL, 4, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_unpack(NULL, 4, y, 1, T_INT, 0, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_pack(x, 1, T_INT, 0, y, 4, NULL, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_ipack(x, 1, T_INT, 0, y, 4, &n, NULL, OP_REPLACE, NULL));
    FAILS(NOT_SUPPORTED, yaksa_pack(x, 1, T_INT, 0, y, 4, &n, NULL, OP_LAST));
    FAILS(NOT_SUPPORTED, yaksa_pack(x, 1, T_INT, 0, y, 4, &n, NULL, UINT64_MAX));
    FAILS(INTERNAL, yaksa_iov_len(UINTPTR_MAX, T_SHORT_INT, &n));
    FAILS(INTERNAL, yaksa_iov((char *)x, 1, T_INT, 0, NULL, 1, &n));
    FAILS(INTERNAL, yaksa_iov((char *)x, 1, T_INT, 0, list, 1, NULL));
    FAILS(INTERNAL, yaksa_iov_len(1, T_INT, NULL));
    FAILS(INTERNAL, yaksa_iov_len_max(1, T_INT, 4, NULL, &m));
    FAILS(INTERNAL, yaksa_iov_len_max(1, T_INT, 4, &n, NULL));
    FAILS(INTERNAL, yaksa_type_get_size(T_INT, NULL));
    FAILS(INTERNAL, yaksa_type_get_extent(T_INT, NULL, &b));
    FAILS(INTERNAL, yaksa_type_get_true_extent(T_INT, &a, NULL));
    EQ(n, 77);
    EQ(m, 77);
    EQ(a, 77);
    EQ(b, 77);
    EQ(request, 77);
    for (int i = 0; i < 8; i++) EQ(y[i], 0);
    /* A packed buffer that is larger than the packed data is not an error, neither for packing
     * nor for unpacking. */
    OK(yaksa_pack(x, 2, T_INT, 4, y, UINTPTR_MAX, &n, NULL, OP_REPLACE));
    EQ(n, 4);
    EQ(y[0], 2);
    OK(yaksa_unpack(x, sizeof x, y, 2, T_INT, 0, &n, NULL, OP_REPLACE));
    EQ(n, 8);
    OK(yaksa_finalize());
    return 0;
}
