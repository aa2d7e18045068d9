/* Tests all functions for packing and unpacking. Calls begin at any offset of the packed data. Some
 * packed buffers have room for only a part of the data. Some types have displacements that are
 * absolute addresses. Some calls are repeated so often that the library compiles code for them. */
#include "interface.h"

static double from[4096], to[4096];

static void parts(void)
{
    ytype t;
    unsigned char packed[256], whole[256];
    uintptr_t actual, total;
    struct { double d; int i; } s[8];
    for (size_t i = 0; i < sizeof s; i++) ((unsigned char *)s)[i] = (unsigned char)(i * 7 + 1);
    OK(yaksa_type_create_struct(2, LIST(1, 1), LIST(0, 8), TYPES(T_DOUBLE, T_INT), NULL, &t));
    OK(yaksa_pack(s, 8, t, 0, whole, sizeof whole, &total, NULL, OP_REPLACE));
    EQ(total, 96);
    /* The elements end at the offsets 8, 12, 20, 24 and so on in the packed data. */
    for (uintptr_t offset = 0; offset <= total; offset++) {
        for (uintptr_t room = 0; room <= 40; room++) {
            uintptr_t end = offset + room < total ? offset + room : total;
            uintptr_t fits = end % 12 < 8 ? end / 12 * 12 : end / 12 * 12 + 8;
            if (fits < offset) fits = offset;
            memset(packed, 0xee, sizeof packed);
            OK(yaksa_pack(s, 8, t, offset, packed, room, &actual, NULL, OP_REPLACE));
            EQ(actual, fits - offset);
            BYTES(packed, whole + offset, actual);
            EQ(packed[actual], 0xee);
            unsigned char back[sizeof s], twice[256];
            memset(back, 0xee, sizeof back);
            OK(yaksa_unpack(whole + offset, room, back, 8, t, offset, &actual, NULL, OP_REPLACE));
            EQ(actual, fits - offset);
            OK(yaksa_pack(back, 8, t, 0, twice, sizeof twice, &actual, NULL, OP_REPLACE));
            for (uintptr_t i = 0; i < total; i++) EQ(twice[i], i >= offset && i < fits ? whole[i] : 0xee);
        }
    }
    OK(yaksa_type_free(t));
    /* A pair is one element, and so is a complex number. A call moves it as a whole or not at
     * all. */
    OK(yaksa_pack(s, 8, T_SHORT_INT, 0, packed, 11, &actual, NULL, OP_REPLACE));
    EQ(actual, 6);
    OK(yaksa_pack(s, 8, T_C_DOUBLE_COMPLEX, 0, packed, 47, &actual, NULL, OP_REPLACE));
    EQ(actual, 32);
    OK(yaksa_pack(s, 8, T_C_DOUBLE_COMPLEX, 16, packed, 15, &actual, NULL, OP_REPLACE));
    EQ(actual, 0);
    /* A call that packs a contiguous type moves only whole elements, just as for types with
     * gaps. */
    OK(yaksa_type_create_contig(5, T_INT, NULL, &t));
    OK(yaksa_pack(s, 3, t, 4, packed, 30, &actual, NULL, OP_REPLACE));
    EQ(actual, 28);
    BYTES(packed, (char *)s + 4, 28);
    OK(yaksa_type_free(t));
}

