/* Compares how an Open MPI 6.0 with mover-provider-6.patch packs and unpacks random datatypes with
 * and without a mover provider. A "mover" is what the provider keeps for a committed datatype. Each
 * datatype is made and committed twice: before a provider is registered, so that Open MPI's own
 * functions move its bytes, and afterwards, so that the provider does. The former are called plain
 * here. The program checks pieces that end anywhere, changes of the position, convertors whose
 * fAdvance is swapped, clones, opal_convertor_raw, and datatypes that are duplicated or resized.
 *
 *     judge6 [TYPES [SEED]]
 *
 * Like Open MPI's own datatype tests, the program does not call MPI_Init. The exit status is 0 only
 * if there is no difference, at least a quarter of the datatypes were compared and at least a quarter
 * of these had movers, the provider packed and unpacked bytes and refused no datatype that it wanted,
 * and it was told to destroy as many movers as it had made. */
#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_convertor_internal.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"
#include "opal/runtime/opal.h"
#include "judge.h"

#define MAX_SPAN (1 << 16) /* maximum number of bytes of memory over which the data of a case extend */

extern void ddtc_provider_register(void);
extern struct {
    unsigned long commits, refused, destructs, sends, receives, bytes_packed, bytes_unpacked;
} ddtc_provider_counts;

/* Returns a random datatype with up to `depth` further levels. Each of its members is repeated at a
 * stride, which may be negative. No two entries overlap. */
static opal_datatype_t *build(int depth)
{
    static const opal_datatype_t *const named[] = {
        &opal_datatype_int1,   &opal_datatype_int2,    &opal_datatype_int4,           &opal_datatype_float4,
        &opal_datatype_float8, &opal_datatype_float16, &opal_datatype_double_complex, &opal_datatype_long_double_complex};
    /* opal_datatype_add makes more room, but may leave none for the entry that commit adds. */
    opal_datatype_t *made = opal_datatype_create(512);
    ptrdiff_t at = (ptrdiff_t)random_below(3) * 8 - 8;

    for (int members = 1 + random_below(4); members > 0; members--) {
        opal_datatype_t *inner = depth && random_below(3) ? build(depth - 1) : NULL;
        const opal_datatype_t *part = inner ? inner : named[random_below(sizeof named / sizeof *named)];
        ptrdiff_t extent = part->ub - part->lb, length = part->true_ub - part->true_lb;
        ptrdiff_t stride = (extent > length ? extent : length) + (random_below(2) ? 8 * random_below(4) : 0);
        size_t times = 1 + random_below(6);
        int backwards = random_below(8) == 0;
        /* opal_datatype_add takes a stride of -1 for the extent, and it may keep the stride of a
         * single repetition as an extent that the datatype does not have. */
        if (times == 1 || (backwards && stride == 1))
            opal_datatype_add(made, part, times, at - part->true_lb, extent);
        else if (backwards) /* the last repetition is the one at `at` */
            opal_datatype_add(made, part, times, at - part->true_lb + (ptrdiff_t)(times - 1) * stride, -stride);
        else
            opal_datatype_add(made, part, times, at - part->true_lb, stride);
        at += stride * (ptrdiff_t)times + random_below(3) * 8;
        if (inner) opal_datatype_destroy(&inner);
    }
    if (!random_below(3)) opal_datatype_resize(made, made->lb, made->ub - made->lb + 8 * random_below(3));
    return made;
}

static opal_datatype_t *duplicate(const opal_datatype_t *type)
{
    opal_datatype_t *copy = opal_datatype_create(type->desc.used + 2);
    opal_datatype_clone(type, copy);
    return copy;
}

static unsigned char memory[2][MAX_SPAN + 256], inverted[MAX_SPAN + 256], stream[2][MAX_SPAN + 256];

