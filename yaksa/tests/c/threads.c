/* Tests threads that make, use and free types of their own, and also use one type that all
 * threads share, while the main thread forks. */
#include "interface.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
enum { FORKS = 0 };
#else
enum { FORKS = 20 };
#endif
enum { THREADS = 4, ROUNDS = 300 };

static ytype shared;
static double source[1024];

static void use(ytype t, int seed)
{
    double packed[64];
    uintptr_t n;
    struct iovec list[64];
    OK(yaksa_pack(source + seed, 1, t, 0, packed, sizeof packed, &n, NULL, OP_REPLACE));
    EQ(n, 256);
    for (int i = 0; i < 32; i++) EQ(packed[i], seed + i / 2 * 5 + i % 2);
    OK(yaksa_iov((char *)source, 1, t, 3, list, 64, &n));
    EQ(n, 13);
    EQ((char *)list[0].iov_base - (char *)source, 120);
}

static void *work(void *which)
{
    int seed = (int)(intptr_t)which;
    for (int round = 0; round < ROUNDS; round++) {
        ytype t, u;
        char form[1024];
        uintptr_t n;
        OK(yaksa_type_create_vector(16, 2, 5, T_DOUBLE, NULL, &t));
        use(t, seed + round);
        OK(yaksa_flatten_size(t, &n));
        EQ(n <= sizeof form, 1);
        OK(yaksa_flatten(t, form));
        OK(yaksa_type_free(t));
        FAILS(INTERNAL, yaksa_type_get_size(t, &n));
        OK(yaksa_unflatten(&u, form));
        use(u, seed);
        use(shared, seed);
        OK(yaksa_type_free(u));
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < 1024; i++) source[i] = i;
    OK(yaksa_init(NULL));
    OK(yaksa_type_create_vector(16, 2, 5, T_DOUBLE, NULL, &shared));
    for (int i = 0; i < THREADS; i++) EQ(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), 0);
    /* Under the address sanitizer `FORKS` is 0, so the program does not fork. The sanitizer's
     * allocator in GCC 12 may stay locked in the child of a fork if other threads of the parent
     * allocate memory at that time. */
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(600);
            work((void *)0);
            _exit(0);
        }
        int status;
        EQ(waitpid(child, &status, 0), child);
        EQ(status, 0);
    }
    for (int i = 0; i < THREADS; i++) EQ(pthread_join(threads[i], NULL), 0);
    OK(yaksa_type_free(shared));
    OK(yaksa_finalize());
    return 0;
}
