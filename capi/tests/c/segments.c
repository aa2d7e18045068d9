/* Tests of segments, which are contiguous pieces of memory. They cover lists that were computed by
 * hand, lists that begin at any segment or any byte, limits on the number of bytes, and calls that
 * are refused. One test writes a subarray to a file with pwritev and reads it back. */
#define _DEFAULT_SOURCE
#include <ddtc.h>
#include <limits.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>
#include "check.h"

static const ddtc_committed *commit(ddtc_datatype *t)
{
    const ddtc_committed *committed;
    OK(ddtc_type_commit(t));
    OK(ddtc_type_get_committed(*t, &committed));
    OK(ddtc_type_free(t));
    return committed;
}

/* Tests two instances of vector(3, 1, 2, int). The last block of the first instance and the first
 * block of the second instance form one segment. */
static void by_hand(void)
{
    ddtc_datatype t;
    struct iovec iov[8];
    ddtc_count len = -1, bytes = -1, index = -1, skip = -1;
    int user[16] = {0};
    char *at = (char *)user;
    OK(ddtc_type_vector(3, 1, 2, DDTC_TYPE_INT, &t));
    const ddtc_committed *c = commit(&t);
    const size_t offsets[] = {0, 8, 16, 28, 36}, lengths[] = {4, 4, 8, 4, 4};

    for (ddtc_count first = 0; first <= 5; first++) {
        for (ddtc_count max = 0; max <= 6; max++) {
            memset(iov, 0x55, sizeof iov);
            OK(ddtc_committed_segments(c, user, 2, first, iov, max, &len));
            EQ(len, max < 5 - first ? max : 5 - first);
            for (int i = 0; i < len; i++) {
                EQ((char *)iov[i].iov_base - at, offsets[first + i]);
                EQ(iov[i].iov_len, lengths[first + i]);
            }
            /* The entries of `iov` after the listed segments are not written. */
            for (int i = len; i < 8; i++) EQ(iov[i].iov_len, 0x5555555555555555);
        }
        ddtc_count start = 0, found;
        for (int i = 0; i < first; i++) start += lengths[i];
        OK(ddtc_committed_segment_offset(c, 2, first, &found));
        EQ(found, start);
    }
    OK(ddtc_committed_segments(c, user, 2, 0, NULL, 0, &len));
    EQ(len, 0);

    /* Gets a list that begins inside of the segment that both instances share. */
    OK(ddtc_committed_segments_from(c, user, 2, 11, iov, 2, &len, &bytes));
    EQ(len, 2);
    EQ(bytes, 9);
    EQ((char *)iov[0].iov_base - at, 19);
    EQ(iov[0].iov_len, 5);
    EQ((char *)iov[1].iov_base - at, 28);
    OK(ddtc_committed_segment_at(c, 2, 11, &index, &skip));
    EQ(index, 2);
    EQ(skip, 3);
    OK(ddtc_committed_segments_from(c, user, 2, 24, iov, 2, &len, &bytes));
    TRUE(len == 0 && bytes == 0);
    OK(ddtc_committed_segment_at(c, 2, 24, &index, &skip));
    TRUE(index == 5 && skip == 0);

    /* Only whole segments count: 15 bytes hold two segments, and 16 bytes hold three. The limit -1
     * counts all remaining segments. */
    const ddtc_count budgets[][3] = {{0, 0, 0}, {3, 0, 0}, {4, 1, 4}, {15, 2, 8}, {16, 3, 16}, {23, 4, 20}, {24, 5, 24}, {-1, 5, 24}, {LONG_MAX, 5, 24}};
    for (int i = 0; i < LENGTH(budgets); i++) {
        OK(ddtc_committed_segments_within(c, 2, 0, budgets[i][0], &len, &bytes));
        EQ(len, budgets[i][1]);
        EQ(bytes, budgets[i][2]);
    }
    OK(ddtc_committed_segments_within(c, 2, 2, 11, &len, &bytes));
    TRUE(len == 1 && bytes == 8);
    OK(ddtc_committed_segments_within(c, 2, 5, 11, &len, &bytes));
    TRUE(len == 0 && bytes == 0);

    /* Calls that are refused write nothing. */
    len = bytes = 77;
    memset(iov, 0x55, sizeof iov);
    FAILS(DDTC_ERR_ARG, "first = 6", ddtc_committed_segments(c, user, 2, 6, iov, 8, &len));
    FAILS(DDTC_ERR_ARG, "first = -1", ddtc_committed_segments(c, user, 2, -1, iov, 8, &len));
    FAILS(DDTC_ERR_ARG, "first = -1", ddtc_committed_segments_within(c, 2, -1, 8, &len, &bytes));
    FAILS(DDTC_ERR_ARG, "max_bytes = -2", ddtc_committed_segments_within(c, 2, 0, -2, &len, &bytes));
    FAILS(DDTC_ERR_ARG, "offset = 25", ddtc_committed_segments_from(c, user, 2, 25, iov, 8, &len, &bytes));
    FAILS(DDTC_ERR_ARG, "offset = -1", ddtc_committed_segment_at(c, 2, -1, &len, &bytes));
    FAILS(DDTC_ERR_ARG, "index = 6", ddtc_committed_segment_offset(c, 2, 6, &len));
    FAILS(DDTC_ERR_COUNT, "count = -1", ddtc_committed_segments(c, user, -1, 0, iov, 8, &len));
    FAILS(DDTC_ERR_COUNT, "max = -8", ddtc_committed_segments(c, user, 2, 0, iov, -8, &len));
    FAILS(DDTC_ERR_ARG, "iov", ddtc_committed_segments(c, user, 2, 0, NULL, 8, &len));
    FAILS(DDTC_ERR_ARG, "len", ddtc_committed_segments(c, user, 2, 0, iov, 8, NULL));
    FAILS(DDTC_ERR_ARG, "committed", ddtc_committed_segments(NULL, user, 2, 0, iov, 8, &len));
    FAILS(DDTC_ERR_COUNT, "count", ddtc_committed_segments_within(c, LONG_MAX / 4, 0, 8, &len, &bytes));
    /* As for a pack, relative displacements with a null buffer and data past the end of the address
     * space are refused. */
    FAILS(DDTC_ERR_BUFFER, "buffer", ddtc_committed_segments(c, NULL, 2, 0, iov, 8, &len));
    FAILS(DDTC_ERR_BUFFER, "buffer", ddtc_committed_segments(c, (void *)(UINTPTR_MAX - 30), 2, 0, iov, 8, &len));
    TRUE(len == 77 && bytes == 77);
    for (int i = 0; i < 8; i++) EQ(iov[i].iov_len, 0x5555555555555555);
    /* Without instances there is no data that could lie outside of the address space. */
    OK(ddtc_committed_segments(c, NULL, 0, 0, iov, 8, &len));
    EQ(len, 0);
    OK(ddtc_committed_release(c));
}

