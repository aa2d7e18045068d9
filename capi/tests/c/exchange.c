/* Tests of wire forms and signatures. Types are written to bytes and read back. Bytes that are not
 * a wire form are refused, and no type is made. */
#include <ddtc/mpi.h>
#include "check.h"
#include "integers.h"

/* Writes a type to its wire form and reads it back. Checks that the result has the same text,
 * bounds and envelope. */
static void there_and_back(MPI_Datatype t)
{
    char *wire, before[4096], after[4096];
    ddtc_count size, written = -1, n = sizeof before, m = sizeof after;
    MPI_Count lb[2], extent[2], envelope[2][4];
    int combiner[2];
    MPI_Datatype back;
    OK(ddtc_type_wire_size(t, &size));
    wire = malloc(size);
    memset(wire, 7, size);
    FAILS(DDTC_ERR_TRUNCATE, "room", ddtc_type_to_wire(t, wire, size - 1, &written));
    TRUE(written == -1 && wire[0] == 7 && wire[size - 2] == 7);
    OK(ddtc_type_to_wire(t, wire, size, &written));
    EQ(written, size);
    OK(ddtc_type_from_wire(wire, size, &back));
    OK(ddtc_type_print(t, before, &n));
    OK(ddtc_type_print(back, after, &m));
    EQ(n, m);
    BYTES(before, after, n);
    OK(MPI_Type_get_extent_c(t, &lb[0], &extent[0]));
    OK(MPI_Type_get_extent_c(back, &lb[1], &extent[1]));
    TRUE(lb[0] == lb[1] && extent[0] == extent[1]);
    OK(MPI_Type_get_envelope_c(t, &envelope[0][0], &envelope[0][1], &envelope[0][2], &envelope[0][3], &combiner[0]));
    OK(MPI_Type_get_envelope_c(back, &envelope[1][0], &envelope[1][1], &envelope[1][2], &envelope[1][3], &combiner[1]));
    BYTES(envelope[0], envelope[1], sizeof envelope[0]);
    EQ(combiner[0], combiner[1]);
    if (combiner[0] == MPI_COMBINER_NAMED || combiner[0] == MPI_COMBINER_F90_REAL)
        TRUE(back == t);
    else {
        OK(MPI_Type_commit(&back));
        OK(MPI_Type_free(&back));
    }
    /* Every proper prefix of the wire form is refused, and so is every wire form with one changed
     * byte. No type is made in these cases. */
    back = MPI_DATATYPE_NULL;
    for (ddtc_count i = 0; i < size; i++) {
        /* The copy is exactly as long as the prefix, so that AddressSanitizer reports reads past
         * its end. */
        char *part = malloc(i ? i : 1);
        memcpy(part, wire, i);
        EQ(ddtc_type_from_wire(part, i, &back), DDTC_ERR_TRUNCATE);
        free(part);
        wire[i] ^= 0x10;
        TRUE(ddtc_type_from_wire(wire, size, &back) != DDTC_SUCCESS);
        wire[i] ^= 0x10;
    }
    wire[4] = 2;
    FAILS(DDTC_ERR_UNSUPPORTED_OPERATION, "version", ddtc_type_from_wire(wire, size, &back));
    TRUE(back == MPI_DATATYPE_NULL);
    free(wire);
}

static void compared(ddtc_count n1, MPI_Datatype t1, ddtc_count n2, MPI_Datatype t2, int expected, ddtc_count at)
{
    int result;
    ddtc_count index;
    OK(ddtc_signature_compare(n1, t1, n2, t2, &result, &index));
    EQ(result, expected);
    EQ(index, at);
}

