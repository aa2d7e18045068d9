/* Types as bytes: what comes back is the same type, whatever was freed meanwhile, and what is no form is refused. */
#include "interface.h"

static ytype again(ytype t)
{
    uintptr_t n;
    ytype u = 1;
    OK(yaksa_flatten_size(t, &n));
    char *form = malloc(n + 2);
    form[0] = form[n + 1] = 0x5a;
    /* Anywhere in memory. */
    OK(yaksa_flatten(t, form + 1));
    EQ(form[0], 0x5a);
    EQ(form[n + 1], 0x5a);
    OK(yaksa_unflatten(&u, form + 1));
    for (uintptr_t at = 0; at < n; at += 1 + n / 64) {
        /* The length is believed: no other length is tried here. */
        if (at >= 8 && at < 16) continue;
        ytype none = 77;
        form[1 + at] ^= 1;
        /* Bytes 4 to 7 are a version, and this one reads its own alone. */
        FAILS(at >= 4 && at < 8 ? NOT_SUPPORTED : INTERNAL, yaksa_unflatten(&none, form + 1));
        EQ(none, 77);
        form[1 + at] ^= 1;
    }
    free(form);
    return u;
}

int main(void)
{
    ytype t, u, v;
    uintptr_t n, m;
    int ints[64], packed[2][64];
    for (int i = 0; i < 64; i++) ints[i] = i;
    OK(yaksa_init(NULL));
    OK(yaksa_type_create_resized(T_INT, -4, 12, NULL, &t));
    OK(yaksa_type_create_struct(3, LIST(2, 1, 0), LIST(8, 0, 0), TYPES(t, T_SHORT_INT, T_DOUBLE), NULL, &u));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_subarray(2, LIST(3, 3), LIST(2, 1), LIST(0, 1), ORDER_C, u, NULL, &v));
    OK(yaksa_type_free(u));
    u = again(v);
    OK(yaksa_type_get_size(v, &n));
    OK(yaksa_type_get_size(u, &m));
    EQ(n, m);
    intptr_t lb, extent, lb2, extent2;
    OK(yaksa_type_get_extent(v, &lb, &extent));
    OK(yaksa_type_get_extent(u, &lb2, &extent2));
    EQ(lb, lb2);
    EQ(extent, extent2);
    OK(yaksa_type_get_true_extent(v, &lb, &extent));
    OK(yaksa_type_get_true_extent(u, &lb2, &extent2));
    EQ(lb, lb2);
    EQ(extent, extent2);
    EQ(pieces(1, v), pieces(1, u));
    EQ(pieces(2, v), pieces(2, u));
    memset(packed, 0, sizeof packed);
    OK(yaksa_pack(ints, 1, v, 0, packed[0], sizeof packed[0], &n, NULL, OP_REPLACE));
    OK(yaksa_type_free(v));
    OK(yaksa_pack(ints, 1, u, 0, packed[1], sizeof packed[1], &m, NULL, OP_REPLACE));
    EQ(n, 28);
    EQ(m, n);
    BYTES(packed[0], packed[1], n);
    OK(yaksa_type_free(u));

    u = again(T_DOUBLE);
    bounds(u, 8, 0, 8, 0, 8);
    OK(yaksa_type_free(u));
    u = again(T_LONG_DOUBLE_INT);
    EQ(pieces(2, u), 2);
    OK(yaksa_type_free(u));
    EQ(again(T_NULL), T_NULL);

    ytype none = 77;
    FAILS(INTERNAL, yaksa_unflatten(&none, "bytes that are none of ours, whatever they mean"));
    FAILS(INTERNAL, yaksa_unflatten(&none, NULL));
    FAILS(INTERNAL, yaksa_unflatten(NULL, "ddtw"));
    FAILS(INTERNAL, yaksa_flatten(T_INT, NULL));
    FAILS(INTERNAL, yaksa_flatten_size(T_INT, NULL));
    FAILS(INTERNAL, yaksa_flatten_size(12345, &n));
    EQ(none, 77);
    OK(yaksa_finalize());
    return 0;
}
