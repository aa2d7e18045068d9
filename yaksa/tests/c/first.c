/* Tests the first calls that pack or unpack a new type. In these calls the library copies
 * contiguous pieces one by one, and in later calls it works differently. Some calls move very many
 * pieces. Others move only a part of the packed data; the parts have any size, and come in any
 * order. Types are freed and made anew, and several threads call the library at the same time. The
 * expected bytes are computed by loops in this program. */
#include "interface.h"
#include <pthread.h>

enum { ROWS = 3000, ROOM = 1 << 18, THREADS = 4, ROUNDS = 50 };

/* The tests use a type of ROWS rows, which are ROW (32) bytes apart. In each row, an int is at
 * offset 0, three floats are at 8, and five chars are at 24, which makes DATA (21) packed bytes. */
enum { ROW = 32, DATA = 21, TOTAL = ROWS * DATA };

static unsigned char user[ROWS * ROW], stream[TOTAL];

static ytype make(void)
{
    ytype t, u, v;
    OK(yaksa_type_create_struct(3, LIST(1, 3, 5), LIST(0, 8, 24), TYPES(T_INT, T_FLOAT, T_CHAR), NULL, &t));
    OK(yaksa_type_create_resized(t, 0, ROW, NULL, &u));
    OK(yaksa_type_create_contig(ROWS, u, NULL, &v));
    OK(yaksa_type_free(t));
    OK(yaksa_type_free(u));
    return v;
}

/* Returns the index in `user` of packed byte `i`. */
static int place(int i)
{
    int inside = i % DATA;
    return i / DATA * ROW + (inside < 4 ? inside : inside < 16 ? inside + 4 : inside + 8);
}

/* Rounds `end`, a number of packed bytes, down so that it does not end inside an int or a
 * float. */
static int whole(int end)
{
    int inside = end % DATA;
    return inside < 16 ? end - inside % 4 : end;
}

/* Packs at most `room` bytes, from packed byte `offset` on, and checks them. Returns the offset
 * after the last packed byte. */
static int pack(ytype t, int offset, int room)
{
    unsigned char packed[ROOM];
    uintptr_t n;
    int end = offset + room < TOTAL ? whole(offset + room) : TOTAL;
    if (end < offset) end = offset;
    packed[end - offset] = 0xee;
    OK(yaksa_pack(user, 1, t, (uintptr_t)offset, packed, (uintptr_t)room, &n, NULL, OP_REPLACE));
    EQ(n, end - offset);
    BYTES(packed, stream + offset, n);
    EQ(packed[n], 0xee);
    return end;
}

/* Unpacks at most `room` bytes of `stream`, from packed byte `offset` on, to memory that is
 * filled with 0x5a. Checks that exactly the expected bytes of this memory are written. Returns the
 * offset after the last byte that was unpacked. */
static int unpack(ytype t, int offset, int room)
{
    unsigned char back[sizeof user], expected[sizeof user];
    uintptr_t n;
    int end = offset + room < TOTAL ? whole(offset + room) : TOTAL;
    if (end < offset) end = offset;
    memset(back, 0x5a, sizeof back);
    memset(expected, 0x5a, sizeof expected);
    for (int i = offset; i < end; i++) expected[place(i)] = stream[i];
    OK(yaksa_unpack(stream + offset, (uintptr_t)room, back, 1, t, (uintptr_t)offset, &n, NULL, OP_REPLACE));
    EQ(n, end - offset);
    BYTES(back, expected, sizeof back);
    return end;
}

/* Makes two equal types. Packs all data with the first type and unpacks them with the second one,
 * and does this three times. Then frees both types. All of this is done three times. */
static void anew(void)
{
    for (int round = 0; round < 3; round++) {
        ytype t = make(), u = make();
        for (int turn = 0; turn < 3; turn++) {
            EQ(pack(t, 0, ROOM), TOTAL);
            EQ(unpack(u, 0, ROOM), TOTAL);
        }
        OK(yaksa_type_free(t));
        OK(yaksa_type_free(u));
    }
}

/* Makes two equal types. Twice, packs all data with the first type, in parts of at most `size`
 * bytes that follow each other, and then unpacks about the first `20 * size` bytes with the second
 * type, in such parts, too. Then frees both types. All of this is done for several sizes. */
