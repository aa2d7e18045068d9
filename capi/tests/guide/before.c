/* Code of a small runtime. The test puts it before the C code in docs/EMBEDDING.md. */
#include <ddtc.h>
#include <sys/uio.h>
#include "check.h"

enum { EAGER = 1024, SLOT = 1000, SLOTS = 64 };
struct my_type {
    const ddtc_committed *packing;
    const ddtc_applied *external;
    const ddtc_applied *accumulate;
};
static const ddtc_introspect my_functions; /* Refused by the library, as struct_size is 0. */
static char eager_slot[EAGER], slots[SLOTS][SLOT];
static int used;

static void *my_alloc(void *context, size_t size, size_t alignment)
{
    (void)context;
    void *place = NULL;
    if (alignment < sizeof place) alignment = sizeof place;
    return posix_memalign(&place, alignment, size) ? NULL : place;
}
static void my_free(void *context, void *place, size_t size, size_t alignment)
{
    (void)context, (void)size, (void)alignment;
    free(place);
}
static void my_log(void *context, int level, const char *line)
{
    (void)context, (void)level;
    fprintf(stderr, "%s\n", line);
}
/* Network that accepts at most 500 bytes per call. */
static char sent[16 * 700];
static ddtc_count network_writev(const struct iovec *list, int n)
{
    static ddtc_count all;
    ddtc_count taken = 0;
    for (int i = 0; i < n && taken < 500; i++) {
        ddtc_count some = 500 - taken < (ddtc_count)list[i].iov_len ? 500 - taken : (ddtc_count)list[i].iov_len;
        memcpy(sent + all, list[i].iov_base, some);
        all += some, taken += some;
    }
    return taken;
}
static void *next_slot(void)
{
    TRUE(used < SLOTS);
    return slots[used++];
}
