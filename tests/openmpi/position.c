/* Sets the position of convertors forward, and compares what they then pack with the same part of
 * what a convertor packs in one call. In unmodified Open MPI 6.0.0a1, a convertor that has stopped
 * inside of a loop of the description and is set to a position in a later iteration packs more bytes
 * than there are. The exit status is 1 if something differs. Like Open MPI's own datatype tests, the
 * program does not call MPI_Init. */
#include "opal_config.h"

#include <stdio.h>
#include <string.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"
#include "opal/runtime/opal.h"

enum { COUNT = 4 };

/* There is room for what is packed beyond the end, and read beyond the data. */
static unsigned char memory[1 << 20], whole[1 << 13], rest[1 << 20];

static opal_convertor_t *prepared(const opal_datatype_t *type)
{
    opal_convertor_t *convertor = opal_convertor_create(opal_local_arch, 0);
    opal_convertor_prepare_for_send(convertor, type, COUNT, memory);
    return convertor;
}

/* Packs at most `length` bytes, and returns how many were packed. */
static size_t packed(opal_convertor_t *convertor, unsigned char *bytes, size_t length)
{
    struct iovec iov = {bytes, length};
    uint32_t one = 1;
    size_t max = length;
    opal_convertor_pack(convertor, &iov, &one, &max);
    return max;
}

int main(int argc, char **argv)
{
    opal_datatype_t *inner = opal_datatype_create(16), *type = opal_datatype_create(16);
    int tried = 0, wrong = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    opal_init(&argc, &argv);
    /* 20 structures {char, double, short}, and 3 ints. */
    opal_datatype_add(inner, &opal_datatype_int1, 1, 0, 1);
    opal_datatype_add(inner, &opal_datatype_float8, 1, 8, 8);
    opal_datatype_add(inner, &opal_datatype_int2, 1, 18, 2);
    opal_datatype_resize(inner, 0, 32);
    opal_datatype_add(type, inner, 20, 0, 32);
    opal_datatype_add(type, &opal_datatype_int4, 3, 700, 4);
    opal_datatype_resize(type, 0, 800);
    opal_datatype_commit(type);
    for (size_t i = 0; i < sizeof memory; i++) memory[i] = (unsigned char)(i * 7 + i / 251);

    size_t size = type->size * COUNT;
    packed(prepared(type), whole, size);
    for (size_t first = 1; first < size && wrong < 5; first++)
        for (size_t asked = first; asked < size && wrong < 5; asked++) {
            opal_convertor_t *convertor = prepared(type);
            size_t position = asked;
            packed(convertor, rest, first);
            opal_convertor_set_position(convertor, &position);
            size_t length = packed(convertor, rest, sizeof rest);
            tried++;
            if (position + length != size || memcmp(rest, whole + position, size - position)) {
                wrong++;
                printf("%zu bytes packed, then from position %zu (asked for %zu): %zu bytes, but %zu are left\n", first, position, asked, length,
                       size - position);
            }
            OBJ_RELEASE(convertor);
        }
    printf("positions: %d tried, %d wrong\n", tried, wrong);
    return wrong != 0;
}
