/* A mover provider for an Open MPI 4.1.4 that has mover-provider.patch, or an Open MPI 6.0 that has
 * mover-provider-6.patch: code that ddtc compiles packs and unpacks non-contiguous datatypes. Only
 * the patch for 4.1.4 defines CONVERTOR_MOVER. See packaging/openmpi/README.md. This file is
 * compiled with the headers in Open MPI's source and build folders, and linked with libddtc. It must
 * also be linked with libopen-pal if a program loads Open MPI while it runs, as Python does. When the
 * library is preloaded, it registers itself as the provider:
 *
 *     LD_PRELOAD=$PWD/libddtc_provider.so mpiexec -n 2 ./program
 *
 * With DDTC_PROVIDER_REPORT=1, each process prints when it ends how often the functions of the
 * provider were called. In 6.0, with DDTC_PROVIDER_ALL=1, every non-contiguous datatype gets a
 * mover, also where Open MPI's own functions are as fast. */
#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>

#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "ddtc.h"

/* A datatype whose description has loops that are nested more deeply than this stays with Open
 * MPI's own functions. */
#define DEEPEST 32
#ifndef CONVERTOR_MOVER
/* A datatype gets a mover if Open MPI's functions would move fewer bytes than this per entry of the
 * description that they visit. Measured on a busy Intel Xeon on 2026-11-30: below 64 bytes, none of
 * the 28 rows (14 layouts, packed and unpacked) took more than 0.66 of the time of Open MPI's engine.
 * Without a limit, some took up to 1.9. */
#define LONGEST_VISIT 64
#endif

struct mover {
    const ddtc_committed *committed;
#ifdef CONVERTOR_MOVER
    size_t unit; /* size in bytes of each predefined element of opt_desc, or 0 if sizes differ */
#endif
};

struct counts {
    unsigned long commits, refused, destructs, sends, receives, bytes_packed, bytes_unpacked;
};
/* The numbers of calls and bytes of this process, for tests and for the report. */
__attribute__((visibility("default"))) struct counts ddtc_provider_counts;
#define ADD(FIELD, N) __atomic_fetch_add(&ddtc_provider_counts.FIELD, (N), __ATOMIC_RELAXED)
/* As ADD, for calls of the movers of 6.0. Two locked additions would be a quarter of the time of a
 * call for a few bytes. Without the lock, counts are lost where several threads call at once. */
#define ADD_FAST(FIELD, N)                                                                        \
    __atomic_store_n(&ddtc_provider_counts.FIELD,                                                 \
                     __atomic_load_n(&ddtc_provider_counts.FIELD, __ATOMIC_RELAXED) + (N), __ATOMIC_RELAXED)

static size_t element_size(const ddt_elem_desc_t *element)
{
    return opal_datatype_basicDatatypes[element->common.type]->size;
}

/* Makes a datatype of ddtc from `used` entries of a description, which may contain loops. The
 * caller must free the new type. */
static int decode(const dt_elem_desc_t *desc, size_t used, int depth, ddtc_datatype *newtype)
{
    ddtc_count *lengths = malloc((used + 1) * sizeof *lengths), *places = malloc((used + 1) * sizeof *places);
    ddtc_datatype *types = malloc((used + 1) * sizeof *types);
    size_t members = 0, made = 0;
    int rc = lengths && places && types && depth < DEEPEST ? DDTC_SUCCESS : DDTC_ERR_NO_MEM;

    for (size_t i = 0; rc == DDTC_SUCCESS && i < used; i++) {
        const ddt_elem_desc_t *element = &desc[i].elem;
        lengths[members] = 1;
        places[members] = 0;
        if (OPAL_DATATYPE_LOOP == element->common.type) {
            const ddt_loop_desc_t *loop = &desc[i].loop;
            ddtc_datatype body;
            rc = decode(&desc[i + 1], loop->items - 1, depth + 1, &body);
            if (rc != DDTC_SUCCESS) break;
            rc = ddtc_type_create_hvector_c(loop->loops, 1, loop->extent, body, &types[members]);
            ddtc_type_free(&body);
            i += loop->items; /* to the END_LOOP entry of this loop */
        } else if (!(element->common.flags & OPAL_DATATYPE_FLAG_DATA)) {
            continue;
        } else {
            ddtc_count bytes = element->blocklen * element_size(element);
            places[members] = element->disp;
            if (element->count == 1) {
                lengths[members] = bytes;
                types[members++] = DDTC_TYPE_BYTE;
                continue;
            }
            rc = ddtc_type_create_hvector_c(element->count, bytes, element->extent, DDTC_TYPE_BYTE, &types[members]);
        }
        if (rc == DDTC_SUCCESS) members++, made++;
    }
    if (rc == DDTC_SUCCESS)
        rc = made ? ddtc_type_create_struct_c(members, lengths, places, types, newtype)
                  : ddtc_type_create_hindexed_c(members, lengths, places, DDTC_TYPE_BYTE, newtype);
    for (size_t i = 0; made && i < members; i++)
        if (types[i] != DDTC_TYPE_BYTE) ddtc_type_free(&types[i]);
    free(lengths);
    free(places);
    free(types);
    return rc;
}