/* Tests absolute displacements with a null buffer. */
static void absolute(void)
{
    int a[4] = {0}, b[4] = {0}, lengths[2] = {2, 3};
    ddtc_aint places[2];
    ddtc_datatype t;
    ddtc_count len;
    struct iovec iov[2];
    OK(ddtc_get_address(&a[1], &places[0]));
    OK(ddtc_get_address(&b[0], &places[1]));
    OK(ddtc_type_create_hindexed(2, lengths, places, DDTC_TYPE_INT, &t));
    const ddtc_committed *c = commit(&t);
    OK(ddtc_committed_segments(c, NULL, 1, 0, iov, 2, &len));
    EQ(len, 2);
    TRUE(iov[0].iov_base == (void *)&a[1] && iov[0].iov_len == 8);
    TRUE(iov[1].iov_base == (void *)b && iov[1].iov_len == 12);
    OK(ddtc_committed_release(c));
}

/* Tests the calls with handles. Like MPIX_Type_iov, they list the displacements of the segments of
 * one instance. */
static void handles(void)
{
    ddtc_datatype t;
    struct iovec iov[4];
    ddtc_count len = 77, bytes = 77;
    OK(ddtc_type_create_hvector(3, 1, -8, DDTC_TYPE_INT, &t));
    FAILS(DDTC_ERR_TYPE, "must be committed", ddtc_type_iov_len(t, -1, &len, &bytes));
    FAILS(DDTC_ERR_TYPE, "must be committed", ddtc_type_iov(t, 0, iov, 4, &len));
    OK(ddtc_type_commit(&t));
    FAILS(DDTC_ERR_ARG, "max_iov_bytes = -2", ddtc_type_iov_len(t, -2, &len, &bytes));
    FAILS(DDTC_ERR_ARG, "iov_offset = 4", ddtc_type_iov(t, 4, iov, 4, &len));
    FAILS(DDTC_ERR_ARG, "iov_offset = -1", ddtc_type_iov(t, -1, iov, 4, &len));
    FAILS(DDTC_ERR_COUNT, "max_iov_len = -1", ddtc_type_iov(t, 0, iov, -1, &len));
    FAILS(DDTC_ERR_ARG, "iov", ddtc_type_iov(t, 0, NULL, 1, &len));
    FAILS(DDTC_ERR_ARG, "iov_len", ddtc_type_iov_len(t, -1, NULL, &bytes));
    FAILS(DDTC_ERR_ARG, "actual_iov_bytes", ddtc_type_iov_len(t, -1, &len, NULL));
    FAILS(DDTC_ERR_TYPE, "datatype", ddtc_type_iov_len(DDTC_DATATYPE_NULL, -1, &len, &bytes));
    TRUE(len == 77 && bytes == 77);
    OK(ddtc_type_iov_len(t, -1, &len, &bytes));
    TRUE(len == 3 && bytes == 12);
    OK(ddtc_type_iov_len(t, 11, &len, &bytes));
    TRUE(len == 2 && bytes == 8);
    OK(ddtc_type_iov(t, 1, iov, 4, &len));
    EQ(len, 2);
    EQ((intptr_t)iov[0].iov_base, -8);
    EQ((intptr_t)iov[1].iov_base, -16);
    EQ(iov[1].iov_len, 4);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_iov(DDTC_TYPE_DOUBLE, 0, iov, 4, &len)); /* Predefined types need no commit. */
    TRUE(len == 1 && iov[0].iov_base == NULL && iov[0].iov_len == 8);
}

