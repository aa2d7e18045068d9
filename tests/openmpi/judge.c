/* Compares how an Open MPI with mover-provider.patch packs and unpacks random datatypes with and
 * without a mover provider. A "mover" is what the provider keeps for a committed type. Each type is
 * made and committed twice: before a provider is registered, so that Open MPI's generic functions
 * move its bytes, and afterwards, so that the provider does. The program makes the same calls on a
 * convertor of either type, and compares the results of each call. It packs in pieces, changes
 * positions while packing, unpacks in pieces and in different orders, calls opal_convertor_raw,
 * clones convertors, and duplicates and resizes types.
 *
 *     judge [TYPES [SEED]]
 *
 * Like Open MPI's own datatype tests, the program does not call MPI_Init. The exit status is 0 only
 * if there is no difference, at least a quarter of the types were compared, the provider packed and
 * unpacked bytes and refused no type, and it was told to destroy as many movers as it had made. */
#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_convertor_internal.h"
#include "opal/datatype/opal_datatype_internal.h"
#include "opal/runtime/opal.h"
#include "judge.h"

#define MAX_SPAN (1 << 16) /* maximum number of bytes of memory over which the data of a case extend */

extern void ddtc_provider_register(void) __attribute__((weak));
extern struct {
    unsigned long commits, refused, destructs, sends, receives, bytes_packed, bytes_unpacked;
} ddtc_provider_counts __attribute__((weak));

/* Returns a random type, whose entries are placed apart from each other, with up to `depth` further
 * levels of constructors. The types that it is made of are freed. */
static ompi_datatype_t *build(int depth)
{
    static ompi_datatype_t *const named[] = {&ompi_mpi_char.dt,   &ompi_mpi_short.dt,  &ompi_mpi_int.dt,         &ompi_mpi_double.dt,
                                             &ompi_mpi_double.dt, &ompi_mpi_float.dt,  &ompi_mpi_long_double.dt, &ompi_mpi_c_double_complex.dt,
                                             &ompi_mpi_byte.dt,   &ompi_mpi_c_long_double_complex.dt};
    ompi_datatype_t *parts[4], *made = NULL;
    int members = 1 + random_below(4), lengths[4], shape = random_below(5);
    ptrdiff_t places[4], at = (ptrdiff_t)random_below(3) * 8 - 8, lb, extent;

    for (int i = 0; i < members; i++) {
        parts[i] = depth && random_below(3) ? build(depth - 1) : named[random_below(sizeof named / sizeof *named)];
        if (shape != 4) members = 1;
        ompi_datatype_get_extent(parts[i], &lb, &extent);
        ptrdiff_t true_lb, true_extent;
        ompi_datatype_get_true_extent(parts[i], &true_lb, &true_extent);
        lengths[i] = 1 + random_below(3);
        places[i] = at - true_lb;
        at += extent * (lengths[i] - 1) + (true_extent > extent ? true_extent : extent) + random_below(3) * 8;
    }
    ompi_datatype_get_extent(parts[0], &lb, &extent);
    switch (shape) {
    case 0: ompi_datatype_create_contiguous(1 + random_below(5), parts[0], &made); break;
    case 1: {
        int length = 1 + random_below(4);
        ompi_datatype_create_vector(1 + random_below(6), length, length + random_below(4), parts[0], &made);
        break;
    }
    case 2: {
        int length = 1 + random_below(4);
        ompi_datatype_create_hvector(1 + random_below(6), length, extent * length + 8 * random_below(4), parts[0], &made);
        break;
    }
    case 3: {
        int count = 1 + random_below(6), blocks[6], where[6], next = random_below(3);
        for (int i = 0; i < count; i++) {
            blocks[i] = random_below(4);
            where[i] = next;
            next += blocks[i] + random_below(3);
        }
        blocks[0] += !blocks[0];
        if (count > 1 && where[1] < where[0] + blocks[0])
            for (int i = 1; i < count; i++) where[i]++;
        ompi_datatype_create_indexed(count, blocks, where, parts[0], &made);
        break;
    }
    default: ompi_datatype_create_struct(members, lengths, places, parts, &made);
    }
    if (!random_below(3)) {
        ompi_datatype_t *wide = NULL;
        ompi_datatype_get_extent(made, &lb, &extent);
        ompi_datatype_create_resized(made, lb, extent + 8 * random_below(3), &wide);
        ompi_datatype_destroy(&made);
        made = wide;
    }
    for (int i = 0; i < members; i++)
        if (!ompi_datatype_is_predefined(parts[i])) ompi_datatype_destroy(&parts[i]);
    return made;
}

