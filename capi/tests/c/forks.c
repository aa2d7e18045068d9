/* Tests of forks. Threads commit, free, set attributes, pack and configure while the main thread
 * forks. Each child process then makes the same calls. DDTC_FORKS is the number of forks. In the
 * last fork, a fork handler waits for a thread that calls the library. Calls in the child of that
 * fork are refused. */
#include <ddtc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

enum { THREADS = 3, SECONDS = 120 };
static int keyval;
static atomic_int stop;
static atomic_int current[THREADS];

/* Creates, uses and frees type `i`. Two types have the same layout only if their numbers differ by
 * a multiple of 1500, the least common multiple of 300 and 500. */
static void life(int i)
{
    enum { BLOCKS = 3 };
    const int lengths[BLOCKS] = {1, 3, 2};
    const ddtc_aint at[BLOCKS] = {0, 8 + 4 * (i % 300), 2000 + 4 * (i % 500)};
    const ddtc_datatype types[BLOCKS] = {DDTC_TYPE_INT, DDTC_TYPE_CHAR, DDTC_TYPE_INT};
    static const char source[5000] = "the quick brown fox";
    char packed[64], back[5000];
    ddtc_datatype t, d, same;
    int position = 0, flag, n;
    void *value;
    OK(ddtc_type_create_struct(BLOCKS, lengths, at, types, &t));
    OK(ddtc_type_commit(&t));
    OK(ddtc_type_set_attr(t, keyval, &keyval));
    OK(ddtc_type_toint(t, &n));
    OK(ddtc_type_fromint(n, &same));
    EQ(same, t);
    OK(ddtc_type_dup(t, &d));
    OK(ddtc_type_free(&t));
    OK(ddtc_type_get_attr(d, keyval, &value, &flag));
    TRUE(flag && value == &keyval);
    OK(ddtc_pack(source, 1, d, packed, sizeof packed, &position));
    EQ(position, 15);
    BYTES(packed, source, 4);
    BYTES(packed + 4, source + at[1], 3);
    BYTES(packed + 7, source + at[2], 8);
    memset(back, 1, sizeof back);
    position = 0;
    OK(ddtc_unpack(packed, 15, &position, back, 1, d));
    BYTES(back + at[1], source + at[1], 3);
    EQ(back[at[1] + 3], 1);
    OK(ddtc_type_free(&d));
}

static void handler(void) {}

static void rest(void)
{
    int own, provided, flag;
    ddtc_info info;
    ddtc_errhandler errhandler;
    OK(ddtc_info_create(&info));
    OK(ddtc_info_set(info, "key", "value"));
    OK(ddtc_info_free(&info));
    OK(ddtc_errhandler_create(DDTC_ERRHANDLER_COMM, handler, &errhandler));
    OK(ddtc_errhandler_free(&errhandler));
    OK(ddtc_error_add_code(DDTC_ERR_OTHER, &own));
    OK(ddtc_error_remove_code(own));
    ddtc_config config = {.struct_size = sizeof config};
    OK(ddtc_type_create_keyval(DDTC_DUP_FN, DDTC_NULL_DELETE_FN, &own, NULL));
    OK(ddtc_type_free_keyval(&own));
    OK(ddtc_config_get(&config));
    config.cache_bytes = 50000;
    OK(ddtc_configure(&config));
    OK(ddtc_t_init_thread(0, &provided));
    OK(ddtc_t_finalize());
    OK(ddtc_allocator_is_set(&flag));
    EQ(ddtc_pack(NULL, -1, DDTC_TYPE_INT, NULL, 0, &provided) != 0, 1);
}

static void *work(void *argument)
{
    int thread = (int)(intptr_t)argument;
    for (int i = thread; !atomic_load(&stop); i += THREADS) {
        atomic_store(&current[thread], i);
        life(i);
        if (thread == 0) rest();
    }
    return NULL;
}

static void heard(void *context, int level, const char *line)
{
    (void)level;
    atomic_fetch_add((atomic_int *)context, line[0] != 0);
}

/* State of a fork handler that waits for a call of another thread. A handler that takes a lock
 * waits in the same way if another thread holds that lock. */
static atomic_int holding, forking, called;

static void hold(void)
{
    if (!atomic_load(&holding)) return;
    atomic_store(&forking, 1);
    while (!atomic_load(&called)) usleep(20000);
}

static void *call_meanwhile(void *argument)
{
    while (!atomic_load(&forking)) usleep(100);
    life(0);
    atomic_store(&called, 1);
    return argument;
}

static void held_up(void)
{
    pthread_t thread;
    ddtc_datatype t;
    int status;
    EQ(pthread_create(&thread, NULL, call_meanwhile, NULL), 0);
    atomic_store(&holding, 1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(SECONDS);
        EQ(ddtc_type_contiguous(2, DDTC_TYPE_INT, &t), DDTC_ERR_OTHER);
        _exit(0);
    }
    atomic_store(&holding, 0);
    EQ(waitpid(child, &status, 0), child);
    EQ(status, 0);
    EQ(pthread_join(thread, NULL), 0);
    life(0);
}

int main(void)
{
    /* Prepare handlers run in reverse order of registration. The handler `hold` is registered
     * before the first call of the library, so it runs after the library's own handler. */
    EQ(pthread_atfork(hold, NULL, NULL), 0);
    const char *number = getenv("DDTC_FORKS");
    int forks = number ? atoi(number) : 1000;
    pthread_t threads[THREADS];
    static atomic_int lines;
    OK(ddtc_set_log(heard, &lines, DDTC_LOG_DEBUG));
    OK(ddtc_type_create_keyval(DDTC_DUP_FN, DDTC_NULL_DELETE_FN, &keyval, NULL));
    for (int i = 0; i < THREADS; i++) EQ(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), 0);
    for (int i = 0; i < forks; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            for (int k = 0; k < THREADS; k++) life(atomic_load(&current[k]));
            life(1000000 + i);
            rest();
            _exit(0);
        }
        TRUE(child > 0);
        int status;
        EQ(waitpid(child, &status, 0), child);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
            fprintf(stderr, "the child of fork %d hangs\n", i);
            return 1;
        }
        EQ(status, 0);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++) EQ(pthread_join(threads[i], NULL), 0);
    TRUE(atomic_load(&lines) > 0);
    held_up();
    OK(ddtc_type_free_keyval(&keyval));
    return 0;
}
