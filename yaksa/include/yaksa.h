/* Interface of yaksa 0.2 as ddtc's libyaksa.so.0 implements it, for `configure --with-yaksa=` of
 * MPICH (docs/YAKSA.md). The names, the values of constants, and the types are those of yaksa. So a
 * program that was compiled with one of the two headers, yaksa's or this one, runs with either
 * library, yaksa's or ddtc's. */
#ifndef YAKSA_H_INCLUDED
#define YAKSA_H_INCLUDED

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define YAKSA_VERSION "0.2"
#define YAKSA_NUMVERSION 200000
#define YAKSA_RELEASE_TYPE_ALPHA 0
#define YAKSA_RELEASE_TYPE_BETA 1
#define YAKSA_RELEASE_TYPE_RC 2
#define YAKSA_RELEASE_TYPE_PATCH 3
#define YAKSA_CALC_VERSION(MAJOR, MINOR, REVISION, TYPE, PATCH) \
    ((MAJOR) * 10000000 + (MINOR) * 100000 + (REVISION) * 1000 + (TYPE) * 100 + (PATCH))

#define YAKSA_SUCCESS 0
#define YAKSA_ERR__OUT_OF_MEM 1
#define YAKSA_ERR__INTERNAL 2
#define YAKSA_ERR__NOT_SUPPORTED 3

/* Operations of calls that pack or unpack. An operation says whether the moved data replace the
 * data at the destination, or how the two are combined. */
typedef uint64_t yaksa_op_t;
#define YAKSA_OP__MAX ((yaksa_op_t) 0)
#define YAKSA_OP__MIN ((yaksa_op_t) 1)
#define YAKSA_OP__SUM ((yaksa_op_t) 2)
#define YAKSA_OP__PROD ((yaksa_op_t) 3)
#define YAKSA_OP__LAND ((yaksa_op_t) 4)
#define YAKSA_OP__BAND ((yaksa_op_t) 5)
#define YAKSA_OP__LOR ((yaksa_op_t) 6)
#define YAKSA_OP__BOR ((yaksa_op_t) 7)
#define YAKSA_OP__LXOR ((yaksa_op_t) 8)
#define YAKSA_OP__BXOR ((yaksa_op_t) 9)
#define YAKSA_OP__REPLACE ((yaksa_op_t) 10)
#define YAKSA_OP__LAST ((yaksa_op_t) 11)

/* Handles of the predefined types. Constructors give each derived type a handle different from
 * these. */
