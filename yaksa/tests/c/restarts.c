/* Tests two threads, each of which repeatedly starts the library, uses it and ends it. So one
 * thread may start or end the library while the other one calls it. */
#include "interface.h"
#include <pthread.h>

enum { THREADS = 2, ROUNDS = 400000 };

static void *work(void *which)
{
    int user[6] = {1, 2, 3, 4, 5, 6}, packed[3];
    (void)which;
    for (int round = 0; round < ROUNDS; round++) {
        ytype t, u;
        uintptr_t n;
        OK(yaksa_init(NULL));
        OK(yaksa_type_create_vector(3, 1, 2, T_INT, NULL, &t));
        OK(yaksa_type_create_dup(t, NULL, &u));
        OK(yaksa_pack(user, 1, u, 0, packed, sizeof packed, &n, NULL, OP_REPLACE));
        EQ(n, 12);
        EQ(packed[2], 5);
        OK(yaksa_type_free(t));
        OK(yaksa_type_free(u));
        OK(yaksa_finalize());
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    uintptr_t n;
    for (int i = 0; i < THREADS; i++) EQ(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < THREADS; i++) EQ(pthread_join(threads[i], NULL), 0);
    FAILS(INTERNAL, yaksa_type_get_size(T_INT, &n));
    FAILS(INTERNAL, yaksa_finalize());
    return 0;
}
