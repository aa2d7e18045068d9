/* Tests packing and unpacking with a reduction operation. Each moved element is combined with
 * the element at its destination, according to the type of the elements. */
#include "interface.h"
#include <complex.h>
#include <limits.h>
#include <stdbool.h>

/* Packs and unpacks one element with the operation `op`. If the destination has the value
 * `before` and the element `moved` is moved there, the destination must become `after`, that is,
 * op(moved, before). */
#define ELEMENT(type, number, op, moved, before, after)                                                                \
    do {                                                                                                               \
        type in = (moved), out = (before), want = (after);                                                             \
        uintptr_t n;                                                                                                   \
        OK(yaksa_pack(&in, 1, number, 0, &out, sizeof out, &n, NULL, op));                                             \
        EQ(n, sizeof out);                                                                                             \
        EQ(out == want, 1);                                                                                            \
        out = (before);                                                                                                \
        OK(yaksa_unpack(&in, sizeof in, &out, 1, number, 0, &n, NULL, op));                                            \
        EQ(n, sizeof out);                                                                                             \
        EQ(out == want, 1);                                                                                            \
    } while (0)

static void elements(void)
{
    ELEMENT(int, T_INT, OP_MAX, -3, 2, 2);
    ELEMENT(int, T_INT, OP_MIN, -3, 2, -3);
    ELEMENT(unsigned, T_UNSIGNED, OP_MAX, UINT_MAX, 2, UINT_MAX);
    ELEMENT(unsigned, T_UNSIGNED, OP_MIN, UINT_MAX, 2, 2);
    ELEMENT(unsigned char, T_UINT8, OP_MAX, 200, 100, 200);
    ELEMENT(unsigned char, T_BYTE, OP_MAX, 200, 100, 200);
    ELEMENT(signed char, T_INT8, OP_MAX, -56, 100, 100);
    ELEMENT(unsigned short, T_UNSIGNED_SHORT, OP_MIN, 60000, 3, 3);
    ELEMENT(uint64_t, T_UNSIGNED_LONG, OP_MAX, UINT64_MAX, 3, UINT64_MAX);
    ELEMENT(int64_t, T_LONG_LONG, OP_MAX, -1, 3, 3);
    ELEMENT(size_t, T_SIZE, OP_MAX, SIZE_MAX, 3, SIZE_MAX);
    ELEMENT(int, T_INT, OP_SUM, 40, 2, 42);
    ELEMENT(int, T_INT, OP_PROD, 6, 7, 42);
    ELEMENT(int, T_INT, OP_LAND, 4, 2, 1);
    ELEMENT(int, T_INT, OP_BAND, 6, 3, 2);
    ELEMENT(int, T_INT, OP_LOR, 0, 2, 1);
    ELEMENT(int, T_INT, OP_BOR, 4, 3, 7);
    ELEMENT(int, T_INT, OP_LXOR, 4, 2, 0);
    ELEMENT(int, T_INT, OP_BXOR, 6, 3, 5);
    ELEMENT(unsigned char, T_BYTE, OP_BXOR, 0xf0, 0xff, 0x0f);
    ELEMENT(bool, T_BOOL, OP_LXOR, true, false, true);
    ELEMENT(float, T_FLOAT, OP_SUM, 1.5f, 2.25f, 3.75f);
    ELEMENT(double, T_DOUBLE, OP_MAX, -1.5, -2.25, -1.5);
    ELEMENT(long double, T_LONG_DOUBLE, OP_PROD, 1.5L, 3.0L, 4.5L);
    ELEMENT(float complex, T_C_COMPLEX, OP_PROD, 1 + 2 * I, 3 + 4 * I, -5 + 10 * I);
    ELEMENT(double complex, T_C_DOUBLE_COMPLEX, OP_SUM, 1 + 2 * I, 3 + 4 * I, 4 + 6 * I);
    ELEMENT(long double complex, T_C_LONG_DOUBLE_COMPLEX, OP_PROD, 1 + 2 * I, 3 + 4 * I, -5 + 10 * I);
    ELEMENT(char, T_CHAR, OP_REPLACE, 'a', 'b', 'a');
    char c = 'a', d = 'b';
    uintptr_t n = 9;
    FAILS(NOT_SUPPORTED, yaksa_pack(&c, 1, T_CHAR, 0, &d, 1, &n, NULL, OP_SUM));
    float f = 1, g = 2;
    FAILS(NOT_SUPPORTED, yaksa_unpack(&f, 4, &g, 1, T_FLOAT, 0, &n, NULL, OP_BAND));
    FAILS(NOT_SUPPORTED, yaksa_unpack(&f, 4, &g, 1, T_C_COMPLEX, 0, &n, NULL, OP_LAST));
    EQ(d, 'b');
    EQ(g, 2);
    EQ(n, 9);
}