typedef uint64_t yaksa_type_t;
#define YAKSA_TYPE__NULL ((yaksa_type_t) 0)
#define YAKSA_TYPE___BOOL ((yaksa_type_t) 1)
#define YAKSA_TYPE__CHAR ((yaksa_type_t) 2)
#define YAKSA_TYPE__SIGNED_CHAR ((yaksa_type_t) 3)
#define YAKSA_TYPE__UNSIGNED_CHAR ((yaksa_type_t) 4)
#define YAKSA_TYPE__WCHAR_T ((yaksa_type_t) 5)
#define YAKSA_TYPE__INT8_T ((yaksa_type_t) 6)
#define YAKSA_TYPE__INT16_T ((yaksa_type_t) 7)
#define YAKSA_TYPE__INT32_T ((yaksa_type_t) 8)
#define YAKSA_TYPE__INT64_T ((yaksa_type_t) 9)
#define YAKSA_TYPE__UINT8_T ((yaksa_type_t) 10)
#define YAKSA_TYPE__UINT16_T ((yaksa_type_t) 11)
#define YAKSA_TYPE__UINT32_T ((yaksa_type_t) 12)
#define YAKSA_TYPE__UINT64_T ((yaksa_type_t) 13)
#define YAKSA_TYPE__INT ((yaksa_type_t) 14)
#define YAKSA_TYPE__UNSIGNED ((yaksa_type_t) 15)
#define YAKSA_TYPE__SHORT ((yaksa_type_t) 16)
#define YAKSA_TYPE__UNSIGNED_SHORT ((yaksa_type_t) 17)
#define YAKSA_TYPE__LONG ((yaksa_type_t) 18)
#define YAKSA_TYPE__UNSIGNED_LONG ((yaksa_type_t) 19)
#define YAKSA_TYPE__LONG_LONG ((yaksa_type_t) 20)
#define YAKSA_TYPE__UNSIGNED_LONG_LONG ((yaksa_type_t) 21)
#define YAKSA_TYPE__INT_FAST8_T ((yaksa_type_t) 22)
#define YAKSA_TYPE__INT_FAST16_T ((yaksa_type_t) 23)
#define YAKSA_TYPE__INT_FAST32_T ((yaksa_type_t) 24)
#define YAKSA_TYPE__INT_FAST64_T ((yaksa_type_t) 25)
#define YAKSA_TYPE__UINT_FAST8_T ((yaksa_type_t) 26)
#define YAKSA_TYPE__UINT_FAST16_T ((yaksa_type_t) 27)
#define YAKSA_TYPE__UINT_FAST32_T ((yaksa_type_t) 28)
#define YAKSA_TYPE__UINT_FAST64_T ((yaksa_type_t) 29)
#define YAKSA_TYPE__INT_LEAST8_T ((yaksa_type_t) 30)
#define YAKSA_TYPE__INT_LEAST16_T ((yaksa_type_t) 31)
#define YAKSA_TYPE__INT_LEAST32_T ((yaksa_type_t) 32)
#define YAKSA_TYPE__INT_LEAST64_T ((yaksa_type_t) 33)
#define YAKSA_TYPE__UINT_LEAST8_T ((yaksa_type_t) 34)
#define YAKSA_TYPE__UINT_LEAST16_T ((yaksa_type_t) 35)
#define YAKSA_TYPE__UINT_LEAST32_T ((yaksa_type_t) 36)
#define YAKSA_TYPE__UINT_LEAST64_T ((yaksa_type_t) 37)
#define YAKSA_TYPE__BYTE ((yaksa_type_t) 38)
#define YAKSA_TYPE__INTMAX_T ((yaksa_type_t) 39)
#define YAKSA_TYPE__UINTMAX_T ((yaksa_type_t) 40)
#define YAKSA_TYPE__SIZE_T ((yaksa_type_t) 41)
#define YAKSA_TYPE__INTPTR_T ((yaksa_type_t) 42)
#define YAKSA_TYPE__UINTPTR_T ((yaksa_type_t) 43)
#define YAKSA_TYPE__PTRDIFF_T ((yaksa_type_t) 44)
#define YAKSA_TYPE__FLOAT ((yaksa_type_t) 45)
#define YAKSA_TYPE__DOUBLE ((yaksa_type_t) 46)
#define YAKSA_TYPE__LONG_DOUBLE ((yaksa_type_t) 47)
#define YAKSA_TYPE__C_COMPLEX ((yaksa_type_t) 48)
#define YAKSA_TYPE__C_DOUBLE_COMPLEX ((yaksa_type_t) 49)
#define YAKSA_TYPE__C_LONG_DOUBLE_COMPLEX ((yaksa_type_t) 50)
#define YAKSA_TYPE__FLOAT_INT ((yaksa_type_t) 51)
#define YAKSA_TYPE__DOUBLE_INT ((yaksa_type_t) 52)
#define YAKSA_TYPE__LONG_INT ((yaksa_type_t) 53)
#define YAKSA_TYPE__2INT ((yaksa_type_t) 54)
#define YAKSA_TYPE__SHORT_INT ((yaksa_type_t) 55)
#define YAKSA_TYPE__LONG_DOUBLE_INT ((yaksa_type_t) 56)

typedef uint64_t yaksa_request_t;
#define YAKSA_REQUEST__NULL ((yaksa_request_t) 0)

typedef enum { YAKSA_SUBARRAY_ORDER__C, YAKSA_SUBARRAY_ORDER__FORTRAN } yaksa_subarray_order_e;

typedef void *yaksa_info_t;
#define YAKSA_INFO_MAX_KEYLEN 256

int yaksa_info_create(yaksa_info_t *info);
int yaksa_info_free(yaksa_info_t info);
int yaksa_info_keyval_append(yaksa_info_t info, const char *key, const void *val, unsigned vallen);
int yaksa_init(yaksa_info_t info);
int yaksa_finalize(void);
int yaksa_type_create_contig(intptr_t count, yaksa_type_t old, yaksa_info_t info,
    yaksa_type_t *made);
