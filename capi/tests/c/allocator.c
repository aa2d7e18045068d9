/* Tests of the allocator hook: the library's memory comes from the hook and is returned to it.
 * Setting a hook after the first allocation is refused. */
#include <ddtc.h>
#include <stdatomic.h>
#include <stdint.h>
#include "check.h"

static atomic_long bytes, calls;

static void *take(void *context, size_t size, size_t alignment)
{
    if (context != &bytes) abort();
    atomic_fetch_add(&bytes, (long)size);
    atomic_fetch_add(&calls, 1);
    void *p = NULL;
    return posix_memalign(&p, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) ? NULL : p;
}

static void give(void *context, void *pointer, size_t size, size_t alignment)
{
    (void)alignment;
    if (context != &bytes) abort();
    atomic_fetch_sub(&bytes, (long)size);
    free(pointer);
}

int main(void)
{
    ddtc_allocator hooks = {take, give, &bytes}, half = {take, NULL, &bytes};
    int flag;
    EQ(ddtc_set_allocator(NULL), DDTC_ERR_ARG);
    EQ(ddtc_set_allocator(&half), DDTC_ERR_ARG);
    OK(ddtc_set_allocator(&hooks));
    EQ(ddtc_set_allocator(&hooks), DDTC_ERR_OTHER);
    OK(ddtc_allocator_is_set(&flag));
    EQ(flag, 1);
    long before = 0;
    for (int round = 0; round < 3; round++) {
        int *displacements = malloc(100000 * sizeof(int));
        for (int i = 0; i < 100000; i++) displacements[i] = 2 * i;
        ddtc_datatype t;
        OK(ddtc_type_create_indexed_block(100000, 1, displacements, DDTC_TYPE_INT, &t));
        TRUE(atomic_load(&bytes) - before >= 100000 * 8);
        OK(ddtc_type_free(&t));
        free(displacements);
        before = atomic_load(&bytes);
        TRUE(before < 400000);
    }
    TRUE(atomic_load(&calls) > 0);
    return 0;
}
