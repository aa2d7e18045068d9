/*
 * bounds.refused-type_create_darray.empty-member: openmpi 5.0.11
 * 1 of darray(1,0,[1],[none],[default],[1],C,struct([],[],[]))
 * MPI 5.0, 5.1: the arguments are legal, so the call succeeds
 * expected: MPI_SUCCESS
 * got: MPI_Type_create_darray returns an error of class 3
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad;

/* A legal call. */
#define CALL(call)                                                           \
    do {                                                                     \
        int code = (call), class = code;                                     \
        if (code != MPI_SUCCESS) {                                           \
            MPI_Error_class(code, &class);                                   \
            printf("expected MPI_SUCCESS, got class %d: %s\n", class, #call); \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

static void same(const char *what, long long expected, long long got)
{
    if (expected != got) {
        printf("%s: expected %lld, got %lld\n", what, expected, got);
        bad = 1;
    }
}

static MPI_Datatype build(void)
{
    MPI_Datatype t0;
    CALL(MPI_Type_create_struct(0, (int[]){0}, (MPI_Aint[]){0}, (MPI_Datatype[]){MPI_BYTE}, &t0));
    MPI_Datatype t1;
    CALL(MPI_Type_create_darray(1, 0, 1, (int[]){1}, (int[]){MPI_DISTRIBUTE_NONE}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){1}, MPI_ORDER_C, t0, &t1));
    return t1;
}

#define CHECK_SIZE 0
#define CHECK_SMALL_SIZE 0
#define CHECK_BOUNDS 0
#define CHECK_TRUE_BOUNDS 0
#define WANT_SIZE 0
#define WANT_LB 0
#define WANT_EXTENT 0
#define WANT_TRUE_LB 0
#define WANT_TRUE_EXTENT 0
#define COMMIT 0
#define MAP (void)0

static void check(MPI_Datatype t)
{
    MPI_Count size;
    MPI_Aint lb, extent;
    CALL(MPI_Type_size_x(t, &size));
    if (CHECK_SIZE)
        same("size", WANT_SIZE, size);
    CALL(MPI_Type_get_extent(t, &lb, &extent));
    if (CHECK_BOUNDS) {
        same("lower bound", WANT_LB, lb);
        same("extent", WANT_EXTENT, extent);
    }
    CALL(MPI_Type_get_true_extent(t, &lb, &extent));
    if (CHECK_TRUE_BOUNDS) {
        same("true lower bound", WANT_TRUE_LB, lb);
        same("true extent", WANT_TRUE_EXTENT, extent);
    }
    int small;
    CALL(MPI_Type_size(t, &small));
    if (CHECK_SMALL_SIZE)
        same("size as an int", MPI_UNDEFINED, small);
}

int main(int argc, char **argv)
{
    CALL(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Datatype t = build();
    if (COMMIT)
        CALL(MPI_Type_commit(&t));
    MAP;
    check(t);
    puts(bad ? "wrong" : "right");
    fflush(stdout);
    MPI_Finalize();
    return bad;
}