static unsigned char memory[2][MAX_SPAN + 256], stream[2][MAX_SPAN + 256];

static opal_convertor_t *prepared(const ompi_datatype_t *type, size_t count, unsigned char *base, int send)
{
    opal_convertor_t *convertor = opal_convertor_create(opal_local_arch, 0);
    if (send)
        opal_convertor_prepare_for_send(convertor, &type->super, count, base);
    else
        opal_convertor_prepare_for_recv(convertor, &type->super, count, base);
    return convertor;
}

/* Packs at most `limit` bytes from the beginning of the data with a new convertor. Returns the
 * number of packed bytes. It may be less than `limit`, because Open MPI packs only whole basic
 * elements. */
static size_t whole(const ompi_datatype_t *type, size_t count, unsigned char *base, size_t limit, unsigned char *into)
{
    opal_convertor_t *convertor = prepared(type, count, base, 1);
    struct iovec iov = {into, limit < convertor->local_size ? limit : convertor->local_size};
    uint32_t one = 1;
    size_t max = iov.iov_len;
    opal_convertor_pack(convertor, &iov, &one, &max);
    OBJ_RELEASE(convertor);
    return max;
}

/* Makes the same pack or unpack call on both convertors, with up to three entries of an iovec, and
 * checks that the results are the same. When it unpacks, the bytes come from stream[0]. When it
 * packs, entries may end inside of a basic element, so a convertor leaves the end of an entry
 * empty. When it unpacks, entries end after whole basic elements: Open MPI's generic function joins
 * the two halves of an element in 16 bytes, which is too little for a long double complex of 32
 * bytes. */
static void piece(opal_convertor_t *pair[2], int send)
{
    struct iovec iov[2][3];
    uint32_t entries[2];
    size_t max[2] = {0, 0}, at = pair[0]->bConverted;
    int rc[2];

    entries[0] = entries[1] = 1 + random_below(3);
    for (uint32_t i = 0; i < entries[0]; i++) {
        size_t length = 1 + random_below(random_below(2) ? 40 : 4000), left = (send ? MAX_SPAN : pair[0]->local_size) - at;
        if (!send && length < 32) length += 32;
        if (length > left) length = left;
        if (!send && left) length = opal_convertor_whole_elements(pair[0], at + length) - at;
        for (int w = 0; w < 2; w++) iov[w][i] = (struct iovec){(send ? stream[w] : stream[0]) + at, length};
        at += length;
    }
    for (int w = 0; w < 2; w++)
        rc[w] = send ? opal_convertor_pack(pair[w], iov[w], &entries[w], &max[w]) : opal_convertor_unpack(pair[w], iov[w], &entries[w], &max[w]);
    CHECK(rc[0] == rc[1] && max[0] == max[1] && entries[0] == entries[1], "%d %d, %zu %zu, %u %u", rc[0], rc[1], max[0], max[1], entries[0],
          entries[1]);
    for (uint32_t i = 0; i < entries[0]; i++)
        CHECK(iov[0][i].iov_len == iov[1][i].iov_len, "%zu %zu", iov[0][i].iov_len, iov[1][i].iov_len);
    CHECK(pair[0]->bConverted == pair[1]->bConverted, "%zu %zu", pair[0]->bConverted, pair[1]->bConverted);
    CHECK((pair[0]->flags & CONVERTOR_COMPLETED) == (pair[1]->flags & CONVERTOR_COMPLETED), "%x %x", pair[0]->flags, pair[1]->flags);
}