static void forms(void)
{
    ytype t;
    double packed[64];
    uintptr_t actual = 9;
    yrequest request = 9;
    int done = 0;
    OK(yaksa_type_create_vector(4, 1, 3, T_DOUBLE, NULL, &t));
    for (int form = 0; form < 3; form++) {
        memset(packed, 0, sizeof packed);
        memset(to, 0, sizeof to);
        request = 9;
        if (form == 0) OK(yaksa_pack(from, 2, t, 0, packed, 64, &actual, NULL, OP_REPLACE));
        if (form == 1) OK(yaksa_ipack(from, 2, t, 0, packed, 64, &actual, NULL, OP_REPLACE, &request));
        if (form == 2) OK(yaksa_pack_stream(from, 2, t, 0, packed, 64, &actual, NULL, OP_REPLACE, NULL));
        EQ(actual, 64);
        for (int i = 0; i < 8; i++) EQ(packed[i], i / 4 * 10 + i % 4 * 3);
        if (form == 0) OK(yaksa_unpack(packed, 64, to, 2, t, 0, &actual, NULL, OP_REPLACE));
        if (form == 1) OK(yaksa_iunpack(packed, 64, to, 2, t, 0, &actual, NULL, OP_REPLACE, &request));
        if (form == 2) OK(yaksa_unpack_stream(packed, 64, to, 2, t, 0, &actual, NULL, OP_REPLACE, NULL));
        EQ(actual, 64);
        for (int i = 0; i < 20; i++) EQ(to[i], i % 10 % 3 == 0 ? i : 0);
        if (form == 1) {
            EQ(request, 0);
            OK(yaksa_request_test(request, &done));
            EQ(done, 1);
            OK(yaksa_request_wait(request));
        }
    }
    /* If a call has nothing to move, its buffers may be null. */
    OK(yaksa_pack(NULL, 0, t, 0, NULL, 0, &actual, NULL, OP_REPLACE));
    EQ(actual, 0);
    OK(yaksa_ipack(NULL, 5, T_NULL, 0, NULL, 64, &actual, NULL, OP_SUM, &request));
    EQ(actual, 0);
    OK(yaksa_pack(from, 2, t, 64, NULL, 64, &actual, NULL, OP_REPLACE));
    EQ(actual, 0);
    OK(yaksa_unpack(NULL, 0, to, 2, t, 8, &actual, NULL, OP_REPLACE));
    EQ(actual, 0);
    OK(yaksa_type_free(t));
    /* If the user buffer is null, the displacements of the type are absolute addresses. */
    OK(yaksa_type_create_hindexed_block(2, 1, LIST((intptr_t)(from + 7), (intptr_t)(from + 2)), T_DOUBLE, NULL, &t));
    OK(yaksa_pack(NULL, 1, t, 0, packed, 64, &actual, NULL, OP_REPLACE));
    EQ(actual, 16);
    EQ(packed[0], 7);
    EQ(packed[1], 2);
    OK(yaksa_type_free(t));
}

/* Packs all data in one call and unpacks them in parts, 200 times. The library compiles code for
 * the type when enough bytes have been moved. So the first rounds test the library without
 * compiled code, and the last rounds test compiled code. */
static void often(void)
{
    ytype t;
    static double packed[4096];
    uintptr_t actual;
    OK(yaksa_type_create_vector(100, 3, 7, T_DOUBLE, NULL, &t));
    for (int round = 0; round < 200; round++) {
        memset(packed, 0, sizeof packed);
        OK(yaksa_pack(from, 2, t, 0, packed, sizeof packed, &actual, NULL, OP_REPLACE));
        EQ(actual, 4800);
        for (int i = 0; i < 600; i++) EQ(packed[i], i / 300 * 696 + i % 300 / 3 * 7 + i % 3);
        memset(to, 0, sizeof to);
        for (uintptr_t at = 0; at < 4800; at += actual) {
            OK(yaksa_unpack((char *)packed + at, 1001, to, 2, t, at, &actual, NULL, OP_REPLACE));
            EQ(actual, 4800 - at < 1000 ? 4800 - at : 1000);
        }
        for (int i = 0; i < 2 * 696; i++) {
            int inside = i % 696 % 7 < 3;
            EQ(to[i], inside ? i : 0);
        }
    }
    OK(yaksa_type_free(t));
}

int main(void)
{
    for (int i = 0; i < 4096; i++) from[i] = i;
    OK(yaksa_init(NULL));
    parts();
    forms();
    often();
    OK(yaksa_finalize());
    return 0;
}
