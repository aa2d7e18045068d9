/* Tests for the correct use of addresses (MPI-2.2, section 4.1.12). */
#include <ddtc.h>
#include <stdint.h>
#include "check.h"

static double first[4] = {1, 2, 3, 4};

int main(void)
{
    int second[3] = {5, 6, 7}, *third = malloc(2 * sizeof(int)), n;
    third[0] = 8, third[1] = 9;

    /* Separate objects can form one buffer if the buffer is MPI_BOTTOM, the count is 1 and the
     * displacements are absolute addresses. */
    ddtc_aint at[3], here;
    OK(ddtc_get_address(first, &at[0]));
    OK(ddtc_get_address(second, &at[1]));
    OK(ddtc_get_address(third, &at[2]));
    EQ(at[0], (intptr_t)first);
    EQ(ddtc_aint_add(at[1], 4), (intptr_t)&second[1]);
    OK(ddtc_get_address(&second[2], &here));
    EQ(ddtc_aint_diff(here, at[1]), 8);
    EQ(ddtc_aint_diff(at[1], here), -8);
    ddtc_datatype t, types[3] = {DDTC_TYPE_DOUBLE, DDTC_TYPE_INT, DDTC_TYPE_INT};
    OK(ddtc_type_create_struct(3, (int[]){4, 3, 2}, at, types, &t));
    OK(ddtc_type_commit(&t));
    struct { double d[4]; int i[5]; } packed;
    int position = 0;
    OK(ddtc_pack(NULL, 1, t, &packed, sizeof packed, &position));
    EQ(position, 4 * 8 + 5 * 4);
    for (int i = 0; i < 4; i++) TRUE(packed.d[i] == i + 1);
    for (int i = 0; i < 5; i++) EQ(packed.i[i], 5 + i);
    for (int i = 0; i < 4; i++) first[i] = 0;
    second[0] = second[1] = second[2] = third[0] = third[1] = 0;
    position = 0;
    OK(ddtc_unpack(&packed, sizeof packed, &position, NULL, 1, t));
    TRUE(first[0] == 1 && first[3] == 4 && second[0] == 5 && second[2] == 7 && third[1] == 9);
    OK(ddtc_type_free(&t));

    /* A displacement or extent that overflows 64 bits is refused by the constructor. */
    FAILS(DDTC_ERR_VALUE_TOO_LARGE, "displacements",
          ddtc_type_create_hindexed(1, (int[]){2}, (ddtc_aint[]){INT64_MAX - 4}, DDTC_TYPE_INT, &t));
    FAILS(DDTC_ERR_VALUE_TOO_LARGE, "stride",
          ddtc_type_create_hvector(3, 1, INT64_MAX, DDTC_TYPE_INT, &t));
    FAILS(DDTC_ERR_VALUE_TOO_LARGE, "extent", ddtc_type_create_resized(DDTC_TYPE_INT, INT64_MAX, 1, &t));

    /* Data outside of the address space are refused by pack and unpack, which consider all
     * instances. */
    int buffer[4] = {0};
    char out[1024];
    memset(out, 3, sizeof out);
    OK(ddtc_type_create_hindexed(1, (int[]){1}, (ddtc_aint[]){INT64_MAX - 16}, DDTC_TYPE_INT, &t));
    OK(ddtc_type_commit(&t));
    position = 0;
    FAILS(DDTC_ERR_BUFFER, "address space", ddtc_pack((void *)(UINT64_MAX - 64), 1, t, out, sizeof out, &position));
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_resized(DDTC_TYPE_INT, 0, (ddtc_aint)1 << 62, &t));
    OK(ddtc_type_commit(&t));
    FAILS(DDTC_ERR_BUFFER, "100 instances", ddtc_pack(buffer, 100, t, out, sizeof out, &position));
    OK(ddtc_type_free(&t));
    OK(ddtc_type_create_resized(DDTC_TYPE_INT, 0, -((ddtc_aint)1 << 62), &t));
    OK(ddtc_type_commit(&t));
    FAILS(DDTC_ERR_BUFFER, "address space", ddtc_unpack(out, 8, &position, buffer, 2, t));
    ddtc_count got;
    FAILS(DDTC_ERR_BUFFER, "address space", ddtc_pack_range(buffer, 2, t, 0, out, 8, &got));
    OK(ddtc_type_free(&t));
    /* A null buffer with relative displacements is refused. */
    FAILS(DDTC_ERR_BUFFER, "buffer = 0x0", ddtc_pack(NULL, 1, DDTC_TYPE_INT, out, sizeof out, &position));
    EQ(position, 0);
    for (int i = 0; i < 1024; i++) EQ(out[i], 3);

    /* Relative displacements are added to the buffer address, even if they are negative. */
    OK(ddtc_type_create_hindexed(2, (int[]){1, 1}, (ddtc_aint[]){-4, 4}, DDTC_TYPE_INT, &t));
    OK(ddtc_type_commit(&t));
    OK(ddtc_pack(&second[1], 1, t, out, sizeof out, &position));
    EQ(position, 8);
    memcpy(&n, out + 4, 4);
    EQ(n, 7);
    OK(ddtc_type_free(&t));
    free(third);
    return 0;
}