/* Sets the padding of all long double _Complex to 0x55 in one instance of a datatype at `at`, whose
 * description has `used` entries. On x86-64, each of its two numbers has 10 bytes and 6 bytes of
 * padding. Open MPI copies such elements by assignments in C, which may leave the padding behind, or
 * by memcpy, which does not. Where the padding is 0x55 in all memory and in all streams, it makes no
 * difference how an element is copied. */
static void hold_padding(const dt_elem_desc_t *desc, size_t used, unsigned char *at)
{
    for (size_t i = 0; i < used; i++) {
        const ddt_elem_desc_t *element = &desc[i].elem;
        if (OPAL_DATATYPE_LOOP == element->common.type) {
            for (size_t n = 0; n < desc[i].loop.loops; n++)
                hold_padding(&desc[i + 1], desc[i].loop.items - 1, at + (ptrdiff_t)n * desc[i].loop.extent);
            i += desc[i].loop.items; /* to the END_LOOP entry of this loop */
        } else if (OPAL_DATATYPE_LONG_DOUBLE_COMPLEX == element->common.type) {
            for (size_t n = 0; n < element->count; n++)
                for (size_t byte = 0; byte < element->blocklen * sizeof(long double _Complex); byte++)
                    if (byte % 16 >= 10) at[element->disp + (ptrdiff_t)n * element->extent + byte] = 0x55;
        }
    }
}

/* Fills memory[0] with random bytes and `inverted` with their complement, except for the padding in
 * `count` instances at `offset`, which is 0x55 in both. */
static void fill(const opal_datatype_t *type, size_t count, ptrdiff_t offset)
{
    for (size_t i = 0; i < sizeof memory[0]; i++) inverted[i] = (unsigned char)~(memory[0][i] = (random_below(2), state >> 20));
    for (size_t n = 0; n < count; n++, offset += type->ub - type->lb) {
        hold_padding(type->desc.desc, type->desc.used, memory[0] + offset);
        hold_padding(type->desc.desc, type->desc.used, inverted + offset);
    }
}

static opal_convertor_t *prepared(const opal_datatype_t *type, size_t count, unsigned char *base, int send)
{
    opal_convertor_t *convertor = opal_convertor_create(opal_local_arch, 0);
    if (send)
        opal_convertor_prepare_for_send(convertor, type, count, base);
    else
        opal_convertor_prepare_for_recv(convertor, type, count, base);
    return convertor;
}

/* Packs all data into `bytes`, or unpacks all data from it, in one call of a new convertor. Before
 * packing, all of `bytes` is set to 0x55, the value of the padding. */
static void whole(const opal_datatype_t *type, size_t count, unsigned char *base, unsigned char *bytes, int send)
{
    opal_convertor_t *convertor = prepared(type, count, base, send);
    struct iovec iov = {bytes, convertor->local_size};
    uint32_t one = 1;
    size_t max = iov.iov_len;
    if (send) memset(bytes, 0x55, sizeof stream[0]);
    if (send)
        opal_convertor_pack(convertor, &iov, &one, &max);
    else
        opal_convertor_unpack(convertor, &iov, &one, &max);
    OBJ_RELEASE(convertor);
}

/* Moves one call's worth of up to three iovec entries of random lengths, at most up to position
 * `end`, and checks what the call returns. `bytes` is the whole stream. Open MPI's own pack function
 * fills entries only up to the end of a predefined element, so the lengths are compared only if the
 * convertor has a mover, and only then entries may be shorter than an element. For contiguous
 * datatypes with gaps around them, its pack function may report one entry too few, so the sum of the
 * lengths is not compared where it packs. */