static void compare(const ompi_datatype_t *plain, const ompi_datatype_t *moved, size_t count, int served)
{
    size_t size = plain->super.size * count;
    ptrdiff_t low = plain->super.true_lb;
    unsigned char *base[2] = {memory[0] + 64 - low, memory[1] + 64 - low};
    opal_convertor_t *pair[2];

    for (size_t i = 0; i < sizeof memory[0]; i++) memory[0][i] = (random_below(2), state >> 20);

    /* Check packing in pieces that follow each other, without changes of the position. */
    pair[0] = prepared(plain, count, base[0], 1);
    pair[1] = prepared(moved, count, base[0], 1);
    CHECK(!(pair[0]->flags & CONVERTOR_MOVER), "a type of before");
    CHECK(!served == !(pair[1]->flags & CONVERTOR_MOVER), "served %d, flags %x", served, pair[1]->flags);
    memset(stream, 0x55, sizeof stream);
    for (int before = differences; pair[0]->bConverted < size;) {
        piece(pair, 1);
        if (differences != before) return;
    }
    CHECK(!memcmp(stream[0], stream[1], sizeof stream[0]), "what was packed");

    /* Check packing after changes of the position, with only the convertor that has a mover. The
     * position that is reached and the end of each piece must be those at which a new convertor
     * without a mover ends, if it packs from the beginning. (A convertor without a mover whose
     * position is changed cannot be compared: in 4.1.4, its generic function then packs too much if
     * loops are nested.) */
    whole(plain, count, base[0], size, stream[0]);
    for (int jumps = 0; jumps < 20 && served; jumps++) {
        size_t position = random_below(size), length = 1 + random_below(4000), at = position, max = length;
        opal_convertor_set_position(pair[1], &position);
        CHECK(position == whole(plain, count, base[0], at, stream[1]) && position == pair[1]->bConverted, "%zu to %zu", at, position);
        struct iovec iov = {stream[1] + position, length};
        uint32_t one = 1;
        int rc = opal_convertor_pack(pair[1], &iov, &one, &max);
        CHECK(!memcmp(stream[0] + position, stream[1] + position, max), "packed from %zu", position);
        CHECK(position + max == whole(plain, count, base[0], position + length, stream[1]) && max == iov.iov_len, "%zu from %zu", max, position);
        CHECK(rc == (position + max == size) && rc == !!(pair[1]->flags & CONVERTOR_COMPLETED), "%d at %zu", rc, position + max);
    }

    /* Clone the convertor with a mover twice, once with a copy of its stack and once without a
     * stack. Each clone packs the rest of the data from a random position on. */
    memset(stream[1], 0x55, sizeof stream[1]);
    size_t position = random_below(size);
    opal_convertor_set_position(pair[1], &position);
    opal_convertor_t clones[2];
    for (int copy = 0; copy < 2; copy++) {
        size_t from = position;
        struct iovec rest = {stream[1] + position, size - position};
        uint32_t one = 1;
        size_t max = size - position;
        OBJ_CONSTRUCT(&clones[copy], opal_convertor_t);
        opal_convertor_clone(pair[1], &clones[copy], copy);
        if (!copy) opal_convertor_set_position(&clones[copy], &from);
        CHECK(from == position, "%zu %zu", from, position);
        opal_convertor_pack(&clones[copy], &rest, &one, &max);
        CHECK(max == size - position && !memcmp(stream[0] + position, stream[1] + position, max), "clone %d", copy);
        OBJ_DESTRUCT(&clones[copy]);
        memset(stream[1], 0x55, sizeof stream[1]);
    }
    /* Check opal_convertor_raw, which returns the places of the data in memory, on the convertor
     * whose bytes the provider moves. The call makes the convertor go on with Open MPI's own
     * functions. Start at position 0: from positions in the middle, opal_convertor_raw of 4.1.4 may
     * never return, with mover-provider.patch or without. */
    position = 0;
    size_t at = position;
    int rc = !served;
    opal_convertor_set_position(pair[1], &position);
    while (!rc && at < size) {
        struct iovec list[3];
        uint32_t entries = 3;
        size_t length = size;
        rc = opal_convertor_raw(pair[1], list, &entries, &length);
        for (uint32_t i = 0; i < entries; i++) {
            CHECK(at + list[i].iov_len <= size, "raw %zu %zu", at, list[i].iov_len);
            memcpy(stream[1] + at, list[i].iov_base, list[i].iov_len);
            at += list[i].iov_len;
        }
    }
    CHECK(!served || !memcmp(stream[0] + position, stream[1] + position, size - position), "raw from %zu", position);
    OBJ_RELEASE(pair[0]);
    OBJ_RELEASE(pair[1]);

    /* Check unpacking. First both convertors unpack the same random pieces, in order. Then the
     * convertor with a mover unpacks alone, in pieces from the end to the beginning that may end
     * anywhere. */
    for (size_t i = 0; i < size; i++) stream[0][i] = random_below(256);
    memcpy(memory[1], memory[0], sizeof memory[0]);
    pair[0] = prepared(plain, count, base[0], 0);
    pair[1] = prepared(moved, count, base[1], 0);
    while (pair[0]->bConverted < size) {
        int before = differences;
        piece(pair, 0);
        if (differences != before) return;
    }
    CHECK(!memcmp(memory[0], memory[1], sizeof memory[0]), "what was received in order");
    OBJ_RELEASE(pair[0]);
    OBJ_RELEASE(pair[1]);
    /* If blocks of a type overlap, the result depends on the order in which they are written, and
     * packing does not give back the bytes that were unpacked. Such a type is not unpacked in
     * reverse order. */
    whole(plain, count, base[0], size, stream[1]);
    int overlaps = memcmp(stream[0], stream[1], size);
    pair[1] = prepared(moved, count, base[1], 0);
    if ((pair[1]->flags & CONVERTOR_MOVER) && !overlaps) {
        for (size_t i = 0; i < size; i++) stream[1][i] = random_below(256);
        for (size_t end = size; end > 0;) {
            size_t length = 1 + random_below(end < 300 ? end : 300), from = end - length, max = length;
            struct iovec iov = {stream[1] + from, length};
            uint32_t one = 1;
            opal_convertor_set_position(pair[1], &from);
            CHECK(from == end - length, "%zu %zu", from, end - length);
            opal_convertor_unpack(pair[1], &iov, &one, &max);
            CHECK(max == length, "%zu %zu", max, length);
            end -= length;
        }
        whole(plain, count, base[1], size, stream[0]);
        CHECK(!memcmp(stream[0], stream[1], size), "what was received from behind");
    }
    OBJ_RELEASE(pair[1]);
}

