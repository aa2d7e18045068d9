/* Tests of Fortran's default kinds, which a runtime sets before any datatype is used. */
#include <ddtc.h>
#include "check.h"
#include "integers.h"

static void size(ddtc_datatype t, int bytes)
{
    int n;
    OK(ddtc_type_size(t, &n));
    EQ(n, bytes);
}

int main(void)
{
    int i, r, d;
    FAILS(DDTC_ERR_UNSUPPORTED_OPERATION, "real = 3", ddtc_set_fortran_kinds(8, 3, 8));
    /* Sets the default kinds of gfortran with -fdefault-integer-8 -fdefault-real-8. */
    OK(ddtc_set_fortran_kinds(8, 8, 16));
    size(DDTC_TYPE_INTEGER, 8);
    size(DDTC_TYPE_LOGICAL, 8);
    size(DDTC_TYPE_REAL, 8);
    size(DDTC_TYPE_DOUBLE_PRECISION, 16);
    size(DDTC_TYPE_COMPLEX, 16);
    size(DDTC_TYPE_DOUBLE_COMPLEX, 32);
    size(DDTC_TYPE_2INTEGER, 16);
    size(DDTC_TYPE_INT, 4);
    size(DDTC_TYPE_INTEGER4, 4);
    /* Once a datatype was used, other kinds can no longer be set. Setting the same kinds again
     * succeeds. */
    FAILS(DDTC_ERR_OTHER, "before any datatype", ddtc_set_fortran_kinds(4, 4, 8));
    OK(ddtc_set_fortran_kinds(8, 8, 16));
    OK(ddtc_get_fortran_kinds(&i, &r, &d));
    TRUE(i == 8 && r == 8 && d == 16);
    /* INTEGER has 8 bytes here. The contents of a type that was made of INTEGER must return the
     * handle of INTEGER, and packing must move whole values of 8 bytes. */
    ddtc_datatype t, child;
    int64_t source[6] = {1, 2, 3, 4, 5, 6}, packed[3];
    int position = 0, ni;
    OK(ddtc_type_vector(3, 1, 2, DDTC_TYPE_INTEGER, &t));
    OK(ddtc_type_get_contents(t, 3, 0, 1, (int[3]){0}, NULL, &child));
    EQ(child, DDTC_TYPE_INTEGER);
    OK(ddtc_type_commit(&t));
    OK(ddtc_pack(source, 1, t, packed, sizeof packed, &position));
    TRUE(packed[0] == 1 && packed[1] == 3 && packed[2] == 5);
    OK(ddtc_get_elements(t, 16, &ni));
    EQ(ni, 2);
    OK(ddtc_type_free(&t));
    /* A wire form from a process with other kinds is refused, because INTEGER has another size
     * there than in this process. */
    FAILS(DDTC_ERR_TYPE, "must have the 8 bytes", ddtc_type_from_wire(integers, sizeof integers, &t));

    /* Tests values of LOGICAL that other compilers use. */
    OK(ddtc_set_fortran_booleans(-1, 0));
    OK(ddtc_get_fortran_booleans(&i, &r));
    TRUE(i == -1 && r == 0);
    FAILS(DDTC_ERR_ARG, "logical_true = 1", ddtc_set_fortran_booleans(1, 1));
    return 0;
}