static void piece(opal_convertor_t *convertor, unsigned char *bytes, size_t end, int send)
{
    int moved = convertor->fPosition == opal_convertor_position_mover;
    size_t start = convertor->bConverted, at = start, max = 0, lengths[3], sum = 0;
    struct iovec iov[3];
    uint32_t entries = moved || !send ? 1 + random_below(3) : 1, asked = entries;

    for (uint32_t i = 0; i < entries; i++) {
        size_t length = 1 + random_below(random_below(2) ? 40 : 4000);
        if (!moved && send) length += 32;
        if (length > end - at) length = end - at;
        iov[i] = (struct iovec){bytes + at, lengths[i] = length};
        at += length;
    }
    int rc = send ? opal_convertor_pack(convertor, iov, &entries, &max) : opal_convertor_unpack(convertor, iov, &entries, &max);
    for (uint32_t i = 0; i < entries; i++) sum += iov[i].iov_len;
    CHECK((sum == max || (send && !moved)) && entries <= asked && convertor->bConverted == start + max, "%zu %zu %u %zu", sum, max, entries, convertor->bConverted);
    CHECK(rc == (start + max == convertor->local_size) && rc == !!(convertor->flags & CONVERTOR_COMPLETED), "%d at %zu of %zu, flags %x", rc,
          start + max, convertor->local_size, convertor->flags);
    if (!moved) return;
    CHECK(max == at - start, "%zu of %zu", max, at - start);
    for (uint32_t i = 0; i < entries; i++) CHECK(iov[i].iov_len == lengths[i], "%zu %zu", iov[i].iov_len, lengths[i]);
}

/* Moves pieces until the position `end` is reached or a difference is found. */
static void pieces(opal_convertor_t *convertor, unsigned char *bytes, size_t end, int send)
{
    for (int before = differences; convertor->bConverted < end && differences == before;) piece(convertor, bytes, end, send);
}

/* Lists memory by opal_convertor_raw up to the end of at most `calls` calls, and compares the bytes
 * there with the stream. */
static void raw(opal_convertor_t *convertor, const unsigned char *bytes, int calls)
{
    for (int rc = 0; !rc && calls > 0; calls--) {
        struct iovec list[3];
        uint32_t entries = 1 + random_below(3);
        size_t start = convertor->bConverted, at = start, length = 0;
        rc = opal_convertor_raw(convertor, list, &entries, &length);
        for (uint32_t i = 0; i < entries; i++) {
            CHECK(at + list[i].iov_len <= convertor->local_size, "raw %zu %zu", at, list[i].iov_len);
            CHECK(!memcmp(list[i].iov_base, bytes + at, list[i].iov_len), "raw at %zu, %zu bytes", at, list[i].iov_len);
            at += list[i].iov_len;
        }
        CHECK(at == start + length && at == convertor->bConverted && length > 0, "raw from %zu to %zu, %zu %zu", start, at, length,
              convertor->bConverted);
        CHECK(rc == (at == convertor->local_size), "raw %d at %zu of %zu", rc, at, convertor->local_size);
    }
}

/* A wrapper of pack and unpack as vprotocol/pessimist has one: it takes the place of fAdvance, and
 * for each call restores the flags and the function that it found in the beginning. */
static uint32_t wrapped_flags;
static convertor_advance_fct_t wrapped_advance;
static unsigned long wrapped_bytes;

static int32_t wrapper(opal_convertor_t *convertor, struct iovec *iov, uint32_t *out_size, size_t *max_data)
{
    int send = !!(convertor->flags & CONVERTOR_SEND);
    convertor->flags = wrapped_flags;
    convertor->fAdvance = wrapped_advance;
    int32_t rc = send ? opal_convertor_pack(convertor, iov, out_size, max_data) : opal_convertor_unpack(convertor, iov, out_size, max_data);
    wrapped_bytes += *max_data;
    convertor->flags &= ~CONVERTOR_NO_OP;
    convertor->fAdvance = wrapper;
    return rc;
}

static void wrap(opal_convertor_t *convertor)
{
    wrapped_flags = convertor->flags;
    wrapped_advance = convertor->fAdvance;
    convertor->flags &= ~CONVERTOR_NO_OP;
    convertor->fAdvance = wrapper;
}

/* Makes a random mixture of all calls on a convertor with a mover. `bytes` must be the packed data
 * of the memory, so that unpacking changes nothing there. */
