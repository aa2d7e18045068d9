/* Tests of a status that the program itself fills (MPI 5.0, 3.2.5, 3.8.4, 13.3). They cover numbers
 * of elements of various types, all fields, and the Fortran form of a status. */
#include <ddtc/mpi.h>
#include <limits.h>
#include "check.h"

/* Checks that a status with n elements returns n elements. An instance has `per` elements, so the
 * status must also return n / per instances if this quotient is an integer. */
static void counts(MPI_Datatype t, int per)
{
    MPI_Status status;
    int n, got;
    MPI_Count large;
    for (n = 0; n < 40; n++) {
        OK(MPI_Status_set_elements(&status, t, n));
        OK(MPI_Get_elements(&status, t, &got));
        EQ(got, n);
        OK(MPI_Get_count(&status, t, &got));
        EQ(got, n % per ? MPI_UNDEFINED : n / per);
        OK(MPI_Status_set_elements_c(&status, t, n));
        OK(MPI_Get_elements_c(&status, t, &large));
        EQ(large, n);
        OK(MPI_Status_set_elements_x(&status, t, n));
        OK(MPI_Get_elements_x(&status, t, &large));
        EQ(large, n);
        OK(MPI_Get_count_c(&status, t, &large));
        EQ(large, n % per ? MPI_UNDEFINED : n / per);
    }
    FAILS(MPI_ERR_COUNT, "count = -1", MPI_Status_set_elements(&status, t, -1));
    FAILS(MPI_ERR_VALUE_TOO_LARGE, "count", MPI_Status_set_elements_c(&status, t, INT64_MAX));
    /* The status is unchanged after an error. */
    OK(MPI_Get_elements(&status, t, &got));
    EQ(got, 39);
}

/* Checks every number of bytes from 0 to the size of two instances of a type. The type has a char,
 * a pair of a double and an int, and a float, so an instance has 17 bytes and 4 elements. */
static void cuts(MPI_Datatype t)
{
    static const int ends[] = {0, 1, 9, 13, 17, 18, 26, 30, 34};
    MPI_Status status = {0};
    int bytes, i = 0, got;
    MPI_Count large;
    for (bytes = 0; bytes <= 34; bytes++) {
        i += i + 1 < LENGTH(ends) && bytes == ends[i + 1];
        OK(MPI_Status_set_elements(&status, MPI_BYTE, bytes));
        OK(MPI_Get_elements(&status, t, &got));
        EQ(got, bytes == ends[i] ? i : MPI_UNDEFINED);
        OK(MPI_Get_elements_c(&status, t, &large));
        EQ(large, bytes == ends[i] ? i : MPI_UNDEFINED);
        OK(MPI_Get_elements_x(&status, t, &large));
        EQ(large, bytes == ends[i] ? i : MPI_UNDEFINED);
        OK(MPI_Get_count(&status, t, &got));
        EQ(got, bytes % 17 ? MPI_UNDEFINED : bytes / 17);
        OK(MPI_Get_count_c(&status, t, &large));
        EQ(large, bytes % 17 ? MPI_UNDEFINED : bytes / 17);
    }
}

int main(void)
{
    MPI_Datatype t, v, empty;
    MPI_Status status;
    MPI_Fint fortran[MPI_F_STATUS_SIZE];
    int n;
    MPI_Count large;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));

    OK(MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){40, 8, 0},
                              (MPI_Datatype[]){MPI_CHAR, MPI_DOUBLE_INT, MPI_FLOAT}, &t));
    cuts(t);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_contiguous(10, MPI_INT, &t));
    counts(t, 10);
    OK(MPI_Type_free(&t));
    counts(MPI_SHORT, 1);
    counts(MPI_SHORT_INT, 2);
    counts(MPI_LONG_DOUBLE_INT, 2);
    OK(MPI_Type_create_struct(3, (int[]){1, 2, 1}, (MPI_Aint[]){0, 8, 64},
                              (MPI_Datatype[]){MPI_CHAR, MPI_DOUBLE_INT, MPI_FLOAT}, &t));
    counts(t, 6);
    OK(MPI_Type_vector(2, 2, 3, t, &v));
    counts(v, 24);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_free(&v));
    OK(MPI_Type_create_subarray(2, (int[]){4, 4}, (int[]){2, 3}, (int[]){1, 1}, MPI_ORDER_C, MPI_2INT, &t));
    counts(t, 12);
    OK(MPI_Type_free(&t));

    /* Tests numbers of bytes that need more than 32 bits. */
    OK(MPI_Status_set_elements_x(&status, MPI_DOUBLE, ((MPI_Count)3 << 32) + 1));
    OK(MPI_Get_elements_x(&status, MPI_DOUBLE, &large));
    EQ(large, ((MPI_Count)3 << 32) + 1);
    OK(MPI_Get_elements(&status, MPI_DOUBLE, &n));
    EQ(n, MPI_UNDEFINED);

    /* A type without data has no elements. */
    OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    OK(MPI_Status_set_elements(&status, empty, 0));
    OK(MPI_Get_elements(&status, empty, &n));
    EQ(n, 0);
    OK(MPI_Get_count(&status, empty, &n));
    EQ(n, 0);
    FAILS(MPI_ERR_COUNT, "count = 1", MPI_Status_set_elements(&status, empty, 1));
    OK(MPI_Type_free(&empty));
    FAILS(MPI_ERR_ARG, "status = NULL", MPI_Status_set_elements(MPI_STATUS_IGNORE, MPI_INT, 1));
    FAILS(MPI_ERR_TYPE, "MPI_DATATYPE_NULL", MPI_Status_set_elements(&status, MPI_DATATYPE_NULL, 1));

    /* Tests the other fields of a status. */
    OK(MPI_Status_set_elements(&status, MPI_INT, 3));
    OK(MPI_Status_set_source(&status, 4));
    OK(MPI_Status_set_tag(&status, 5));
    OK(MPI_Status_set_error(&status, MPI_ERR_TRUNCATE));
    OK(MPI_Status_set_cancelled(&status, 7));
    TRUE(status.MPI_SOURCE == 4 && status.MPI_TAG == 5 && status.MPI_ERROR == MPI_ERR_TRUNCATE);
    OK(MPI_Status_get_source(&status, &n));
    EQ(n, 4);
    OK(MPI_Status_get_tag(&status, &n));
    EQ(n, 5);
    OK(MPI_Status_get_error(&status, &n));
    EQ(n, MPI_ERR_TRUNCATE);
    OK(MPI_Test_cancelled(&status, &n));
    EQ(n, 1);
    OK(MPI_Get_elements(&status, MPI_INT, &n));
    EQ(n, 3);

    /* Tests the conversion to the Fortran form and back. */
    OK(MPI_Status_c2f(&status, fortran));
    TRUE(fortran[MPI_F_SOURCE] == 4 && fortran[MPI_F_TAG] == 5 && fortran[MPI_F_ERROR] == MPI_ERR_TRUNCATE);
    memset(&status, 0, sizeof status);
    fortran[MPI_F_TAG] = 55;
    OK(MPI_Status_f2c(fortran, &status));
    TRUE(status.MPI_SOURCE == 4 && status.MPI_TAG == 55);
    OK(MPI_Get_count(&status, MPI_INT, &n));
    EQ(n, 3);
    OK(MPI_Status_set_cancelled(&status, 0));
    OK(MPI_Test_cancelled(&status, &n));
    EQ(n, 0);
    return 0;
}
