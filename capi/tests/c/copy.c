/* Tests of copies from one layout to another. Some copies are made with two handles. Others are
 * made with a pointer that is looked up once for a pair of committed types. The tests cover values
 * computed by hand, counts, signatures, and overlapping memory. */
#include <ddtc.h>
#include <limits.h>
#include <stdint.h>
#include "check.h"

struct body {
    int id;
    double mass;
    float at[3];
};

enum { N = 100 };

static struct body bodies[N];
static struct {
    int id[N];
    double mass[N];
    float at[N][3];
} arrays;

/* Returns a type that lists the first member of all bodies, then the second member of all bodies,
 * and so on. `base` has the displacement of each member in the first body, and `step` the distance
 * in bytes between the same member of two neighbouring bodies. */
static ddtc_datatype by_member(const ddtc_aint base[3], const ddtc_aint step[3])
{
    static const int lengths[3] = {1, 1, 3};
    ddtc_datatype old[3] = {DDTC_TYPE_INT, DDTC_TYPE_DOUBLE, DDTC_TYPE_FLOAT}, member[3], t;
    for (int i = 0; i < 3; i++) OK(ddtc_type_create_hvector(N, lengths[i], step[i], old[i], &member[i]));
    OK(ddtc_type_create_struct(3, (int[]){1, 1, 1}, base, member, &t));
    for (int i = 0; i < 3; i++) OK(ddtc_type_free(&member[i]));
    return t;
}

