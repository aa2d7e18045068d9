/* Tests of packing in device memory. With the argument `driver`, the program runs on a replacement
 * for NVIDIA's driver, which works without a GPU. With `none`, it runs without a driver. */
#define _GNU_SOURCE
#include <ddtc_cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

typedef unsigned long long address;
typedef void *opaque;

/* Functions of the driver. This program calls them to allocate device memory and to create contexts
 * and streams, as a user of the library would. */
static int (*cuDevicePrimaryCtxRetain)(opaque *, int), (*cuCtxPushCurrent_v2)(opaque), (*cuCtxPopCurrent_v2)(opaque *),
    (*cuCtxGetCurrent)(opaque *), (*standin_memory)(address *, const void *, size_t),
    (*cuMemcpyDtoH_v2)(void *, address, size_t), (*cuStreamCreate)(opaque *, unsigned), (*cuCtxCreate_v2)(opaque *, unsigned, int),
    (*cuStreamBeginCapture_v2)(opaque, unsigned), (*standin_end_capture)(opaque), (*cuDevicePrimaryCtxRelease_v2)(int);
static uint64_t (*standin_faults)(void), (*standin_held)(void), (*standin_calls)(void);

static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "%s is missing\n", name);
        exit(1);
    }
    return symbol;
}

static void find_all(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND(name) name = (__typeof__(name))find(library, #name)
    FIND(cuDevicePrimaryCtxRetain), FIND(cuDevicePrimaryCtxRelease_v2), FIND(cuCtxPushCurrent_v2), FIND(cuCtxPopCurrent_v2);
    FIND(cuCtxGetCurrent), FIND(standin_memory), FIND(cuMemcpyDtoH_v2), FIND(cuStreamCreate);
    FIND(cuCtxCreate_v2), FIND(cuStreamBeginCapture_v2), FIND(standin_end_capture), FIND(standin_faults), FIND(standin_held);
    FIND(standin_calls);
}

enum { COUNT = 9, EXTENT = 80, SIZE = 24 };

/* Returns a committed type of three doubles, 24 bytes apart, with an extent of 80 bytes. */
static const ddtc_committed *strided(void)
{
    ddtc_datatype vector, t;
    const ddtc_committed *committed;
    OK(ddtc_type_create_hvector(3, 1, 24, DDTC_TYPE_DOUBLE, &vector));
    OK(ddtc_type_create_resized(vector, 0, EXTENT, &t));
    OK(ddtc_type_commit(&t));
    OK(ddtc_type_get_committed(t, &committed));
    OK(ddtc_type_free(&t));
    OK(ddtc_type_free(&vector));
    return committed;
}

/* Returns a committed list of blocks of bytes with these lengths and displacements. */
static const ddtc_committed *listed(ddtc_count blocks, const ddtc_count *lengths, const ddtc_count *at)
{
    ddtc_datatype t;
    const ddtc_committed *committed;
    OK(ddtc_type_create_hindexed_c(blocks, lengths, at, DDTC_TYPE_BYTE, &t));
    OK(ddtc_type_commit(&t));
    OK(ddtc_type_get_committed(t, &committed));
    OK(ddtc_type_free(&t));
    return committed;
}

static void without_driver(void)
{
    const ddtc_committed *committed = strided();
    ddtc_cuda_layout *layout = (ddtc_cuda_layout *)1;
    FAILS(DDTC_ERR_UNSUPPORTED_OPERATION, "libcuda.so.1", ddtc_cuda_open(committed, 0, &layout));
    TRUE(layout == (ddtc_cuda_layout *)1);
    OK(ddtc_committed_release(committed));
}

static void wrong_arguments(ddtc_cuda_layout *layout, address user, address packed)
{
    const ddtc_committed *committed = strided(), *irregular = listed(2, (ddtc_count[]){8, 200000000000}, (ddtc_count[]){0, 16});
    ddtc_cuda_layout *other = NULL;
    ddtc_count bytes = -1;
    FAILS(DDTC_ERR_ARG, "committed", ddtc_cuda_open(NULL, 0, &other));
    FAILS(DDTC_ERR_ARG, "layout", ddtc_cuda_open(committed, 0, NULL));
    FAILS(DDTC_ERR_ARG, "device", ddtc_cuda_open(committed, 7, &other));
    FAILS(DDTC_ERR_ARG, "device", ddtc_cuda_open(committed, -1, &other));
    FAILS(DDTC_ERR_UNSUPPORTED_OPERATION, "at most 268435456 blocks", ddtc_cuda_open(irregular, 0, &other));
    TRUE(other == NULL);
    FAILS(DDTC_ERR_ARG, "layout", ddtc_cuda_close(NULL));
    FAILS(DDTC_ERR_ARG, "layout", ddtc_cuda_unit(NULL, &bytes));
    FAILS(DDTC_ERR_ARG, "bytes", ddtc_cuda_unit(layout, NULL));
    FAILS(DDTC_ERR_ARG, "layout", ddtc_cuda_pack(NULL, (void *)user, 1, (void *)packed, NULL));
    FAILS(DDTC_ERR_COUNT, "count", ddtc_cuda_pack(layout, (void *)user, -1, (void *)packed, NULL));
    FAILS(DDTC_ERR_BUFFER, "user", ddtc_cuda_pack(layout, NULL, 1, (void *)packed, NULL));
    FAILS(DDTC_ERR_BUFFER, "packed", ddtc_cuda_pack(layout, (void *)user, 1, NULL, NULL));
    FAILS(DDTC_ERR_BUFFER, "user", ddtc_cuda_unpack(layout, (void *)packed, &bytes, 1, NULL));
    FAILS(DDTC_ERR_ARG, "direction", ddtc_cuda_range(layout, 2, (void *)user, 1, 0, (void *)packed, 1, &bytes, NULL));
    FAILS(DDTC_ERR_ARG, "offset", ddtc_cuda_range(layout, DDTC_PACK, (void *)user, 1, SIZE + 1, (void *)packed, 1, &bytes, NULL));
    FAILS(DDTC_ERR_ARG, "max_bytes", ddtc_cuda_range(layout, DDTC_PACK, (void *)user, 1, 0, (void *)packed, -1, &bytes, NULL));
    EQ(bytes, -1);
    OK(ddtc_cuda_pack(layout, NULL, 0, NULL, NULL));
    /* A stream of another context. */
    opaque context, stream, now;
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuStreamCreate(&stream, 0));
    FAILS(DDTC_ERR_ARG, "stream", ddtc_cuda_pack(layout, (void *)user, 1, (void *)packed, stream));
    OK(cuCtxGetCurrent(&now));
    TRUE(now == context);
    OK(cuCtxPopCurrent_v2(&context));
    OK(ddtc_committed_release(committed));
    OK(ddtc_committed_release(irregular));
}

