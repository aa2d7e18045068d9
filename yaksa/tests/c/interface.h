/* The interface of libyaksa.so.0 as programs are linked to it: what the tests of this member call, by our own words. */
#ifndef INTERFACE_H
#define INTERFACE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

typedef uint64_t ytype, yop, yrequest;
typedef void *yinfo;

enum { SUCCESS, OUT_OF_MEM, INTERNAL, NOT_SUPPORTED };
enum { OP_MAX, OP_MIN, OP_SUM, OP_PROD, OP_LAND, OP_BAND, OP_LOR, OP_BOR, OP_LXOR, OP_BXOR, OP_REPLACE, OP_LAST };
enum { ORDER_C, ORDER_FORTRAN };
enum {
    T_NULL, T_BOOL, T_CHAR, T_SIGNED_CHAR, T_UNSIGNED_CHAR, T_WCHAR, T_INT8, T_INT16, T_INT32, T_INT64, T_UINT8, T_UINT16,
    T_UINT32, T_UINT64, T_INT, T_UNSIGNED, T_SHORT, T_UNSIGNED_SHORT, T_LONG, T_UNSIGNED_LONG, T_LONG_LONG,
    T_UNSIGNED_LONG_LONG, T_INT_FAST8, T_INT_FAST16, T_INT_FAST32, T_INT_FAST64, T_UINT_FAST8, T_UINT_FAST16,
    T_UINT_FAST32, T_UINT_FAST64, T_INT_LEAST8, T_INT_LEAST16, T_INT_LEAST32, T_INT_LEAST64, T_UINT_LEAST8,
    T_UINT_LEAST16, T_UINT_LEAST32, T_UINT_LEAST64, T_BYTE, T_INTMAX, T_UINTMAX, T_SIZE, T_INTPTR, T_UINTPTR, T_PTRDIFF,
    T_FLOAT, T_DOUBLE, T_LONG_DOUBLE, T_C_COMPLEX, T_C_DOUBLE_COMPLEX, T_C_LONG_DOUBLE_COMPLEX, T_FLOAT_INT, T_DOUBLE_INT,
    T_LONG_INT, T_2INT, T_SHORT_INT, T_LONG_DOUBLE_INT, T_COUNT
};

int yaksa_info_create(yinfo *info);
int yaksa_info_free(yinfo info);
int yaksa_info_keyval_append(yinfo info, const char *key, const void *val, unsigned vallen);
int yaksa_init(yinfo info);
int yaksa_finalize(void);
int yaksa_type_create_contig(intptr_t count, ytype old, yinfo info, ytype *made);
int yaksa_type_create_dup(ytype old, yinfo info, ytype *made);
int yaksa_type_create_vector(intptr_t count, intptr_t length, intptr_t stride, ytype old, yinfo info, ytype *made);
int yaksa_type_create_hvector(intptr_t count, intptr_t length, intptr_t stride, ytype old, yinfo info, ytype *made);
int yaksa_type_create_indexed_block(intptr_t count, intptr_t length, const intptr_t *at, ytype old, yinfo info, ytype *made);
int yaksa_type_create_hindexed_block(intptr_t count, intptr_t length, const intptr_t *at, ytype old, yinfo info, ytype *made);
int yaksa_type_create_indexed(intptr_t count, const intptr_t *lengths, const intptr_t *at, ytype old, yinfo info, ytype *made);
int yaksa_type_create_hindexed(intptr_t count, const intptr_t *lengths, const intptr_t *at, ytype old, yinfo info, ytype *made);
int yaksa_type_create_struct(intptr_t count, const intptr_t *lengths, const intptr_t *at, const ytype *old, yinfo info, ytype *made);
int yaksa_type_create_resized(ytype old, intptr_t lb, intptr_t extent, yinfo info, ytype *made);
int yaksa_type_create_subarray(int ndims, const intptr_t *sizes, const intptr_t *subsizes, const intptr_t *starts, int order,
                               ytype old, yinfo info, ytype *made);