int main(void)
{
    MPI_Datatype t, s, f90, stale, kept;
    ddtc_count size, index;
    int result;
    uint64_t hash, other;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Type_create_struct(3, (int[]){1, 2, 1}, (MPI_Aint[]){0, 8, 64},
                              (MPI_Datatype[]){MPI_INT, MPI_DOUBLE_INT, MPI_BYTE}, &s));
    there_and_back(s);
    OK(MPI_Type_vector_c(3, 2, 5, s, &t));
    there_and_back(t);
    OK(MPI_Type_create_f90_real(6, MPI_UNDEFINED, &f90));
    there_and_back(f90);
    there_and_back(MPI_LONG_DOUBLE);
    /* `integers` is a wire form of version 1 that was recorded once. Every library that has this
     * version must read these bytes, and must write the same bytes for the type. */
    OK(ddtc_type_from_wire(integers, sizeof integers, &stale));
    OK(MPI_Type_vector(2, 1, 3, MPI_INTEGER, &kept));
    char forms[2][57];
    for (result = 0; result < 2; result++) {
        OK(ddtc_type_to_wire(result ? kept : stale, forms[result], 57, &size));
        BYTES(forms[result], integers, 57);
    }
    OK(MPI_Type_free(&stale));
    OK(MPI_Type_free(&kept));

    compared(3, t, 18, s, DDTC_SIGNATURE_EQUAL, -1);
    compared(1, s, 1, t, DDTC_SIGNATURE_FIRST_IS_PREFIX, -1);
    compared(1, t, 1, s, DDTC_SIGNATURE_SECOND_IS_PREFIX, -1);
    compared(2, MPI_INT, 1, s, DDTC_SIGNATURE_MISMATCH, 1);
    compared(8, MPI_PACKED, 1, s, DDTC_SIGNATURE_UNKNOWN, 0);
    compared(1LL << 40, MPI_2INT, 1LL << 41, MPI_INT, DDTC_SIGNATURE_EQUAL, -1);
    FAILS(DDTC_ERR_COUNT, "count2", ddtc_signature_compare(1, s, -1, s, &result, &index));
    FAILS(DDTC_ERR_VALUE_TOO_LARGE, "count1", ddtc_signature_compare(INT64_MAX, s, 1, s, &result, &index));
    FAILS(DDTC_ERR_TYPE, "MPI_DATATYPE_NULL", ddtc_signature_compare(1, MPI_DATATYPE_NULL, 1, s, &result, &index));
    FAILS(DDTC_ERR_ARG, "result", ddtc_signature_compare(1, s, 1, s, NULL, &index));
    FAILS(DDTC_ERR_ARG, "index", ddtc_signature_compare(1, s, 1, s, &result, NULL));

    OK(ddtc_signature_hash(1, MPI_INT, 1, &hash));
    TRUE(hash == 0x550157f9a3670863);
    OK(ddtc_signature_hash(7, s, 1, &other));
    TRUE(hash == other);
    OK(ddtc_signature_hash(7, s, 5, &hash));
    TRUE(hash != other && hash != 0);
    OK(ddtc_signature_hash(7, s, 6, &hash));
    TRUE(hash == 0);
    hash = 5;
    FAILS(DDTC_ERR_TRUNCATE, "elements", ddtc_signature_hash(1, s, 7, &hash));
    FAILS(DDTC_ERR_COUNT, "elements", ddtc_signature_hash(1, s, -1, &hash));
    FAILS(DDTC_ERR_ARG, "hash", ddtc_signature_hash(1, s, 1, NULL));
    TRUE(hash == 5);

    FAILS(DDTC_ERR_ARG, "size", ddtc_type_wire_size(s, NULL));
    FAILS(DDTC_ERR_ARG, "size", ddtc_type_to_wire(s, NULL, 0, NULL));
    FAILS(DDTC_ERR_TRUNCATE, "room", ddtc_type_to_wire(s, NULL, -1, &size));
    FAILS(DDTC_ERR_ARG, "wire", ddtc_type_to_wire(s, NULL, 1 << 20, &size));
    FAILS(DDTC_ERR_ARG, "wire", ddtc_type_from_wire(NULL, 100, &t));
    FAILS(DDTC_ERR_COUNT, "size = -1", ddtc_type_from_wire("ddtw", -1, &t));
    FAILS(DDTC_ERR_TRUNCATE, "byte 0", ddtc_type_from_wire(NULL, 0, &t));
    FAILS(DDTC_ERR_ARG, "byte 0", ddtc_type_from_wire("datatype", 8, &t));
    FAILS(DDTC_ERR_ARG, "newtype", ddtc_type_from_wire("ddtw", 4, NULL));
    OK(MPI_Type_dup(s, &stale));
    kept = stale;
    OK(MPI_Type_free(&stale));
    FAILS(DDTC_ERR_TYPE, "freed", ddtc_type_wire_size(kept, &size));
    OK(MPI_Type_free(&s));
    OK(MPI_Type_free(&t));
    return 0;
}
