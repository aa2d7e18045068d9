/* Short names for the interface of libyaksa.so.0, and macros and functions for checks. The test
 * programs in this folder use these names and checks. */
#ifndef INTERFACE_H
#define INTERFACE_H
#include <stdlib.h>
#include <string.h>
#include "../../include/yaksa.h"

typedef yaksa_type_t ytype;
typedef yaksa_op_t yop;
typedef yaksa_request_t yrequest;
typedef yaksa_info_t yinfo;

enum { SUCCESS, OUT_OF_MEM, INTERNAL, NOT_SUPPORTED };
enum { OP_MAX, OP_MIN, OP_SUM, OP_PROD, OP_LAND, OP_BAND, OP_LOR, OP_BOR, OP_LXOR, OP_BXOR, OP_REPLACE, OP_LAST };
#define ORDER_C YAKSA_SUBARRAY_ORDER__C
#define ORDER_FORTRAN YAKSA_SUBARRAY_ORDER__FORTRAN
enum {
    T_NULL, T_BOOL, T_CHAR, T_SIGNED_CHAR, T_UNSIGNED_CHAR, T_WCHAR, T_INT8, T_INT16, T_INT32, T_INT64, T_UINT8, T_UINT16,
    T_UINT32, T_UINT64, T_INT, T_UNSIGNED, T_SHORT, T_UNSIGNED_SHORT, T_LONG, T_UNSIGNED_LONG, T_LONG_LONG,
    T_UNSIGNED_LONG_LONG, T_INT_FAST8, T_INT_FAST16, T_INT_FAST32, T_INT_FAST64, T_UINT_FAST8, T_UINT_FAST16,
    T_UINT_FAST32, T_UINT_FAST64, T_INT_LEAST8, T_INT_LEAST16, T_INT_LEAST32, T_INT_LEAST64, T_UINT_LEAST8,
    T_UINT_LEAST16, T_UINT_LEAST32, T_UINT_LEAST64, T_BYTE, T_INTMAX, T_UINTMAX, T_SIZE, T_INTPTR, T_UINTPTR, T_PTRDIFF,
    T_FLOAT, T_DOUBLE, T_LONG_DOUBLE, T_C_COMPLEX, T_C_DOUBLE_COMPLEX, T_C_LONG_DOUBLE_COMPLEX, T_FLOAT_INT, T_DOUBLE_INT,
    T_LONG_INT, T_2INT, T_SHORT_INT, T_LONG_DOUBLE_INT, T_COUNT
};

/* Reports a failed check with its line, its expression `what`, the value `a` and the expected
 * value `b`, and ends the program with an error. */
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

/* Checks the size and the bounds of a type, in bytes. */
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

/* Returns the number of contiguous pieces of memory that `count` instances of a type occupy. */
static inline uintptr_t pieces(uintptr_t count, ytype t)
{
    uintptr_t n;
    OK(yaksa_iov_len(count, t, &n));
    return n;
}
#endif