int yaksa_type_create_dup(yaksa_type_t old, yaksa_info_t info, yaksa_type_t *made);
int yaksa_type_create_vector(intptr_t count, intptr_t length, intptr_t stride, yaksa_type_t old,
    yaksa_info_t info, yaksa_type_t *made);
int yaksa_type_create_hvector(intptr_t count, intptr_t length, intptr_t stride, yaksa_type_t old,
    yaksa_info_t info, yaksa_type_t *made);
int yaksa_type_create_indexed_block(intptr_t count, intptr_t length, const intptr_t *at,
    yaksa_type_t old, yaksa_info_t info, yaksa_type_t *made);
int yaksa_type_create_hindexed_block(intptr_t count, intptr_t length, const intptr_t *at,
    yaksa_type_t old, yaksa_info_t info, yaksa_type_t *made);
int yaksa_type_create_indexed(intptr_t count, const intptr_t *lengths, const intptr_t *at,
    yaksa_type_t old, yaksa_info_t info, yaksa_type_t *made);
int yaksa_type_create_hindexed(intptr_t count, const intptr_t *lengths, const intptr_t *at,
    yaksa_type_t old, yaksa_info_t info, yaksa_type_t *made);
int yaksa_type_create_struct(intptr_t count, const intptr_t *lengths, const intptr_t *at,
    const yaksa_type_t *old, yaksa_info_t info, yaksa_type_t *made);
int yaksa_type_create_resized(yaksa_type_t old, intptr_t lb, intptr_t extent, yaksa_info_t info,
    yaksa_type_t *made);
int yaksa_type_create_subarray(int ndims, const intptr_t *sizes, const intptr_t *subsizes,
    const intptr_t *starts, yaksa_subarray_order_e order, yaksa_type_t old, yaksa_info_t info,
    yaksa_type_t *made);
int yaksa_type_get_size(yaksa_type_t type, uintptr_t *size);
int yaksa_type_get_extent(yaksa_type_t type, intptr_t *lb, intptr_t *extent);
int yaksa_type_get_true_extent(yaksa_type_t type, intptr_t *lb, intptr_t *extent);
int yaksa_type_free(yaksa_type_t type);
int yaksa_request_test(yaksa_request_t request, int *completed);
int yaksa_request_wait(yaksa_request_t request);
int yaksa_pack(const void *from, uintptr_t count, yaksa_type_t type, uintptr_t offset, void *to,
    uintptr_t max, uintptr_t *actual, yaksa_info_t info, yaksa_op_t op);
int yaksa_unpack(const void *from, uintptr_t size, void *to, uintptr_t count, yaksa_type_t type,
    uintptr_t offset, uintptr_t *actual, yaksa_info_t info, yaksa_op_t op);
int yaksa_ipack(const void *from, uintptr_t count, yaksa_type_t type, uintptr_t offset, void *to,
    uintptr_t max, uintptr_t *actual, yaksa_info_t info, yaksa_op_t op, yaksa_request_t *request);
int yaksa_iunpack(const void *from, uintptr_t size, void *to, uintptr_t count, yaksa_type_t type,
    uintptr_t offset, uintptr_t *actual, yaksa_info_t info, yaksa_op_t op,
    yaksa_request_t *request);
int yaksa_pack_stream(const void *from, uintptr_t count, yaksa_type_t type, uintptr_t offset,
    void *to, uintptr_t max, uintptr_t *actual, yaksa_info_t info, yaksa_op_t op, void *stream);
int yaksa_unpack_stream(const void *from, uintptr_t size, void *to, uintptr_t count,
    yaksa_type_t type, uintptr_t offset, uintptr_t *actual, yaksa_info_t info, yaksa_op_t op,
    void *stream);
int yaksa_iov_len(uintptr_t count, yaksa_type_t type, uintptr_t *length);
int yaksa_iov_len_max(uintptr_t count, yaksa_type_t type, uintptr_t max_bytes, uintptr_t *length,
    uintptr_t *bytes);
int yaksa_iov(const char *buffer, uintptr_t count, yaksa_type_t type, uintptr_t from,
    struct iovec *list, uintptr_t max, uintptr_t *actual);
int yaksa_flatten_size(yaksa_type_t type, uintptr_t *size);
int yaksa_flatten(yaksa_type_t type, void *flattened);
int yaksa_unflatten(yaksa_type_t *type, const void *flattened);

#ifdef __cplusplus
}
#endif

#endif