int main(int argc, char **argv)
{
    long types = argc > 1 ? atol(argv[1]) : 500, asked = 0, contiguous = 0;
    unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    ompi_datatype_t **plain = calloc(types, sizeof *plain), **plain_wide = calloc(types, sizeof *plain_wide);

    if (!ddtc_provider_register) return puts("no provider is linked"), 2;
    opal_init_util(&argc, &argv);
    ompi_datatype_init();
    for (int after = 0; after < 2; after++) {
        if (after) ddtc_provider_register();
        for (type_number = 0; type_number < types && differences < 10; type_number++) {
            state = (seed * 1000003 + type_number) * 0x9e3779b97f4a7c15ULL | 1;
            for (int i = 0; i < 8; i++) random_below(2);
            ompi_datatype_t *type = build(3), *other[2] = {NULL, NULL};
            size_t count = 1 + random_below(5);
            ptrdiff_t lb, extent, span = type->super.true_ub - type->super.true_lb;
            ompi_datatype_commit(&type);
            ompi_datatype_get_extent(type, &lb, &extent);
            if (!after) {
                plain[type_number] = type;
                ompi_datatype_create_resized(type, lb, extent + 16, &plain_wide[type_number]);
                continue;
            }
            int flat = type->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS;
            contiguous += !!flat;
            /* `type` and plain[type_number] were made by the same calls. The only difference is
             * that `type` was committed after the provider was registered. */
            if (extent >= span && span + extent * (ptrdiff_t)count < MAX_SPAN && type->super.size && type->super.size * count < MAX_SPAN / 2) {
                asked++;
                if (!flat != !!type->super.mover) differences++, printf("type %ld: contiguous %d, mover %p\n", type_number, flat, type->super.mover);
                compare(plain[type_number], type, count, !flat);
                ompi_datatype_duplicate(type, &other[0]);
                compare(plain[type_number], other[0], count, !flat);
                /* A resized type has another extent, so the provider must make another mover for
                 * it. The type is already committed, because the type that it was made of is. */
                ompi_datatype_create_resized(type, lb, extent + 16, &other[1]);
                compare(plain_wide[type_number], other[1], count, !flat);
                ompi_datatype_destroy(&other[0]);
                ompi_datatype_destroy(&other[1]);
            }
            ompi_datatype_destroy(&type);
            ompi_datatype_destroy(&plain[type_number]);
            ompi_datatype_destroy(&plain_wide[type_number]);
        }
    }
    printf("%ld types compared, %ld of %ld contiguous, %d differences; commits %lu, refused %lu, destructs %lu, packed %lu, unpacked %lu\n", asked,
           contiguous, types, differences, ddtc_provider_counts.commits, ddtc_provider_counts.refused, ddtc_provider_counts.destructs,
           ddtc_provider_counts.bytes_packed, ddtc_provider_counts.bytes_unpacked);
    if (asked < types / 4 || !ddtc_provider_counts.bytes_packed || !ddtc_provider_counts.bytes_unpacked || ddtc_provider_counts.refused) return 1;
    return differences || ddtc_provider_counts.commits != ddtc_provider_counts.destructs;
}