/* Moves all segments of `count` instances to or from file position 0 with `move`. `move` is
 * pwritev, preadv or a similar function, and may move fewer bytes than the list has. Returns the
 * number of moved bytes. */
static ddtc_count transfer(int file, ssize_t (*move)(int, const struct iovec *, int, off_t), const ddtc_committed *c,
                           const void *user, ddtc_count count, int *calls)
{
    struct iovec iov[16];
    ddtc_count offset = 0, len, bytes;
    for (;; (*calls)++) {
        OK(ddtc_committed_segments_from(c, user, count, offset, iov, LENGTH(iov), &len, &bytes));
        if (len == 0) return offset;
        ssize_t moved = move(file, iov, (int)len, offset);
        TRUE(moved > 0 && moved <= bytes);
        /* The next list begins with the first byte that was not moved, which may be inside of a
         * segment. */
        offset += moved;
    }
}
static ssize_t some(int file, const struct iovec *iov, int n, off_t at)
{
    struct iovec short_one = iov[0];
    if (short_one.iov_len > 40) short_one.iov_len = 40;
    (void)n;
    return pwritev(file, &short_one, 1, at);
}

/* Writes the inner 5 x 6 x 7 elements of an 8 x 9 x 10 array of doubles to a file and reads them
 * back. */
static void file(void)
{
    static double cube[8][9][10], back[8][9][10];
    const int sizes[3] = {8, 9, 10}, inner[3] = {5, 6, 7}, starts[3] = {2, 1, 2};
    for (int i = 0; i < 720; i++) cube[i / 90][i / 10 % 9][i % 10] = i + 0.5, back[i / 90][i / 10 % 9][i % 10] = -1;
    ddtc_datatype t;
    OK(ddtc_type_create_subarray(3, sizes, inner, starts, DDTC_ORDER_C, DDTC_TYPE_DOUBLE, &t));
    const ddtc_committed *c = commit(&t);
    ddtc_count len, bytes;
    OK(ddtc_committed_segments_within(c, 1, 0, -1, &len, &bytes));
    TRUE(len == 30 && bytes == 5 * 6 * 7 * 8); /* One segment for each of the 5 * 6 rows. */

    char name[] = "/tmp/ddtc-segments-XXXXXX";
    int fd = mkstemp(name), writes = 0, reads = 0, partial = 0;
    TRUE(fd >= 0);
    unlink(name);
    EQ(transfer(fd, pwritev, c, cube, 1, &writes), bytes);
    EQ(writes, 2);
    /* The file contains the packed stream. */
    static double packed[210], stream[210];
    OK(ddtc_committed_pack(c, cube, 1, packed));
    EQ(pread(fd, stream, sizeof stream, 0), sizeof stream);
    BYTES(packed, stream, sizeof packed);
    EQ(transfer(fd, preadv, c, back, 1, &reads), bytes);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 9; j++)
            for (int k = 0; k < 10; k++) {
                int inside = i >= 2 && i < 7 && j >= 1 && j < 7 && k >= 2 && k < 9;
                TRUE(back[i][j][k] == (inside ? cube[i][j][k] : -1));
            }
    /* Writes the file again with a function that writes at most 40 bytes per call. */
    EQ(ftruncate(fd, 0), 0);
    EQ(transfer(fd, some, c, cube, 1, &partial), bytes);
    EQ(partial, 60);
    EQ(pread(fd, stream, sizeof stream, 0), sizeof stream);
    BYTES(packed, stream, sizeof packed);
    close(fd);
    OK(ddtc_committed_release(c));
}

int main(void)
{
    by_hand();
    absolute();
    handles();
    file();
    return 0;
}