int main(void)
{
    const ddtc_aint size = sizeof(struct body);
    ddtc_datatype from = by_member((ddtc_aint[]){offsetof(struct body, id), offsetof(struct body, mass), offsetof(struct body, at)},
                                   (ddtc_aint[]){size, size, size});
    ddtc_datatype to = by_member((ddtc_aint[]){0, offsetof(__typeof__(arrays), mass), offsetof(__typeof__(arrays), at)},
                                 (ddtc_aint[]){sizeof(int), sizeof(double), 3 * sizeof(float)});
    const ddtc_committed *a, *b;
    const ddtc_direct *direct;
    ddtc_count bytes = -1;
    for (int i = 0; i < N; i++) bodies[i] = (struct body){i, i / 8.0, {i, i + 0.25f, i + 0.5f}};
    FAILS(DDTC_ERR_TYPE, "intype", ddtc_copy(bodies, 1, from, &arrays, 1, to));
    OK(ddtc_type_commit(&from));
    FAILS(DDTC_ERR_TYPE, "outtype", ddtc_copy(bodies, 1, from, &arrays, 1, to));
    OK(ddtc_type_commit(&to));

    /* Copies an array of structures to a structure of arrays, and back. */
    OK(ddtc_copy(bodies, 1, from, &arrays, 1, to));
    for (int i = 0; i < N; i++) {
        EQ(arrays.id[i], i);
        EQ(arrays.mass[i] * 8, i);
        EQ(arrays.at[i][2] * 4, 4 * i + 2);
    }
    memset(bodies, 0, sizeof bodies);
    OK(ddtc_type_get_committed(from, &a));
    OK(ddtc_type_get_committed(to, &b));
    OK(ddtc_committed_direct(b, a, &direct));
    /* The pointer `direct` stays valid after the committed types and their handles are released. */
    OK(ddtc_committed_release(a));
    OK(ddtc_committed_release(b));
    OK(ddtc_type_free(&from));
    OK(ddtc_type_free(&to));
    OK(ddtc_direct_retain(direct));
    OK(ddtc_direct_copy(direct, &arrays, 1, bodies, 1, &bytes));
    EQ(bytes, N * 24);
    OK(ddtc_direct_period(direct, &bytes));
    EQ(bytes, N * 24);
    OK(ddtc_direct_release(direct));
    for (int i = 0; i < N; i++) {
        EQ(bodies[i].id, i);
        EQ(bodies[i].mass * 8, i);
        EQ(bodies[i].at[1] * 4, 4 * i + 1);
    }
    OK(ddtc_direct_copy(direct, &arrays, 0, bodies, 0, &bytes));
    EQ(bytes, 0);
    FAILS(DDTC_ERR_COUNT, "incount", ddtc_direct_copy(direct, &arrays, -1, bodies, 1, &bytes));
    FAILS(DDTC_ERR_COUNT, "outcount", ddtc_direct_copy(direct, &arrays, 1, bodies, -1, &bytes));
    FAILS(DDTC_ERR_ARG, "bytes", ddtc_direct_copy(direct, &arrays, 1, bodies, 1, NULL));
    FAILS(DDTC_ERR_ARG, "direct", ddtc_direct_copy(NULL, &arrays, 1, bodies, 1, &bytes));
    FAILS(DDTC_ERR_TRUNCATE, "to_count", ddtc_direct_copy(direct, &arrays, 2, bodies, 1, &bytes));
    FAILS(DDTC_ERR_BUFFER, "inbuf", ddtc_direct_copy(direct, (void *)(UINTPTR_MAX - 8), 1, bodies, 1, &bytes));
    EQ(bytes, 0);
    OK(ddtc_direct_release(direct));

    /* Adds rows to a column. If the target maps the same place several times, every contribution is
     * added to it. */
    int rows[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, sums[8][2];
    ddtc_datatype pair, step, place;
    const ddtc_committed *source, *target;
    for (int i = 0; i < 16; i++) sums[i / 2][i % 2] = 100 * i;
    OK(ddtc_type_vector(8, 1, 2, DDTC_TYPE_INT, &step));
    OK(ddtc_type_contiguous(8, DDTC_TYPE_INT, &pair));
    OK(ddtc_type_create_hvector(8, 1, 0, DDTC_TYPE_INT, &place));
    OK(ddtc_type_commit(&step));
    OK(ddtc_type_commit(&pair));
    OK(ddtc_type_commit(&place));
    OK(ddtc_type_get_committed(pair, &source));
    OK(ddtc_type_get_committed(step, &target));
    OK(ddtc_committed_direct_reduce(source, target, DDTC_SUM, &direct));
    OK(ddtc_direct_copy(direct, rows, 1, sums, 1, &bytes));
    EQ(bytes, 32);
    for (int i = 0; i < 8; i++) {
        EQ(sums[i][0], 200 * i + i + 1);
        EQ(sums[i][1], 200 * i + 100);
    }
    OK(ddtc_direct_release(direct));
    OK(ddtc_committed_release(target));
    OK(ddtc_type_get_committed(place, &target));
    OK(ddtc_committed_direct_reduce(source, target, DDTC_SUM, &direct));
    OK(ddtc_direct_copy(direct, rows, 1, sums, 1, &bytes));
    EQ(sums[0][0], 1 + 36);
    OK(ddtc_direct_release(direct));
    FAILS(DDTC_ERR_OP, "0 (", ddtc_committed_direct_reduce(source, target, DDTC_MINLOC, &direct));
    FAILS(DDTC_ERR_OP, "op", ddtc_committed_direct_reduce(source, target, DDTC_OP_NULL, &direct));
    OK(ddtc_committed_release(source));
    OK(ddtc_committed_release(target));
    OK(ddtc_type_free(&pair));
    OK(ddtc_type_free(&step));
    OK(ddtc_type_free(&place));

    /* Named types need no commit. A copy with different signatures is refused before anything is
     * written. */
    int four[4] = {1, 2, 3, 4}, into[5] = {0};
    OK(ddtc_copy(four, 4, DDTC_TYPE_INT, into, 5, DDTC_TYPE_INT));
    EQ(into[3], 4);
    EQ(into[4], 0);
    FAILS(DDTC_ERR_TYPE, "MPI_INT to MPI_FLOAT", ddtc_copy(four, 4, DDTC_TYPE_INT, into, 4, DDTC_TYPE_FLOAT));
    EQ(into[3], 4);
    OK(ddtc_copy(four, 4, DDTC_TYPE_INT, into, 16, DDTC_TYPE_BYTE));

    /* Copies a column of a matrix to the first row of the matrix. The column and the row overlap in
     * the first element of the column. */
    double matrix[4][4];
    ddtc_datatype column;
    for (int i = 0; i < 16; i++) matrix[i / 4][i % 4] = i;
    OK(ddtc_type_vector(4, 1, 4, DDTC_TYPE_DOUBLE, &column));
    OK(ddtc_type_commit(&column));
    OK(ddtc_copy(&matrix[0][1], 1, column, matrix, 4, DDTC_TYPE_DOUBLE));
    for (int i = 0; i < 4; i++) EQ(matrix[0][i], 4 * i + 1);
    EQ(matrix[1][0], 4);
    OK(ddtc_type_free(&column));
    FAILS(DDTC_ERR_TYPE, "intype", ddtc_copy(four, 1, NULL, into, 1, DDTC_TYPE_INT));
    return 0;
}
