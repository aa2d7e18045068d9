/* Tests with several threads. The threads concurrently commit, duplicate, free and pack types and
 * set attributes, both on types of their own and on shared types. They set and delete one attribute
 * of a shared type. */
#include <ddtc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include "check.h"

enum { THREADS = 8, ROUNDS = 400 };
static ddtc_datatype shared;
static _Atomic(ddtc_datatype) victim;
static int keyval;
static atomic_int deleted;

static int delete(ddtc_datatype t, int k, void *value, void *extra)
{
    (void)t, (void)k, (void)value, (void)extra;
    atomic_fetch_add(&deleted, 1);
    return 0;
}

/* Values of attributes that several threads set and delete on one type. Each counts how often it
 * was deleted. */
static atomic_int values[THREADS][ROUNDS];
static ddtc_datatype contested;
static int contested_keyval;

static int delete_contested(ddtc_datatype t, int k, void *value, void *extra)
{
    (void)t, (void)k, (void)extra;
    sched_yield(); /* Lets other threads find the attribute. */
    EQ(atomic_fetch_add((atomic_int *)value, 1), 0);
    return 0;
}

static void *contend(void *argument)
{
    int seed = (int)(intptr_t)argument - 1;
    for (int round = 0; round < ROUNDS; round++) {
        OK(ddtc_type_set_attr(contested, contested_keyval, &values[seed][round]));
        int code = ddtc_type_delete_attr(contested, contested_keyval);
        TRUE(code == 0 || code == DDTC_ERR_KEYVAL);
    }
    return NULL;
}

static void *work(void *argument)
{
    int seed = (int)(intptr_t)argument, source[256], packed[256];
    for (int i = 0; i < 256; i++) source[i] = i ^ seed;
    for (int round = 0; round < ROUNDS; round++) {
        ddtc_datatype t, d;
        int stride = 2 + (seed + round) % 7, position = 0, flag;
        OK(ddtc_type_vector(8, 1, stride, DDTC_TYPE_INT, &t));
        OK(ddtc_type_set_attr(t, keyval, source));
        OK(ddtc_type_commit(&t));
        OK(ddtc_type_dup(t, &d));
        OK(ddtc_type_free(&t));
        OK(ddtc_pack(source, 1, d, packed, sizeof packed, &position));
        for (int i = 0; i < 8; i++) EQ(packed[i], source[stride * i]);
        void *value;
        OK(ddtc_type_get_attr(d, keyval, &value, &flag));
        TRUE(flag && value == source);
        OK(ddtc_type_free(&d));
        /* Uses a type that all threads share. */
        position = 0;
        OK(ddtc_type_commit(&shared));
        OK(ddtc_pack(source, 2, shared, packed, sizeof packed, &position));
        EQ(position, 24);
        EQ(packed[3], source[7 + 0]);
        /* Uses a type that another thread may free in the meantime. A call either packs the right
         * bytes or refuses the freed handle. */
        t = atomic_load(&victim);
        position = 0;
        int code = ddtc_pack(source, 1, t, packed, sizeof packed, &position);
        if (code == 0) EQ(packed[1], source[9]);
        else EQ(code, DDTC_ERR_TYPE);
        if (round % 3 == 0) {
            OK(ddtc_type_vector(4, 1, 9, DDTC_TYPE_INT, &d));
            OK(ddtc_type_commit(&d));
            t = atomic_exchange(&victim, d);
            OK(ddtc_type_free(&t));
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    ddtc_datatype t;
    OK(ddtc_type_create_keyval(DDTC_DUP_FN, delete, &keyval, NULL));
    OK(ddtc_type_vector(3, 1, 3, DDTC_TYPE_INT, &shared));
    OK(ddtc_type_vector(4, 1, 9, DDTC_TYPE_INT, &t));
    OK(ddtc_type_commit(&t));
    atomic_store(&victim, t);
    for (int i = 0; i < THREADS; i++) EQ(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) EQ(pthread_join(threads[i], NULL), 0);
    EQ(atomic_load(&deleted), 2 * THREADS * ROUNDS);
    t = atomic_load(&victim);
    OK(ddtc_type_free(&t));
    OK(ddtc_type_free(&shared));

    /* Several threads replace and delete the attribute of one type. Each value is deleted once. */
    OK(ddtc_type_create_keyval(DDTC_DUP_FN, delete_contested, &contested_keyval, NULL));
    OK(ddtc_type_dup(DDTC_TYPE_INT, &contested));
    for (int i = 0; i < THREADS; i++) EQ(pthread_create(&threads[i], NULL, contend, (void *)(intptr_t)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) EQ(pthread_join(threads[i], NULL), 0);
    OK(ddtc_type_free(&contested));
    for (int i = 0; i < THREADS; i++) {
        for (int round = 0; round < ROUNDS; round++) EQ(atomic_load(&values[i][round]), 1);
    }
    OK(ddtc_type_free_keyval(&contested_keyval));
    OK(ddtc_type_free_keyval(&keyval));
    return 0;
}
