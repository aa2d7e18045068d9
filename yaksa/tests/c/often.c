/* Tests types that are used repeatedly. Some have few contiguous pieces of memory, others have
 * many. The first calls for a type copy its pieces one by one, and later calls use ddtc's
 * interpreter or compiled code. All calls must move the same bytes. Also tests serialized types
 * that are received repeatedly. */
#include "interface.h"

enum { BLOCKS = 5000, TURNS = 5, ROOM = 1 << 21 };

static unsigned char *user, *packed, *hand, *back;

/* Computes the expected packed data of `count` instances and stores them in `hand`. Copies the
 * blocks of each instance in a loop, without the library. Returns the number of packed bytes. */
static uintptr_t gather(const intptr_t *at, const intptr_t *bytes, int blocks, intptr_t extent, int count)
{
    uintptr_t n = 0;
    for (int c = 0; c < count; c++)
        for (int i = 0; i < blocks; i++) {
            memcpy(hand + n, user + c * extent + at[i], (size_t)bytes[i]);
            n += (uintptr_t)bytes[i];
        }
    return n;
}

/* Packs instances of a type, unpacks them, and lists their contiguous pieces, several times.
 * Compares the bytes with the expected packed data, which `gather` computes. */
static void moves(ytype t, const intptr_t *at, const intptr_t *bytes, int blocks)
{
    intptr_t lb, extent;
    struct iovec *list = malloc(2 * BLOCKS * sizeof *list);
    OK(yaksa_type_get_extent(t, &lb, &extent));
    for (int turn = 0; turn < TURNS; turn++)
        for (int count = 1; count <= 2; count++) {
            uintptr_t n, want = gather(at, bytes, blocks, extent, count);
            memset(packed, 0, ROOM);
            OK(yaksa_pack(user, (uintptr_t)count, t, 0, packed, ROOM, &n, NULL, OP_REPLACE));
            EQ(n, want);
            BYTES(packed, hand, want);
            memset(back, 0x5a, ROOM);
            OK(yaksa_unpack(packed, want, back, (uintptr_t)count, t, 0, &n, NULL, OP_REPLACE));
            EQ(n, want);
            uintptr_t in = 0;
            for (int c = 0; c < count; c++)
                for (int i = 0; i < blocks; i++) {
                    BYTES(back + c * extent + at[i], hand + in, (size_t)bytes[i]);
                    in += (uintptr_t)bytes[i];
                }
            /* Checks that no byte outside the blocks was written. */
            uintptr_t touched = 0;
            for (int i = 0; i < ROOM; i++) touched += back[i] != 0x5a;
            EQ(touched, want);
            for (uintptr_t from = 0; from < pieces((uintptr_t)count, t); from = from * 3 + 1) {
                OK(yaksa_iov((char *)user, (uintptr_t)count, t, from, list, 2 * BLOCKS, &n));
                EQ(n, pieces((uintptr_t)count, t) - from);
                uintptr_t bytes_left = 0;
                for (uintptr_t i = 0; i < n; i++) bytes_left += list[i].iov_len;
                uintptr_t skipped = want - bytes_left;
                for (uintptr_t i = 0; i < n; skipped += list[i++].iov_len) BYTES(list[i].iov_base, hand + skipped, list[i].iov_len);
            }
        }
    free(list);
}

/* Serializes type `t` and frees it. Then makes three types from the serialized bytes, and checks
 * the bytes that the last two of them move. Finally checks that the serialized bytes are refused
 * after one bit of them has been changed. */