/* Checks that a child process cannot pack with its parent's layout, but can close it. */
static void forked(ddtc_cuda_layout *layout, address user, address packed)
{
    pid_t child = fork();
    if (child == 0) {
        FAILS(DDTC_ERR_OTHER, "layout", ddtc_cuda_pack(layout, (void *)user, 1, (void *)packed, NULL));
        OK(ddtc_cuda_close(layout));
        _exit(0);
    }
    int status;
    EQ(waitpid(child, &status, 0), child);
    EQ(status, 0);
}

/* Number of calls of the driver when the program begins to end. */
static uint64_t calls_before_exit;

static void check_exit(void)
{
    if (standin_calls() != calls_before_exit) {
        fprintf(stderr, "ddtc calls the driver while the program ends\n");
        _exit(1);
    }
}

/* Checks that a process may end while a layout is open and its work is pending. While it ends, ddtc
 * must not call the driver, which may have ended already. */
static void exits(void)
{
    pid_t child = fork();
    if (child == 0) {
        static unsigned char data[COUNT * EXTENT], packed_bytes[COUNT * SIZE];
        const ddtc_committed *committed = strided(), *list = listed(3, (ddtc_count[]){8, 16, 8}, (ddtc_count[]){0, 24, 72});
        static ddtc_cuda_layout *layout, *table; /* found by the leak check */
        opaque context;
        address user, packed;
        find_all();
        atexit(check_exit); /* runs after all handlers that ddtc may register from now on */
        OK(ddtc_cuda_open(committed, 0, &layout));
        OK(ddtc_cuda_open(list, 0, &table));
        OK(cuDevicePrimaryCtxRetain(&context, 0));
        OK(cuCtxPushCurrent_v2(context));
        OK(standin_memory(&user, data, sizeof data));
        OK(standin_memory(&packed, packed_bytes, sizeof packed_bytes));
        /* The work is pending: the stand-in does it only when a call waits for it. */
        OK(ddtc_cuda_pack(layout, (void *)user, COUNT, (void *)packed, NULL));
        OK(ddtc_cuda_pack(table, (void *)user, 2, (void *)packed, (ddtc_cuda_stream)2));
        OK(ddtc_committed_release(list));
        OK(ddtc_committed_release(committed));
        calls_before_exit = standin_calls();
        exit(0);
    }
    int status;
    EQ(waitpid(child, &status, 0), child);
    EQ(status, 0);
}

