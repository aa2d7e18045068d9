/* Moves data from rank 0 to rank 1 by one kind of call. The two ranks may use different libraries
 * as libyaksa.so.0, the datatype engine of MPICH. The script mixed.py runs this program and judges
 * what it prints.
 *
 *   mixed send | put | accumulate
 *
 * The type has gaps. The data are at least 8 KiB in at most 1024 pieces, because MPICH 5 then sends
 * the flattened type together with a message. For a put and an accumulate, MPICH always sends the
 * type of the target. Rank 1 prints one line. It is "right"; or "error CLASS" if a call returned an
 * error; or "wrong N" if all calls returned success but N elements have wrong values. Rank 0 prints
 * a line only if a call returned an error. A rank that is ended by a library prints nothing. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 500, LENGTH = 8, STRIDE = 16, ELEMENTS = BLOCKS * STRIDE };

static int first_error = MPI_SUCCESS;

static void call(int code)
{
    if (first_error == MPI_SUCCESS && code != MPI_SUCCESS) MPI_Error_class(code, &first_error);
}

int main(int argc, char **argv)
{
    static double data[ELEMENTS];
    int rank, ranks;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc != 2 || ranks != 2) {
        fprintf(stderr, "usage, on 2 ranks: mixed send | put | accumulate\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Type_vector(BLOCKS, LENGTH, STRIDE, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    /* On rank 1 all elements are 1 at the beginning, so that an accumulate, which adds to them,
     * gives another result than a put. */
    for (int i = 0; i < ELEMENTS; i++) data[i] = rank == 0 ? i + 10 : 1;
    if (strcmp(argv[1], "send") == 0) {
        if (rank == 0) call(MPI_Send(data, 1, type, 1, 0, MPI_COMM_WORLD));
        else call(MPI_Recv(data, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    } else {
        MPI_Win window;
        MPI_Win_create(data, sizeof data, sizeof *data, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
        call(MPI_Win_fence(0, window));
        if (rank == 0 && strcmp(argv[1], "put") == 0) call(MPI_Put(data, 1, type, 1, 0, 1, type, window));
        if (rank == 0 && strcmp(argv[1], "accumulate") == 0) call(MPI_Accumulate(data, 1, type, 1, 0, 1, type, MPI_SUM, window));
        call(MPI_Win_fence(0, window));
    }
    if (rank == 1) {
        int wrong = 0, added = strcmp(argv[1], "accumulate") == 0;
        for (int i = 0; i < ELEMENTS; i++) wrong += data[i] != (i % STRIDE < LENGTH && i < ELEMENTS ? i + 10 + added : 1);
        if (first_error != MPI_SUCCESS) printf("error %d\n", first_error);
        else if (wrong) printf("wrong %d\n", wrong);
        else printf("right\n");
    } else if (first_error != MPI_SUCCESS) {
        printf("error %d\n", first_error);
    }
    fflush(stdout);
    /* After an error, freeing the window or a collective call may never return, so end the job
     * here. The script mixed.py judges only by the line that has been printed. */
    if (first_error != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