static void mixture(opal_convertor_t *convertor, unsigned char *bytes, int send)
{
    for (int turn = 0, before = differences; turn < 40 && differences == before; turn++) {
        size_t position = random_below(convertor->local_size), to = position;
        if (convertor->bConverted == convertor->local_size || !random_below(3)) {
            opal_convertor_set_position(convertor, &to);
            CHECK(to == position && convertor->bConverted == position, "%zu to %zu %zu", position, to, convertor->bConverted);
        }
        switch (random_below(3)) {
        case 0: raw(convertor, bytes, 1 + random_below(3)); break;
        case 1: {
            opal_convertor_t clone;
            int with_stack = random_below(2);
            size_t from = convertor->bConverted;
            OBJ_CONSTRUCT(&clone, opal_convertor_t);
            opal_convertor_clone(convertor, &clone, with_stack);
            if (!with_stack) opal_convertor_set_position(&clone, &from);
            CHECK(from == convertor->bConverted && clone.bConverted == from, "clone %d: %zu %zu", with_stack, from, clone.bConverted);
            if (random_below(2))
                raw(&clone, bytes, 1000);
            else
                pieces(&clone, bytes, clone.local_size, send);
            OBJ_DESTRUCT(&clone);
            break;
        }
        default: piece(convertor, bytes, convertor->local_size, send);
        }
    }
}

static void compare(const opal_datatype_t *plain, const opal_datatype_t *moved, size_t count)
{
    size_t size = plain->size * count;
    unsigned char *base[2] = {memory[0] + 64 - plain->true_lb, memory[1] + 64 - plain->true_lb};
    opal_convertor_t *convertor;
    int before = differences;

    fill(plain, count, 64 - plain->true_lb);
    memset(stream, 0x55, sizeof stream);
    whole(plain, count, base[0], stream[0], 1);

    /* Pack in pieces that follow each other. */
    convertor = prepared(moved, count, base[0], 1);
    CHECK(!moved->mover == !(convertor->fPosition == opal_convertor_position_mover), "mover %p", moved->mover);
    pieces(convertor, stream[1], size, 1);
    CHECK(differences == before && !memcmp(stream[0], stream[1], sizeof stream[0]), "what was packed");
    OBJ_RELEASE(convertor);

    /* Receive pieces that end inside of predefined elements, as a mover packs them, with a mover and
     * without one. Everything between the data must stay. */
    for (int way = 0; way < 2; way++) {
        memcpy(memory[1], inverted, sizeof memory[1]);
        convertor = prepared(way ? moved : plain, count, base[1], 0);
        pieces(convertor, stream[0], size, 0);
        OBJ_RELEASE(convertor);
        whole(plain, count, base[1], stream[1], 1);
        CHECK(differences == before && !memcmp(stream[0], stream[1], size), "what was received, way %d", way);
        whole(plain, count, inverted + 64 - plain->true_lb, stream[1], 1);
        whole(plain, count, base[1], stream[1], 0);
        for (size_t i = 0; i < sizeof memory[1]; i++)
            CHECK(memory[1][i] == inverted[i], "way %d wrote outside of the data, at %zu", way, i);
    }
    if (!moved->mover) return;

    /* A clone in the middle of a receive, perhaps inside of an element, takes the rest. */
    for (int with_stack = 0; with_stack < 2; with_stack++) {
        size_t middle = random_below(size), from = middle;
        opal_convertor_t clone;
        memcpy(memory[1], inverted, sizeof memory[1]);
        convertor = prepared(moved, count, base[1], 0);
        pieces(convertor, stream[0], middle, 0);
        OBJ_CONSTRUCT(&clone, opal_convertor_t);
        opal_convertor_clone(convertor, &clone, with_stack);
        if (!with_stack) opal_convertor_set_position(&clone, &from);
        pieces(&clone, stream[0], size, 0);
        OBJ_DESTRUCT(&clone);
        whole(plain, count, base[1], stream[1], 1);
        CHECK(differences == before && !memcmp(stream[0], stream[1], size), "a clone in the middle of a receive, at %zu", middle);
        OBJ_RELEASE(convertor);
    }

    /* All calls in a random order, on a convertor that packs and on one that unpacks, unwrapped and
     * wrapped. A wrapped one must move all its bytes through the wrapper. */
    for (int way = 0; way < 4; way++) {
        int send = way & 1, wrapped = way & 2;
        memcpy(memory[1], memory[0], sizeof memory[1]);
        memcpy(stream[1], stream[0], sizeof stream[1]);
        convertor = prepared(moved, count, base[1], send);
        if (wrapped) wrap(convertor);
        mixture(convertor, stream[1], send);
        CHECK(!wrapped || convertor->fAdvance == wrapper, "the wrapper is gone");
        OBJ_RELEASE(convertor);
        CHECK(differences == before, "in the mixture %d", way);
        CHECK(!memcmp(memory[0], memory[1], sizeof memory[1]) && !memcmp(stream[0], stream[1], sizeof stream[1]), "after the mixture %d", way);
    }
}