#ifdef CONVERTOR_MOVER
/* Returns the size in bytes of the predefined elements of a description if all have the same size,
 * and 0 otherwise. */
static size_t common_unit(const dt_type_desc_t *description)
{
    size_t unit = 0;
    for (size_t i = 0; i < description->used; i++) {
        const ddt_elem_desc_t *element = &description->desc[i].elem;
        if (!(element->common.flags & OPAL_DATATYPE_FLAG_DATA)) continue;
        if (unit && unit != element_size(element)) return 0;
        unit = element_size(element);
    }
    return unit;
}
#else
/* Returns how many entries with data Open MPI's function visits for one instance of a datatype.
 * Loops that are nested more deeply than DEEPEST do not count, since `decode` refuses them. */
static double visits(const dt_elem_desc_t *desc, size_t used, int depth)
{
    double sum = 0;
    for (size_t i = 0; i < used && depth < DEEPEST; i++) {
        if (OPAL_DATATYPE_LOOP == desc[i].elem.common.type) {
            sum += desc[i].loop.loops * visits(&desc[i + 1], desc[i].loop.items - 1, depth + 1);
            i += desc[i].loop.items; /* to the END_LOOP entry of this loop */
        } else if (desc[i].elem.common.flags & OPAL_DATATYPE_FLAG_DATA) {
            sum++;
        }
    }
    return sum;
}

/* Returns whether a mover is expected to be faster than Open MPI's own functions. */
static int wanted(const opal_datatype_t *datatype)
{
    if (getenv("DDTC_PROVIDER_ALL")) return 1;
    return datatype->size < LONGEST_VISIT * visits(datatype->opt_desc.desc, datatype->opt_desc.used, 0);
}
#endif

static void *commit(const opal_datatype_t *datatype)
{
    ddtc_datatype content, type;
    ddtc_count size, lb, extent, true_lb, true_extent;
#ifndef CONVERTOR_MOVER
    if (!wanted(datatype)) return NULL;
#endif
    struct mover *mover = malloc(sizeof *mover);

    /* Decode `desc`, which has the blocks as the type was built. `opt_desc` joins any two blocks to
     * a vector of two blocks, which hides what all blocks of a table have in common. */
    if (!mover || decode(datatype->desc.desc, datatype->desc.used, 0, &content) != DDTC_SUCCESS) goto refuse;
    int rc = ddtc_type_create_resized_c(content, datatype->lb, datatype->ub - datatype->lb, &type);
    ddtc_type_free(&content);
    if (rc != DDTC_SUCCESS) goto refuse;
    rc = ddtc_type_commit(&type);
    if (rc == DDTC_SUCCESS) rc = ddtc_type_get_committed(type, &mover->committed);
    ddtc_type_free(&type);
    if (rc != DDTC_SUCCESS) goto refuse;
    /* The description says which bytes move, and the datatype says how many and where. The two must
     * agree. */
    ddtc_committed_bounds(mover->committed, &size, &lb, &extent, &true_lb, &true_extent);
    if ((size_t)size != datatype->size || true_lb != datatype->true_lb || true_lb + true_extent != datatype->true_ub) {
        ddtc_committed_release(mover->committed);
        goto refuse;
    }
#ifdef CONVERTOR_MOVER
    mover->unit = common_unit(&datatype->opt_desc);
#endif
    ADD(commits, 1);
    return mover;

refuse:
    free(mover);
    ADD(refused, 1);
    return NULL;
}

static void destruct(void *kept)
{
    struct mover *mover = kept;
    ddtc_committed_release(mover->committed);
    free(mover);
    ADD(destructs, 1);
}

#ifdef CONVERTOR_MOVER
/* Returns the end of the last whole predefined element that ends at or before position `end` of the
 * packed bytes. */
static size_t whole_elements(const opal_convertor_t *convertor, size_t end)
{
    const struct mover *mover = convertor->pDesc->mover;
    if (mover->unit && convertor->use_desc == &convertor->pDesc->opt_desc) return end - end % mover->unit;
    return opal_convertor_whole_elements(convertor, end);
}

