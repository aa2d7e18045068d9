/* Tests the functions that list the contiguous pieces of memory which instances of a type occupy.
 * Checks the number of pieces and their places. Some calls ask for a list that begins at a later
 * piece, and others for the number of pieces that lie completely within a given number of packed
 * bytes. */
#include "interface.h"

static char memory[4096];

/* Checks that the contiguous pieces of `count` instances are those in `expected`, which has the
 * displacement and the length of each of the `n` pieces. Requests lists that begin at each of the
 * pieces and after the last one, with every maximum number of pieces from 0 to `n + 1`. Also
 * checks, for every number of packed bytes, how many pieces lie completely within that many
 * bytes. */
static void list(ytype t, uintptr_t count, uintptr_t n, const intptr_t *expected)
{
    struct iovec got[64];
    uintptr_t actual, bytes, all = 0;
    EQ(pieces(count, t), n);
    for (uintptr_t from = 0; from <= n + 2; from++) {
        for (uintptr_t max = 0; max <= n + 1; max++) {
            uintptr_t left = from < n ? n - from : 0, want = max < left ? max : left;
            memset(got, 0xee, sizeof got);
            OK(yaksa_iov(memory, count, t, from, got, max, &actual));
            EQ(actual, want);
            for (uintptr_t i = 0; i < want; i++) {
                EQ((char *)got[i].iov_base - memory, expected[2 * (from + i)]);
                EQ(got[i].iov_len, expected[2 * (from + i) + 1]);
            }
            EQ(got[want].iov_len, (size_t)0xeeeeeeeeeeeeeeee);
        }
    }
    for (uintptr_t i = 0; i < n; i++) all += (uintptr_t)expected[2 * i + 1];
    for (uintptr_t max = 0; max <= all + 9; max++) {
        uintptr_t whole = 0, sum = 0, got_n;
        while (whole < n && sum + (uintptr_t)expected[2 * whole + 1] <= max) sum += (uintptr_t)expected[2 * whole++ + 1];
        OK(yaksa_iov_len_max(count, t, max, &got_n, &bytes));
        EQ(got_n, whole);
        EQ(bytes, sum);
    }
}

int main(void)
{
    ytype t, u, v;
    uintptr_t n, bytes;
    OK(yaksa_init(NULL));
    list(T_INT, 5, 1, LIST(0, 20));
    list(T_SHORT_INT, 2, 4, LIST(0, 2, 4, 4, 8, 2, 12, 4));
    list(T_DOUBLE_INT, 3, 3, LIST(0, 12, 16, 12, 32, 12));

    OK(yaksa_type_create_vector(3, 2, 4, T_INT, NULL, &t));
    list(t, 2, 6, LIST(0, 8, 16, 8, 32, 8, 40, 8, 56, 8, 72, 8));
    /* The third block of the first copy of `t` touches the first block of the second copy. But
     * pieces are not joined across copies of a type, so the list has 6 pieces and not 5. */
    OK(yaksa_type_create_contig(2, t, NULL, &u));
    list(u, 1, 6, LIST(0, 8, 16, 8, 32, 8, 40, 8, 56, 8, 72, 8));
    OK(yaksa_type_create_hvector(2, 2, 200, u, NULL, &v));
    EQ(pieces(3, v), 72);
    OK(yaksa_type_free(v));
    OK(yaksa_type_free(u));
    OK(yaksa_type_create_indexed(4, LIST(1, 0, 2, 1), LIST(3, 0, 0, 2), t, NULL, &u));
    list(u, 1, 12, LIST(120, 8, 136, 8, 152, 8, 0, 8, 16, 8, 32, 8, 40, 8, 56, 8, 72, 8, 80, 8, 96, 8, 112, 8));
    OK(yaksa_type_free(u));
    OK(yaksa_type_create_struct(3, LIST(2, 3, 1), LIST(100, 300, 500), TYPES(t, T_SHORT, T_SHORT_INT), NULL, &u));
    list(u, 1, 9, LIST(100, 8, 116, 8, 132, 8, 140, 8, 156, 8, 172, 8, 300, 6, 500, 2, 504, 4));
    OK(yaksa_type_free(u));
    OK(yaksa_type_free(t));

    OK(yaksa_type_create_indexed(4, LIST(0, 2, 0, 1), LIST(9, 3, 9, 1), T_INT, NULL, &t));
    list(t, 2, 4, LIST(12, 8, 4, 4, 28, 8, 20, 4));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_hindexed_block(3, 2, LIST(40, 0, 20), T_SHORT_INT, NULL, &t));
    list(t, 1, 12, LIST(40, 2, 44, 4, 48, 2, 52, 4, 0, 2, 4, 4, 8, 2, 12, 4, 20, 2, 24, 4, 28, 2, 32, 4));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_subarray(2, LIST(4, 5), LIST(2, 3), LIST(1, 1), ORDER_C, T_INT, NULL, &t));
    list(t, 2, 4, LIST(24, 12, 44, 12, 104, 12, 124, 12));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_resized(T_INT, 0, 12, NULL, &t));
    list(t, 3, 3, LIST(0, 4, 12, 4, 24, 4));
    OK(yaksa_type_create_vector(2, 2, 3, t, NULL, &u));
    list(u, 1, 4, LIST(0, 4, 12, 4, 36, 4, 48, 4));
    OK(yaksa_type_free(u));
    OK(yaksa_type_free(t));

    /* Each instance of this type is one run of bytes in the order of the packed data, with a gap
     * after the run. */
    OK(yaksa_type_create_hvector(3, 1, 12, T_DOUBLE_INT, NULL, &t));
    bounds(t, 36, 0, 40, 0, 36);
    list(t, 2, 2, LIST(0, 36, 40, 36));
    OK(yaksa_type_free(t));

    /* A type without data has one empty piece. If the count is 0, the list for a contiguous type
     * has one empty piece, and the list for a type with gaps is empty. */
    struct iovec one[2];
    OK(yaksa_iov(memory, 3, T_NULL, 0, one, 2, &n));
    EQ(n, 1);
    EQ(one[0].iov_len, 0);
    OK(yaksa_iov(memory, 0, T_INT, 0, one, 2, &n));
    EQ(n, 1);
    EQ(one[0].iov_len, 0);
    EQ(pieces(0, T_SHORT_INT), 0);
    OK(yaksa_iov(memory, 0, T_SHORT_INT, 0, one, 2, &n));
    EQ(n, 0);

    /* The three instances have 3 x 10^17 pieces. The library counts the pieces, and finds one in
     * the middle, without enumerating them. */
    OK(yaksa_type_create_hvector(1000000000, 1, 8, T_INT, NULL, &t));
    OK(yaksa_type_create_hvector(100000000, 1, 16000000000, t, NULL, &u));
    EQ(pieces(3, u), 300000000000000000);
    OK(yaksa_iov(NULL, 3, u, 123456789123456789, one, 1, &n));
    EQ(n, 1);
    EQ((intptr_t)one[0].iov_base, 100000000 * 16000000000 - 16000000000 + 7999999996 + 23456789 * 16000000000 + 123456789 * 8ll);
    OK(yaksa_iov_len_max(3, u, 4 * 123456789123456789 + 3, &n, &bytes));
    EQ(n, 123456789123456789);
    EQ(bytes, 4 * 123456789123456789);
    OK(yaksa_finalize());
    return 0;
}
