/* Tests type handles with several threads, which make types, and query and free the types of
 * other threads. After a handle was freed, it names no type in any thread. */
#include "interface.h"
#include <pthread.h>

enum { TYPE_COUNT = 3000, RACES = 200 };

static ytype first[TYPE_COUNT], second[TYPE_COUNT];
static pthread_barrier_t barrier;
static ytype contended;
static int winners;

static void make(ytype *types)
{
    for (int i = 0; i < TYPE_COUNT; i++) OK(yaksa_type_create_contig(i + 2, T_INT, NULL, &types[i]));
}

/* Checks the size and bounds of `t`, which must be the type that `make` created at index `i`. */
static void ask(ytype t, int i)
{
    bounds(t, 4 * (i + 2), 0, 4 * (i + 2), 0, 4 * (i + 2));
}

static int compare(const void *a, const void *b)
{
    ytype x = *(const ytype *)a, y = *(const ytype *)b;
    return x < y ? -1 : x > y;
}

/* Body of the second thread. Queries all types that the main thread has made, and frees every
 * other one of them. Then makes as many new types as the main thread has made. */
static void *other(void *unused)
{
    uintptr_t n;
    for (int i = 0; i < TYPE_COUNT; i++) ask(first[i], i);
    for (int i = 0; i < TYPE_COUNT; i += 2) {
        OK(yaksa_type_free(first[i]));
        FAILS(INTERNAL, yaksa_type_free(first[i]));
    }
    make(second);
    for (int i = 0; i < TYPE_COUNT; i += 2) FAILS(INTERNAL, yaksa_type_get_size(first[i], &n));
    return unused;
}

/* Frees a type handle at the same time as another thread frees the same handle. Exactly one of
 * the two calls must succeed. */
static void *race(void *guest)
{
    for (int i = 0; i < RACES; i++) {
        uintptr_t n;
        pthread_barrier_wait(&barrier);
        ask(contended, 5);
        pthread_barrier_wait(&barrier);
        int code = yaksa_type_free(contended);
        EQ(code == SUCCESS || code == INTERNAL, 1);
        FAILS(INTERNAL, yaksa_type_get_size(contended, &n));
        if (code == SUCCESS) __atomic_add_fetch(&winners, 1, __ATOMIC_SEQ_CST);
        pthread_barrier_wait(&barrier);
        if (!guest && i + 1 < RACES) OK(yaksa_type_create_contig(7, T_INT, NULL, &contended));
    }
    return guest;
}

int main(void)
{
    static ytype all[2 * TYPE_COUNT];
    pthread_t thread;
    uintptr_t n;
    OK(yaksa_init(NULL));
    make(first);
    for (int i = 0; i < TYPE_COUNT; i++) ask(first[i], i);
    EQ(pthread_create(&thread, NULL, other, NULL), 0);
    EQ(pthread_join(thread, NULL), 0);
    int living = 0;
    for (int i = 0; i < TYPE_COUNT; i++) {
        if (i % 2) ask(first[i], i);
        else FAILS(INTERNAL, yaksa_type_get_size(first[i], &n));
        ask(second[i], i);
        all[living++] = first[i];
        all[living++] = second[i];
    }
    qsort(all, 2 * TYPE_COUNT, sizeof *all, compare);
    for (int i = 1; i < 2 * TYPE_COUNT; i++) EQ(all[i] == all[i - 1], 0);
    /* A type remains valid after the type from which it was made was freed. If a type has two
     * handles, each handle is freed separately. */
    ytype above, also;
    OK(yaksa_type_create_vector(2, 1, 3, second[0], NULL, &above));
    OK(yaksa_type_create_dup(second[1], NULL, &also));
    EQ(also == second[1], 0);
    for (int i = 0; i < TYPE_COUNT; i++) {
        if (i % 2) OK(yaksa_type_free(first[i]));
        OK(yaksa_type_free(second[i]));
    }
    bounds(above, 16, 0, 32, 0, 32);
    ask(also, 1);
    OK(yaksa_type_free(above));
    OK(yaksa_type_free(also));
    FAILS(INTERNAL, yaksa_type_free(also));

    EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
    OK(yaksa_type_create_contig(7, T_INT, NULL, &contended));
    EQ(pthread_create(&thread, NULL, race, &winners), 0);
    race(NULL);
    EQ(pthread_join(thread, NULL), 0);
    EQ(winners, RACES);

    /* The last call of `yaksa_finalize` frees all types that the program has not freed. New types
     * never get the handles of these types. */
    make(first);
    OK(yaksa_finalize());
    OK(yaksa_init(NULL));
    FAILS(INTERNAL, yaksa_type_get_size(first[0], &n));
    make(second);
    for (int i = 0; i < TYPE_COUNT; i++) EQ(second[i] == first[i], 0);
    OK(yaksa_finalize());
    return 0;
}