int yaksa_type_get_size(ytype type, uintptr_t *size);
int yaksa_type_get_extent(ytype type, intptr_t *lb, intptr_t *extent);
int yaksa_type_get_true_extent(ytype type, intptr_t *lb, intptr_t *extent);
int yaksa_type_free(ytype type);
int yaksa_request_test(yrequest request, int *completed);
int yaksa_request_wait(yrequest request);
int yaksa_pack(const void *from, uintptr_t count, ytype type, uintptr_t offset, void *to, uintptr_t max, uintptr_t *actual,
               yinfo info, yop op);
int yaksa_unpack(const void *from, uintptr_t size, void *to, uintptr_t count, ytype type, uintptr_t offset,
                 uintptr_t *actual, yinfo info, yop op);
int yaksa_ipack(const void *from, uintptr_t count, ytype type, uintptr_t offset, void *to, uintptr_t max, uintptr_t *actual,
                yinfo info, yop op, yrequest *request);
int yaksa_iunpack(const void *from, uintptr_t size, void *to, uintptr_t count, ytype type, uintptr_t offset,
                  uintptr_t *actual, yinfo info, yop op, yrequest *request);
int yaksa_pack_stream(const void *from, uintptr_t count, ytype type, uintptr_t offset, void *to, uintptr_t max,
                      uintptr_t *actual, yinfo info, yop op, void *stream);
int yaksa_unpack_stream(const void *from, uintptr_t size, void *to, uintptr_t count, ytype type, uintptr_t offset,
                        uintptr_t *actual, yinfo info, yop op, void *stream);
int yaksa_iov_len(uintptr_t count, ytype type, uintptr_t *length);
int yaksa_iov_len_max(uintptr_t count, ytype type, uintptr_t max_bytes, uintptr_t *length, uintptr_t *bytes);
int yaksa_iov(const char *buffer, uintptr_t count, ytype type, uintptr_t from, struct iovec *list, uintptr_t max,
              uintptr_t *actual);
int yaksa_flatten_size(ytype type, uintptr_t *size);
int yaksa_flatten(ytype type, void *flattened);
int yaksa_unflatten(ytype *type, const void *flattened);

/* Checks that say where and what. */
static inline void failed(const char *file, int line, const char *what, long long a, long long b)
{
    fprintf(stderr, "%s:%d: %s: %lld, expected %lld\n", file, line, what, a, b);
    exit(1);
}

#define EQ(a, b)                                                                                                       \
    do {                                                                                                               \
        long long eq_a = (long long)(a), eq_b = (long long)(b);                                                        \
        if (eq_a != eq_b) failed(__FILE__, __LINE__, #a, eq_a, eq_b);                                                  \
    } while (0)
#define OK(call) EQ(call, SUCCESS)
#define FAILS(code, call) EQ(call, code)
#define BYTES(a, b, n) EQ(memcmp(a, b, n), 0)
#define LIST(...) ((const intptr_t[]){__VA_ARGS__})
#define TYPES(...) ((const ytype[]){__VA_ARGS__})

/* Size, lower bound, extent, true lower bound, true extent. */
static inline void bounds(ytype t, long long size, long long lb, long long extent, long long true_lb, long long true_extent)
{
    uintptr_t n;
    intptr_t l, e;
    OK(yaksa_type_get_size(t, &n));
    EQ(n, size);
    OK(yaksa_type_get_extent(t, &l, &e));
    EQ(l, lb);
    EQ(e, extent);
    OK(yaksa_type_get_true_extent(t, &l, &e));
    EQ(l, true_lb);
    EQ(e, true_extent);
}

static inline uintptr_t pieces(uintptr_t count, ytype t)
{
    uintptr_t n;
    OK(yaksa_iov_len(count, t, &n));
    return n;
}
#endif