static void in_order(void)
{
    for (int size = 4; size < TOTAL; size = size * 3 + 1) {
        ytype t = make(), u = make();
        for (int turn = 0; turn < 2; turn++) {
            for (int at = 0; at < TOTAL;) at = pack(t, at, size);
            /* Only about the first `20 * size` bytes are unpacked, because each call of
             * `unpack` checks all bytes of the user memory, which takes long. */
            for (int at = 0; at < TOTAL && at < 20 * size;) at = unpack(u, at, size);
        }
        OK(yaksa_type_free(t));
        OK(yaksa_type_free(u));
    }
}

/* Moves parts of the packed data of a new type in random order, so that some bytes are never
 * moved and others several times. */
static void in_any_order(void)
{
    unsigned seed = 1;
    for (int round = 0; round < 20; round++) {
        ytype t = make(), u = make();
        int at = 0;
        for (int i = 0; i < 30; i++) {
            seed = seed * 1103515245 + 12345;
            int room = (int)(seed >> 16) % 5000;
            /* Parts with an odd `i` begin where the part before them ended. All others begin at
             * a random place. */
            if (i % 2 == 0) at = whole((int)((seed >> 8) % TOTAL));
            EQ(unpack(u, at, room), pack(t, at, room));
            at = whole(at + room < TOTAL ? at + room : TOTAL);
        }
        OK(yaksa_type_free(t));
        OK(yaksa_type_free(u));
    }
}

/* Packs two messages of one type in parts of different sizes. Parts of the two messages
 * alternate. */
static void two_messages(void)
{
    ytype t = make();
    for (int a = 0, b = 0; a < TOTAL || b < TOTAL;) {
        if (a < TOTAL) a = pack(t, a, 1000);
        if (b < TOTAL) b = pack(t, b, 700);
    }
    OK(yaksa_type_free(t));
}

/* Packs 100000 instances of a small type in one call. */
static void many_instances(void)
{
    enum { COUNT = 100000 };
    static struct { int a, b, c; } from[COUNT];
    static int packed[2 * COUNT];
    ytype t, u;
    uintptr_t n;
    for (int i = 0; i < COUNT; i++) from[i].a = i, from[i].b = -1, from[i].c = 3 * i;
    OK(yaksa_type_create_hindexed_block(2, 1, LIST(0, 8), T_INT, NULL, &t));
    OK(yaksa_type_create_resized(t, 0, 12, NULL, &u));
    for (int turn = 0; turn < 3; turn++) {
        memset(packed, 0, sizeof packed);
        OK(yaksa_pack(from, COUNT, u, 0, packed, sizeof packed, &n, NULL, OP_REPLACE));
        EQ(n, sizeof packed);
        for (int i = 0; i < COUNT; i++) EQ(packed[2 * i] == i && packed[2 * i + 1] == 3 * i, 1);
    }
    OK(yaksa_type_free(t));
    OK(yaksa_type_free(u));
}

static pthread_barrier_t barrier;
static ytype shared;

/* Body of the threads. In each round, all threads begin to pack with the same new type at the
 * same time. Half of them pack all data in one call, and the others in parts of different sizes. */
static void *work(void *which)
{
    int self = (int)(intptr_t)which;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        for (int at = 0; at < TOTAL;) at = pack(shared, at, self % 2 ? ROOM : 4000 + 100 * self);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[THREADS];
    EQ(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    for (int i = 0; i < THREADS; i++) EQ(pthread_create(&all[i], NULL, work, (void *)(intptr_t)i), 0);
    for (int round = 0; round < ROUNDS; round++) {
        shared = make();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        OK(yaksa_type_free(shared));
    }
    for (int i = 0; i < THREADS; i++) EQ(pthread_join(all[i], NULL), 0);
    EQ(pthread_barrier_destroy(&barrier), 0);
}

int main(void)
{
    for (size_t i = 0; i < sizeof user; i++) user[i] = (unsigned char)(i * 31 % 89);
    for (int i = 0; i < TOTAL; i++) stream[i] = user[place(i)];
    OK(yaksa_init(NULL));
    anew();
    in_order();
    in_any_order();
    two_messages();
    many_instances();
    threads();
    OK(yaksa_finalize());
    return 0;
}
