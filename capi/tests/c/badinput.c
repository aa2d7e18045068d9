/* Tests of bad input: each call returns the right error class and changes nothing. Its message
 * names the argument and the value. */
#include <ddtc.h>
#include <limits.h>
#include <stdint.h>
#include "check.h"

int main(void)
{
    ddtc_datatype t, keep = (ddtc_datatype)(uintptr_t)0x5a5a, stale, none = DDTC_DATATYPE_NULL, zero = NULL;
    int n, position;
    char buffer[64], out[64];
    memset(out, 9, sizeof out);

    OK(ddtc_type_vector(2, 1, 2, DDTC_TYPE_INT, &t));
    stale = t;

    /* Constructors refuse bad arguments. */
    FAILS(DDTC_ERR_COUNT, "count = -1", ddtc_type_contiguous(-1, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_COUNT, "count = -2", ddtc_type_vector(-2, 1, 1, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_ARG, "blocklength = -3", ddtc_type_vector(2, -3, 1, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_COUNT, "-4", ddtc_type_indexed(-4, &n, &n, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_ARG, "blocklengths[1] = -1", ddtc_type_indexed(2, (int[]){1, -1}, (int[]){0, 0}, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_ARG, "array_of_blocklengths", ddtc_type_indexed(2, NULL, (int[]){0, 0}, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_ARG, "must be aligned",
          ddtc_type_indexed(2, (const int *)((uintptr_t)(int[]){1, 1, 1} + 1), (int[]){0, 0}, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_ARG, "order = 77",
          ddtc_type_create_subarray(1, (int[]){4}, (int[]){1}, (int[]){0}, 77, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_ARG, "starts[0] = 4",
          ddtc_type_create_subarray(1, (int[]){4}, (int[]){1}, (int[]){4}, DDTC_ORDER_C, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_ARG, "ndims = 0",
          ddtc_type_create_subarray(0, NULL, NULL, NULL, DDTC_ORDER_C, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_ARG, "array_of_distribs[0] = 5",
          ddtc_type_create_darray(1, 0, 1, (int[]){4}, (int[]){5}, (int[]){1}, (int[]){1}, DDTC_ORDER_C,
                                  DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_TYPE, "MPI_DATATYPE_NULL", ddtc_type_contiguous(1, none, &keep));
    FAILS(DDTC_ERR_TYPE, "null pointer", ddtc_type_contiguous(1, zero, &keep));
    FAILS(DDTC_ERR_ARG, "newtype", ddtc_type_contiguous(1, DDTC_TYPE_INT, NULL));
    FAILS(DDTC_ERR_TYPE, "handle of a datatype", ddtc_type_contiguous(1, (ddtc_datatype)&keep, &keep));
    FAILS(DDTC_ERR_TYPE, "handle of a datatype",
          ddtc_type_create_struct(1, (int[]){1}, (ddtc_aint[]){0}, (ddtc_datatype[]){(ddtc_datatype)1}, &keep));
    FAILS(DDTC_ERR_ARG, "p = 99", ddtc_type_create_f90_real(99, 1, &keep));
    FAILS(DDTC_ERR_VALUE_TOO_LARGE, "count", ddtc_type_contiguous_c(INT64_MAX, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_VALUE_TOO_LARGE, "stride",
          ddtc_type_vector_c(3, 1, INT64_MAX / 2, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_VALUE_TOO_LARGE, "displacements[0]",
          ddtc_type_create_hindexed_c(1, (ddtc_count[]){4}, (ddtc_count[]){INT64_MAX - 3}, DDTC_TYPE_INT, &keep));
    FAILS(DDTC_ERR_ARG, "text", ddtc_type_parse(NULL, &keep));
    EQ(keep, 0x5a5a);

    /* Pack and unpack refuse bad arguments. */
    position = 0;
    FAILS(DDTC_ERR_TYPE, "must be committed", ddtc_pack(buffer, 1, t, out, 64, &position));
    FAILS(DDTC_ERR_TYPE, "must be committed", ddtc_unpack(buffer, 64, &position, out, 1, t));
    OK(ddtc_type_commit(&t));
    FAILS(DDTC_ERR_COUNT, "incount = -1", ddtc_pack(buffer, -1, t, out, 64, &position));
    FAILS(DDTC_ERR_TRUNCATE, "outsize = 7", ddtc_pack(buffer, 1, t, out, 7, &position));
    FAILS(DDTC_ERR_ARG, "outsize = -1", ddtc_pack(buffer, 1, t, out, -1, &position));
    position = 65;
    FAILS(DDTC_ERR_ARG, "position = 65", ddtc_pack(buffer, 1, t, out, 64, &position));
    EQ(position, 65);
    position = -1;
    FAILS(DDTC_ERR_ARG, "position = -1", ddtc_unpack(out, 64, &position, buffer, 1, t));
    position = 60;
    FAILS(DDTC_ERR_TRUNCATE, "insize = 64", ddtc_unpack(out, 64, &position, buffer, 1, t));
    EQ(position, 60);
    position = 0;
    FAILS(DDTC_ERR_BUFFER, "outbuf", ddtc_pack(buffer, 1, t, NULL, 64, &position));
    FAILS(DDTC_ERR_BUFFER, "buffer = 0x0", ddtc_pack(NULL, 1, t, out, 64, &position));
    FAILS(DDTC_ERR_ARG, "position", ddtc_pack(buffer, 1, t, out, 64, NULL));
    for (int i = 0; i < 64; i++) EQ(out[i], 9);
    ddtc_count got = 5;
    FAILS(DDTC_ERR_ARG, "offset = 9", ddtc_pack_range(buffer, 1, t, 9, out, 64, &got));
    FAILS(DDTC_ERR_ARG, "offset = -1", ddtc_pack_range(buffer, 1, t, -1, out, 64, &got));
    FAILS(DDTC_ERR_ARG, "max_bytes = -1", ddtc_pack_range(buffer, 1, t, 0, out, -1, &got));
    EQ(got, 5);
    FAILS(DDTC_ERR_COUNT, "incount = -1", ddtc_pack_size(-1, t, &n));

    /* The functions for attributes refuse bad arguments. */
    void *value = &n;
    int flag = 3, bad = 12345, invalid = DDTC_KEYVAL_INVALID, tag_ub = 501;
    FAILS(DDTC_ERR_KEYVAL, "type_keyval = 12345", ddtc_type_set_attr(t, bad, value));
    FAILS(DDTC_ERR_KEYVAL, "KEYVAL_INVALID", ddtc_type_get_attr(t, invalid, &value, &flag));
    FAILS(DDTC_ERR_KEYVAL, "type_keyval = 501", ddtc_type_get_attr(t, tag_ub, &value, &flag));
    FAILS(DDTC_ERR_KEYVAL, "type_keyval = 12345", ddtc_type_delete_attr(t, bad));
    FAILS(DDTC_ERR_KEYVAL, "type_keyval", ddtc_type_free_keyval(&bad));
    TRUE(value == &n && flag == 3 && bad == 12345);

    /* Three kinds of handles cannot be freed: predefined handles, null handles, and handles that
     * were freed before. */
    ddtc_datatype predefined = DDTC_TYPE_DOUBLE;
    FAILS(DDTC_ERR_TYPE, "MPI_DOUBLE", ddtc_type_free(&predefined));
    EQ(predefined, DDTC_TYPE_DOUBLE);
    FAILS(DDTC_ERR_TYPE, "MPI_DATATYPE_NULL", ddtc_type_free(&none));
    FAILS(DDTC_ERR_TYPE, "MPI_DATATYPE_NULL", ddtc_type_commit(&none));
    OK(ddtc_type_free(&t));
    EQ(t, DDTC_DATATYPE_NULL);
    ddtc_datatype again = stale;
    FAILS(DDTC_ERR_TYPE, "was freed", ddtc_type_free(&again));
    EQ(again, stale);
    /* No new object gets a handle that was freed. */
    for (int i = 0; i < 100; i++) {
        OK(ddtc_type_contiguous(i, DDTC_TYPE_INT, &t));
        TRUE(t != stale);
        FAILS(DDTC_ERR_TYPE, "was freed", ddtc_type_size(stale, &n));
        OK(ddtc_type_free(&t));
    }
    FAILS(DDTC_ERR_TYPE, "was freed", ddtc_type_dup(stale, &again));
    EQ(again, DDTC_DATATYPE_NULL);

    /* Codes have a message and a class even if no call failed with them. */
    char text[512];
    OK(ddtc_error_string(0, text, &n));
    EQ(strcmp(text, "no error"), 0);
    OK(ddtc_error_string(DDTC_ERR_COUNT, text, &n));
    EQ(n, (int)strlen(text));
    OK(ddtc_error_class(4711, &n));
    EQ(n, DDTC_ERR_OTHER);
    OK(ddtc_error_class(DDTC_ERR_TYPE, &n));
    EQ(n, DDTC_ERR_TYPE);
    return 0;
}