static void forms(ytype t, const intptr_t *at, const intptr_t *bytes, int blocks)
{
    uintptr_t n;
    ytype u, v;
    OK(yaksa_flatten_size(t, &n));
    char *form = malloc(n);
    OK(yaksa_flatten(t, form));
    OK(yaksa_type_free(t));
    OK(yaksa_unflatten(&u, form));
    OK(yaksa_unflatten(&v, form));
    EQ(u == v, 0);
    OK(yaksa_type_free(u));
    FAILS(INTERNAL, yaksa_type_free(u));
    moves(v, at, bytes, blocks);
    OK(yaksa_type_free(v));
    OK(yaksa_unflatten(&u, form));
    moves(u, at, bytes, blocks);
    OK(yaksa_type_free(u));
    form[104] ^= 1; /* the first byte after the length of the part that has a checksum */
    FAILS(INTERNAL, yaksa_unflatten(&u, form));
    free(form);
}

int main(void)
{
    static intptr_t at[2 * BLOCKS], bytes[2 * BLOCKS], lengths[BLOCKS];
    ytype t, u, v;
    user = malloc(ROOM), packed = malloc(ROOM), hand = malloc(ROOM), back = malloc(ROOM);
    /* The user data never contain the byte 0x5a, which `moves` uses to recognize memory that was
     * not written. */
    for (int i = 0; i < ROOM; i++) user[i] = (unsigned char)(i * 31 % 89);
    OK(yaksa_init(NULL));
    for (int blocks = 5; blocks <= BLOCKS; blocks *= 10) {
        /* Type `t` has blocks of equal length at listed displacements. */
        for (int i = 0; i < blocks; i++) at[i] = 24 * i + 4 * (i % 3), bytes[i] = 8;
        OK(yaksa_type_create_hindexed_block(blocks, 2, at, T_INT, NULL, &t));
        moves(t, at, bytes, blocks);
        /* Type `u` has the same data as `t`, but another extent. */
        OK(yaksa_type_create_resized(t, 0, 24 * blocks + 40, NULL, &u));
        OK(yaksa_type_free(t));
        moves(u, at, bytes, blocks);
        forms(u, at, bytes, blocks);
        /* Type `t` now has blocks of different lengths. Every fourth block is empty. */
        for (int i = 0; i < blocks; i++) at[i] = 24 * i, lengths[i] = i % 4, bytes[i] = 4 * (i % 4);
        OK(yaksa_type_create_hindexed(blocks, lengths, at, T_INT, NULL, &t));
        moves(t, at, bytes, blocks);
        forms(t, at, bytes, blocks);
        /* Type `t` is now a vector, which has blocks at equal distances. */
        for (int i = 0; i < blocks; i++) at[i] = 16 * i, bytes[i] = 4;
        OK(yaksa_type_create_vector(blocks, 1, 4, T_INT, NULL, &t));
        moves(t, at, bytes, blocks);
        /* Three types that contain vectors: vectors at listed displacements, vectors at equal
         * distances, and a vector in a struct with other members. */
        if (blocks == 50) {
            for (int i = 0; i < 150; i++) at[i] = (i / 50) * 1000 + (i % 50) * 16, bytes[i] = 4;
            OK(yaksa_type_create_hindexed_block(3, 1, LIST(0, 1000, 2000), t, NULL, &u));
            moves(u, at, bytes, 150);
            OK(yaksa_type_create_hvector(3, 1, 1000, t, NULL, &v));
            moves(v, at, bytes, 150);
            OK(yaksa_type_free(u));
            OK(yaksa_type_free(v));
            for (int i = 0; i < 50; i++) at[i] = 8 + i * 16, bytes[i] = 4;
            at[50] = 900, bytes[50] = 24, at[51] = 1000, bytes[51] = 2, at[52] = 1004, bytes[52] = 4;
            OK(yaksa_type_create_struct(4, LIST(1, 3, 0, 1), LIST(8, 900, 0, 1000), TYPES(t, T_DOUBLE, T_CHAR, T_SHORT_INT), NULL, &u));
            moves(u, at, bytes, 53);
            forms(u, at, bytes, 53);
        }
        for (int i = 0; i < blocks; i++) at[i] = 16 * i, bytes[i] = 4;
        forms(t, at, bytes, blocks);
    }
    OK(yaksa_finalize());
    free(user), free(packed), free(hand), free(back);
    return 0;
}
