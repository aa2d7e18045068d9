/* Calls functions of Open MPI's convertors, which pack and unpack. callgrind counts the
 * instructions of 1000 calls, or this program measures the time of the calls. The program is run on
 * unmodified libopen-pal, and on libopen-pal with the patch for mover providers.
 *
 *     cost send|recv|position|pack|unpack contiguous|vector|structure|indexed
 *                       makes the calls to count, with the given kind of type (pack and unpack move
 *                       64 KiB)
 *     cost time         prints the nanoseconds of a pack and an unpack of 64 KiB, by Open MPI's
 *                       generic functions and by the mover provider that is linked or preloaded */
#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"
#include "opal/runtime/opal.h"

extern void ddtc_provider_register(void) __attribute__((weak));

static opal_datatype_t *build(const char *kind)
{
    opal_datatype_t *type = opal_datatype_create(1024);
    if (!strcmp(kind, "contiguous")) {
        opal_datatype_add(type, &opal_datatype_int4, 100, 0, 4);
    } else if (!strcmp(kind, "vector")) {
        opal_datatype_add(type, &opal_datatype_float8, 100, 0, 24);
    } else if (!strcmp(kind, "indexed")) {
        for (int i = 0, at = 0; i < 500; i++, at += 16 + 8 * (i % 3)) opal_datatype_add(type, &opal_datatype_float8, 1, at, 8);
    } else {
        opal_datatype_add(type, &opal_datatype_int4, 1, 0, 4);
        opal_datatype_add(type, &opal_datatype_float8, 1, 8, 8);
        opal_datatype_add(type, &opal_datatype_float4, 3, 16, 4);
        opal_datatype_resize(type, 0, 32);
    }
    opal_datatype_commit(type);
    return type;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Returns the time of one call in nanoseconds, the minimum over 15 batches of 200 calls. In each
 * call, a convertor is prepared, packs or unpacks all bytes, and is cleaned up, as in a request. */
static double timed(const opal_datatype_t *type, size_t count, unsigned char *memory, unsigned char *stream, int send)
{
    opal_convertor_t *convertor = opal_convertor_create(opal_local_arch, 0);
    uint32_t clean = convertor->flags;
    double minimum = 1e30;
    for (int batch = 0; batch < 15; batch++) {
        double start = now();
        for (int i = 0; i < 200; i++) {
            struct iovec iov = {stream, type->size * count};
            uint32_t one = 1;
            size_t max = iov.iov_len;
            convertor->flags = clean;
            if (send) {
                opal_convertor_prepare_for_send(convertor, type, count, memory);
                opal_convertor_pack(convertor, &iov, &one, &max);
            } else {
                opal_convertor_prepare_for_recv(convertor, type, count, memory);
                opal_convertor_unpack(convertor, &iov, &one, &max);
            }
            opal_convertor_cleanup(convertor);
        }
        double each = (now() - start) / 200;
        if (each < minimum) minimum = each;
    }
    OBJ_RELEASE(convertor);
    return minimum;
}

int main(int argc, char **argv)
{
    static unsigned char memory[1 << 20], stream[1 << 17];
    if (argc < 2) return 2;
    char what[16];
    snprintf(what, sizeof what, "%s", argv[1]);
    const char *kind = argc > 2 ? argv[2] : "";
#ifdef CONVERTOR_ACCELERATOR /* 6.0 */
    opal_init(&argc, &argv); /* in 6.0, preparing a convertor asks the accelerator framework */
#else
    opal_init_util(&argc, &argv);
    opal_datatype_init();
#endif
    if (!strcmp(what, "time")) {
        static const char *const kinds[] = {"structure", "indexed", "vector"};
        opal_datatype_t *types[2][3];
        for (int after = 0; after < 2; after++) {
            if (after && ddtc_provider_register) ddtc_provider_register();
            for (int k = 0; k < 3; k++) types[after][k] = build(kinds[k]);
        }
        for (int k = 0; k < 3; k++) {
            size_t count = 65536 / types[0][k]->size;
            double ns[4];
            for (int way = 0; way < 4; way++) ns[way] = timed(types[way & 1][k], count, memory, stream, way < 2);
            printf("%s: pack %.0f -> %.0f ns, unpack %.0f -> %.0f ns\n", kinds[k], ns[0], ns[1], ns[2], ns[3]);
        }
        return 0;
    }
    if (ddtc_provider_register) ddtc_provider_register();
    opal_convertor_t *convertor = opal_convertor_create(opal_local_arch, 0);
    uint32_t clean = convertor->flags;
    opal_datatype_t *type = build(kind);
    for (int i = 0; i < 1000; i++) {
        struct iovec iov = {stream, 65536 / type->size * type->size};
        uint32_t one = 1;
        size_t max = iov.iov_len;
        convertor->flags = clean;
        if (!strcmp(what, "pack")) {
            opal_convertor_prepare_for_send(convertor, type, iov.iov_len / type->size, memory);
            opal_convertor_pack(convertor, &iov, &one, &max);
        } else if (!strcmp(what, "unpack")) {
            opal_convertor_prepare_for_recv(convertor, type, iov.iov_len / type->size, memory);
            opal_convertor_unpack(convertor, &iov, &one, &max);
        } else if (!strcmp(what, "recv")) {
            opal_convertor_prepare_for_recv(convertor, type, 1 + i % 7, memory);
        } else {
            opal_convertor_prepare_for_send(convertor, type, 1 + i % 7, memory);
            if (!strcmp(what, "position")) {
                size_t position = 8;
#ifdef CONVERTOR_ACCELERATOR
                convertor->fPosition(convertor, &position);
#else
                opal_convertor_set_position_nocheck(convertor, &position);
#endif
            }
        }
        opal_convertor_cleanup(convertor);
    }
    return 0;
}
