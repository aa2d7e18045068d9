/* A library that is preloaded into the programs of the test suites. It reports which file the
 * process has loaded as libyaksa.so.0, and how often the functions of that library are called. It
 * appends lines to the file that the environment variable RUNTIME_WITNESS names: `begin PATH` when
 * the process starts, and `end PATH NAME=CALLS ..` when the process ends. A process without
 * libyaksa.so.0 appends nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

typedef uint64_t handle;

#define FUNCTIONS(X) \
    X(ipack, (const void *in, uintptr_t count, handle type, uintptr_t at, void *out, uintptr_t room, uintptr_t *done, handle info, \
              int op, handle *request), (in, count, type, at, out, room, done, info, op, request)) \
    X(pack, (const void *in, uintptr_t count, handle type, uintptr_t at, void *out, uintptr_t room, uintptr_t *done, handle info, \
             int op), (in, count, type, at, out, room, done, info, op)) \
    X(pack_stream, (const void *in, uintptr_t count, handle type, uintptr_t at, void *out, uintptr_t room, uintptr_t *done, \
                    handle info, int op, void *stream), (in, count, type, at, out, room, done, info, op, stream)) \
    X(iunpack, (const void *in, uintptr_t size, void *out, uintptr_t count, handle type, uintptr_t at, uintptr_t *done, \
                handle info, int op, handle *request), (in, size, out, count, type, at, done, info, op, request)) \
    X(unpack, (const void *in, uintptr_t size, void *out, uintptr_t count, handle type, uintptr_t at, uintptr_t *done, \
               handle info, int op), (in, size, out, count, type, at, done, info, op)) \
    X(unpack_stream, (const void *in, uintptr_t size, void *out, uintptr_t count, handle type, uintptr_t at, uintptr_t *done, \
                      handle info, int op, void *stream), (in, size, out, count, type, at, done, info, op, stream)) \
    X(iov, (const char *buffer, uintptr_t count, handle type, uintptr_t at, struct iovec *list, uintptr_t room, uintptr_t *done), \
      (buffer, count, type, at, list, room, done)) \
    X(iov_len, (uintptr_t count, handle type, uintptr_t *length), (count, type, length)) \
    X(flatten, (handle type, void *flat), (type, flat)) \
    X(unflatten, (handle *type, const void *flat), (type, flat))

enum {
#define NUMBER(name, parameters, arguments) NUMBER_##name,
    FUNCTIONS(NUMBER)
    FUNCTIONS_END
};

static atomic_ulong calls[FUNCTIONS_END];

#define WRAPPER(name, parameters, arguments) \
    int yaksa_##name parameters \
    { \
        static int(*_Atomic real) parameters; \
        int(*call) parameters = atomic_load_explicit(&real, memory_order_relaxed); \
        if (!call) { \
            *(void **)&call = dlsym(RTLD_NEXT, "yaksa_" #name); \
            if (!call) abort(); \
            atomic_store_explicit(&real, call, memory_order_relaxed); \
        } \
        atomic_fetch_add_explicit(&calls[NUMBER_##name], 1, memory_order_relaxed); \
        return call arguments; \
    }
FUNCTIONS(WRAPPER)

static void append(const char *line, size_t length)
{
    const char *path = getenv("RUNTIME_WITNESS");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (file < 0) return;
    if (write(file, line, length) != (ssize_t)length) abort();
    close(file);
}

/* Returns the path of the libyaksa.so.0 whose functions are wrapped here. Returns null if the
 * process has not loaded that library. */
static const char *library(void)
{
    Dl_info found;
    void *function = dlsym(RTLD_NEXT, "yaksa_iov_len");
    return function && dladdr(function, &found) ? found.dli_fname : NULL;
}

/* Reports the loaded libyaksa.so.0 when the process starts, so that the report exists even if the
 * process is killed later. */
__attribute__((constructor)) static void begin(void)
{
    char line[4200];
    const char *path = library();
    if (path) append(line, (size_t)snprintf(line, sizeof line, "begin %s\n", path));
}

__attribute__((destructor)) static void end(void)
{
    char line[8192];
    const char *path = library();
    if (!path) return;
    int length = snprintf(line, sizeof line, "end %s", path);
#define SHOW(name, parameters, arguments) length += snprintf(line + length, sizeof line - (size_t)length, " " #name "=%lu", calls[NUMBER_##name]);
    FUNCTIONS(SHOW)
    line[length++] = '\n';
    append(line, (size_t)length);
}