static int32_t advance(opal_convertor_t *convertor, struct iovec *iov, uint32_t *out_size, size_t *max_data, int direction)
{
    const struct mover *mover = convertor->pDesc->mover;
    size_t start = convertor->bConverted;
    uint32_t i;

    for (i = 0; i < *out_size && convertor->bConverted < convertor->local_size; i++) {
        size_t end = convertor->local_size;
        ddtc_count moved = 0;
        if (iov[i].iov_len < end - convertor->bConverted) {
            end = convertor->bConverted + iov[i].iov_len;
            if (direction == DDTC_PACK) end = whole_elements(convertor, end);
        }
        if (end > convertor->bConverted &&
            ddtc_committed_range(mover->committed, direction, convertor->pBaseBuf, convertor->count, convertor->bConverted,
                                 iov[i].iov_base, end - convertor->bConverted, &moved) != DDTC_SUCCESS)
            return -1;
        iov[i].iov_len = moved;
        convertor->bConverted += moved;
    }
    *out_size = i;
    *max_data = convertor->bConverted - start;
    if (convertor->bConverted < convertor->local_size) return 0;
    convertor->flags |= CONVERTOR_COMPLETED;
    return 1;
}

static int32_t advance_pack(opal_convertor_t *convertor, struct iovec *iov, uint32_t *out_size, size_t *max_data)
{
    int32_t rc = advance(convertor, iov, out_size, max_data, DDTC_PACK);
    ADD(bytes_packed, *max_data);
    return rc;
}

static int32_t advance_unpack(opal_convertor_t *convertor, struct iovec *iov, uint32_t *out_size, size_t *max_data)
{
    int32_t rc = advance(convertor, iov, out_size, max_data, DDTC_UNPACK);
    ADD(bytes_unpacked, *max_data);
    return rc;
}

static convertor_advance_fct_t dispatch(const opal_convertor_t *convertor)
{
    if (convertor->flags & CONVERTOR_SEND) {
        ADD(sends, 1);
        return advance_pack;
    }
    ADD(receives, 1);
    return advance_unpack;
}

static const opal_datatype_mover_provider_t provider = {"ddtc", commit, dispatch, destruct};
#else
static int32_t move(void *kept, int direction, const void *user, size_t count, size_t position, const void *packed, size_t length)
{
    const struct mover *mover = kept;
    ddtc_count moved;
    int rc = ddtc_committed_range(mover->committed, direction, (void *)user, count, position, (void *)packed, length, &moved);
    return rc == DDTC_SUCCESS && (size_t)moved == length ? OPAL_SUCCESS : OPAL_ERROR;
}

static int32_t pack(void *kept, const void *user, size_t count, size_t position, void *packed, size_t length)
{
    ADD_FAST(sends, 1);
    ADD_FAST(bytes_packed, length);
    return move(kept, DDTC_PACK, user, count, position, packed, length);
}

static int32_t unpack(void *kept, void *user, size_t count, size_t position, const void *packed, size_t length)
{
    ADD_FAST(receives, 1);
    ADD_FAST(bytes_unpacked, length);
    return move(kept, DDTC_UNPACK, user, count, position, packed, length);
}

static const opal_datatype_mover_provider_t provider = {"ddtc", commit, pack, unpack, destruct};
#endif

/* Registers the provider. When this file is a library that is preloaded, the loader calls this
 * function before the program starts. A program that is linked with this file calls the function
 * itself. Nothing happens if Open MPI does not have the patch, or has another provider already. */
#pragma weak opal_datatype_register_mover_provider
#ifdef CONVERTOR_MOVER
#pragma weak opal_convertor_whole_elements
#endif
#ifndef DDTC_PROVIDER_LINKED
__attribute__((constructor))
#endif
__attribute__((visibility("default"))) void ddtc_provider_register(void)
{
    static int once;
    if (once || !opal_datatype_register_mover_provider) return;
    once = opal_datatype_register_mover_provider(&provider) == OPAL_SUCCESS;
}

__attribute__((destructor)) static void report(void)
{
    const struct counts *c = &ddtc_provider_counts;
    if (!getenv("DDTC_PROVIDER_REPORT") || !(c->commits + c->refused + c->destructs)) return;
    fprintf(stderr, "ddtc provider: commits %lu refused %lu destructs %lu sends %lu receives %lu packed %lu unpacked %lu\n", c->commits,
            c->refused, c->destructs, c->sends, c->receives, c->bytes_packed, c->bytes_unpacked);
}