static void with_driver(void)
{
    static unsigned char data[COUNT * EXTENT], expected[COUNT * SIZE], got[COUNT * SIZE], back[COUNT * EXTENT], wanted[COUNT * EXTENT];
    const ddtc_committed *committed = strided();
    ddtc_cuda_layout *layout;
    ddtc_count unit, bytes;
    opaque context, stream;
    address user, packed, other;
    exits(); /* before this process loads the driver */
    find_all();
    for (int i = 0; i < LENGTH(data); i++) data[i] = (unsigned char)(i * 7 + i / 256);
    OK(ddtc_committed_pack(committed, data, COUNT, expected));
    OK(ddtc_committed_unpack(committed, expected, wanted, COUNT));

    OK(ddtc_cuda_open(committed, 0, &layout));
    OK(ddtc_committed_release(committed)); /* the layout holds it */
    OK(ddtc_cuda_unit(layout, &unit));
    EQ(unit, 8);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxPushCurrent_v2(context));
    OK(standin_memory(&user, data, sizeof data));
    OK(standin_memory(&packed, got, sizeof got));
    OK(standin_memory(&other, back, sizeof back));
    OK(cuStreamCreate(&stream, 0));
    OK(ddtc_cuda_pack(layout, (void *)user, COUNT, (void *)packed, stream));
    OK(ddtc_cuda_unpack(layout, (void *)packed, (void *)other, COUNT, (ddtc_cuda_stream)2));
    OK(cuMemcpyDtoH_v2(got, packed, sizeof got));
    OK(cuMemcpyDtoH_v2(back, other, sizeof back));
    BYTES(got, expected, sizeof got);
    BYTES(back, wanted, sizeof back);

    /* Packs the packed stream from byte 13 to its end. 13 is not a multiple of the element size. */
    OK(ddtc_cuda_range(layout, DDTC_PACK, (void *)user, COUNT, 13, (void *)packed, 1 << 20, &bytes, stream));
    EQ(bytes, COUNT * SIZE - 13);
    OK(cuMemcpyDtoH_v2(got, packed, sizeof got));
    BYTES(got, expected + 13, bytes);
    OK(ddtc_cuda_range(layout, DDTC_PACK, (void *)user, COUNT, COUNT * SIZE, NULL, 5, &bytes, stream));
    EQ(bytes, 0);

    /* A list of blocks, whose table is in device memory until the layout is closed. */
    const ddtc_committed *list = listed(3, (ddtc_count[]){8, 16, 8}, (ddtc_count[]){0, 24, 72});
    ddtc_cuda_layout *table;
    unsigned char blocks[64];
    OK(ddtc_committed_pack(list, data, 2, blocks));
    OK(ddtc_cuda_open(list, 0, &table));
    OK(ddtc_cuda_pack(table, (void *)user, 2, (void *)packed, stream));
    OK(ddtc_cuda_close(table));
    OK(cuMemcpyDtoH_v2(got, packed, sizeof got));
    BYTES(got, blocks, sizeof blocks);
    OK(ddtc_committed_release(list));

    wrong_arguments(layout, user, packed);
    forked(layout, user, packed);

    /* While a CUDA stream is being captured, closing a layout fails, and the layout stays open. */
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(ddtc_cuda_pack(layout, (void *)user, COUNT, (void *)packed, stream));
    FAILS(DDTC_ERR_OTHER, "CUDA error 900", ddtc_cuda_close(layout));
    OK(standin_end_capture(stream));

    /* Closing waits for what was submitted. */
    OK(ddtc_cuda_pack(layout, (void *)user, COUNT, (void *)packed, NULL));
    OK(ddtc_cuda_close(layout));
    OK(cuMemcpyDtoH_v2(got, packed, sizeof got));
    BYTES(got, expected, sizeof got);
    OK(cuCtxPopCurrent_v2(&context));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    EQ(standin_held(), 0);
    EQ(standin_faults(), 0);

    /* A layout may be left open at the end of the program. */
    static ddtc_cuda_layout *left_open;
    committed = strided();
    OK(ddtc_cuda_open(committed, 0, &left_open));
    OK(ddtc_committed_release(committed));
}

int main(int argc, char **argv)
{
    TRUE(argc == 2);
    if (strcmp(argv[1], "driver") == 0) with_driver();
    else without_driver();
    return 0;
}
