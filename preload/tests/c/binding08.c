/* Two functions of a Fortran binding for `use mpi_f08`. As in Debian's build of MPICH, they call
 * the C functions by their profiling names (PMPI_). With -DPROGRAM, the file is instead a program
 * that calls the two functions as Fortran does.
 *
 * The program commits types of many layouts, exchanges messages of each type with itself, and frees
 * the types, so that the MPI library uses the values of handles again for other types. It prints
 * the number of wrong results. */
#include <mpi.h>
#include <stdio.h>

void mpi_type_commit_f08_(MPI_Fint *datatype, MPI_Fint *error);
void mpi_type_free_f08_(MPI_Fint *datatype, MPI_Fint *error);

#ifndef PROGRAM

void mpi_type_commit_f08_(MPI_Fint *datatype, MPI_Fint *error)
{
    MPI_Datatype type = MPI_Type_f2c(*datatype);
    int code = PMPI_Type_commit(&type);
    *datatype = MPI_Type_c2f(type);
    if (error != NULL)
        *error = code;
}

void mpi_type_free_f08_(MPI_Fint *datatype, MPI_Fint *error)
{
    MPI_Datatype type = MPI_Type_f2c(*datatype);
    int code = PMPI_Type_free(&type);
    *datatype = MPI_Type_c2f(type);
    if (error != NULL)
        *error = code;
}

#else

enum { LAYOUTS = 40, ROUNDS = 10, INTS = 4096 };

int main(int argc, char **argv)
{
    static int sent[INTS], received[INTS];
    int wrong = 0;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < INTS; i++)
        sent[i] = i;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        int blocks = 100 + layout, stride = 2 + layout % 5;
        MPI_Datatype type;
        MPI_Type_vector(blocks, 1, stride, MPI_INT, &type);
        MPI_Fint handle = MPI_Type_c2f(type), error = -1;
        /* Fortran programs may omit the error code, which arrives here as a null pointer. Do so in
         * every second call. */
        mpi_type_commit_f08_(&handle, layout % 2 ? &error : NULL);
        wrong += layout % 2 && error != MPI_SUCCESS;
        type = MPI_Type_f2c(handle);
        for (int round = 0; round < ROUNDS; round++) {
            for (int i = 0; i < INTS; i++)
                received[i] = -1;
            MPI_Sendrecv(sent, 1, type, 0, 1, received, 1, type, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
            for (int i = 0; i < INTS; i++)
                wrong += received[i] != (i % stride == 0 && i / stride < blocks ? i : -1);
        }
        mpi_type_free_f08_(&handle, layout % 3 ? &error : NULL);
        wrong += MPI_Type_f2c(handle) != MPI_DATATYPE_NULL;
    }
    printf("wrong %d\n", wrong);
    MPI_Finalize();
    return 0;
}

#endif