static void layouts(void)
{
    ytype t, u;
    int user[32], stream[32];
    uintptr_t n;
    yrequest request;
    /* Unpacks and packs a strided type with a reduction. Both calls move only a part of the
     * packed data. */
    OK(yaksa_type_create_vector(4, 1, 3, T_INT, NULL, &t));
    for (int i = 0; i < 32; i++) user[i] = i, stream[i] = 100 * i;
    OK(yaksa_iunpack(stream + 1, 20, user, 2, t, 4, &n, NULL, OP_SUM, &request));
    EQ(n, 20);
    for (int i = 0; i < 32; i++) {
        int k = i < 20 && i % 10 % 3 == 0 ? i / 10 * 4 + i % 10 / 3 : -1;
        EQ(user[i], i + (k >= 1 && k < 6 ? 100 * k : 0));
    }
    for (int i = 0; i < 32; i++) user[i] = i, stream[i] = 1000;
    OK(yaksa_ipack(user, 2, t, 8, stream, 23, &n, NULL, OP_MIN, &request));
    EQ(n, 20);
    static const int want[] = {6, 9, 10, 13, 16, 1000};
    for (int i = 0; i < 6; i++) EQ(stream[i], want[i]);
    /* Packs a contiguous type with a reduction. The call begins at the second element of the
     * packed data. */
    OK(yaksa_type_create_hindexed_block(1, 5, LIST(8), T_INT, NULL, &u));
    for (int i = 0; i < 32; i++) stream[i] = 1;
    OK(yaksa_pack(user, 2, u, 4, stream, 24, &n, NULL, OP_SUM));
    EQ(n, 24);
    for (int i = 0; i < 7; i++) EQ(stream[i], i < 6 ? i + 4 : 1);
    OK(yaksa_type_free(u));
    OK(yaksa_type_free(t));
    /* A reduction combines the two parts of a pair separately. In a struct whose members have
     * different types, each element is combined according to its own type. */
    struct { short s; int i; } pair[3] = {{1, 2}, {3, 4}, {5, 6}};
    unsigned char packed[18];
    OK(yaksa_pack(pair, 3, T_SHORT_INT, 0, packed, 18, &n, NULL, OP_REPLACE));
    OK(yaksa_unpack(packed, 18, pair, 3, T_SHORT_INT, 0, &n, NULL, OP_SUM));
    for (int i = 0; i < 3; i++) {
        EQ(pair[i].s, 4 * i + 2);
        EQ(pair[i].i, 4 * i + 4);
    }
    OK(yaksa_pack(pair, 3, T_SHORT_INT, 0, packed, 18, &n, NULL, OP_SUM));
    OK(yaksa_unpack(packed, 18, pair, 3, T_SHORT_INT, 0, &n, NULL, OP_REPLACE));
    for (int i = 0; i < 3; i++) {
        EQ(pair[i].s, 6 * i + 3);
        EQ(pair[i].i, 6 * i + 6);
    }
    struct { double d; unsigned char c; } mixed[2] = {{1.5, 200}, {2.5, 100}};
    OK(yaksa_type_create_struct(2, LIST(1, 1), LIST(0, 8), TYPES(T_DOUBLE, T_UINT8), NULL, &t));
    OK(yaksa_pack(mixed, 2, t, 0, packed, 18, &n, NULL, OP_REPLACE));
    mixed[0].c = 1, mixed[1].d = 9;
    OK(yaksa_pack(mixed, 2, t, 0, packed, 18, &n, NULL, OP_MAX));
    OK(yaksa_unpack(packed, 18, mixed, 2, t, 0, &n, NULL, OP_REPLACE));
    EQ(mixed[0].c, 200);
    EQ(mixed[1].d, 9);
    /* A call with a reduction fails if it begins inside an element. */
    FAILS(INTERNAL, yaksa_unpack(packed, 9, mixed, 2, t, 3, &n, NULL, OP_SUM));
    OK(yaksa_type_free(t));
}

/* Packs with a reduction so often that the library compiles code for it. The packed data are
 * longer than 16 KiB, the size of the chunks in which the library packs with a reduction. */
static void much(void)
{
    enum { N = 9000 };
    static int user[2 * N], stream[N];
    ytype t;
    uintptr_t n;
    OK(yaksa_type_create_vector(N, 1, 2, T_INT, NULL, &t));
    for (int i = 0; i < 2 * N; i++) user[i] = i;
    for (int round = 1; round <= 20; round++) {
        OK(yaksa_pack(user, 1, t, 0, stream, sizeof stream, &n, NULL, OP_SUM));
        EQ(n, sizeof stream);
        for (int i = 0; i < N; i++) EQ(stream[i], 2 * i * round);
    }
    OK(yaksa_unpack(stream, sizeof stream, user, 1, t, 0, &n, NULL, OP_SUM));
    for (int i = 0; i < 2 * N; i++) EQ(user[i], i % 2 ? i : 21 * i);
    OK(yaksa_type_free(t));
}

int main(void)
{
    OK(yaksa_init(NULL));
    elements();
    layouts();
    much();
    OK(yaksa_finalize());
    return 0;
}