int main(int argc, char **argv)
{
    long types = argc > 1 ? atol(argv[1]) : 500, compared = 0, movers = 0;
    unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    opal_datatype_t **plain = calloc(types, sizeof *plain), **plain_wide = calloc(types, sizeof *plain_wide);

    opal_init(&argc, &argv);
    for (int after = 0; after < 2; after++) {
        if (after) ddtc_provider_register();
        for (type_number = 0; type_number < types && differences < 10; type_number++) {
            state = (seed * 1000003 + type_number) * 0x9e3779b97f4a7c15ULL | 1;
            for (int i = 0; i < 8; i++) random_below(2);
            /* `type` and plain[type_number] are made by the same calls. The only difference is that
             * `type` is committed after the provider was registered. */
            opal_datatype_t *type = build(random_below(4)), *copy, *wide;
            size_t count = 1 + random_below(5);
            ptrdiff_t extent = type->ub - type->lb, span = type->true_ub - type->true_lb;
            opal_datatype_commit(type);
            if (!after) {
                plain[type_number] = type;
                plain_wide[type_number] = duplicate(type);
                opal_datatype_resize(plain_wide[type_number], type->lb, extent + 16);
                continue;
            }
            if (extent >= span && span + (extent + 16) * (ptrdiff_t)count < MAX_SPAN && type->size * count < MAX_SPAN / 2) {
                compared++;
                movers += !!type->mover;
                compare(plain[type_number], type, count);
                copy = duplicate(type);
                if (!copy->mover != !type->mover) differences++, printf("type %ld: its duplicate has mover %p\n", type_number, copy->mover);
                compare(plain[type_number], copy, count);
                /* A resized datatype has another extent, so it needs another mover. */
                wide = duplicate(type);
                opal_datatype_resize(wide, type->lb, extent + 16);
                compare(plain_wide[type_number], wide, count);
                opal_datatype_destroy(&copy);
                opal_datatype_destroy(&wide);
            }
            opal_datatype_destroy(&type);
            opal_datatype_destroy(&plain[type_number]);
            opal_datatype_destroy(&plain_wide[type_number]);
        }
    }
    printf("%ld types compared, %ld with movers, %d differences; commits %lu, refused %lu, destructs %lu, packed %lu, unpacked %lu, wrapped %lu\n",
           compared, movers, differences, ddtc_provider_counts.commits, ddtc_provider_counts.refused, ddtc_provider_counts.destructs,
           ddtc_provider_counts.bytes_packed, ddtc_provider_counts.bytes_unpacked, wrapped_bytes);
    if (compared < types / 4 || movers < compared / 4 || !ddtc_provider_counts.bytes_packed || !ddtc_provider_counts.bytes_unpacked || !wrapped_bytes) return 1;
    return differences || ddtc_provider_counts.refused || ddtc_provider_counts.commits != ddtc_provider_counts.destructs;
}
