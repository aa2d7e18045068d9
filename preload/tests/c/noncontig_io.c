/* Writes and reads several two-dimensional variables at once by collective calls, as PnetCDF makes
 * them.
 *
 * Each variable is an array of SIDE by SIDE doubles, and each rank has a block of it in a process
 * grid. In the file, the variables are one after another. In memory, the rank's blocks of all
 * variables are laid out as MEMORY says:
 *     contig  without gaps
 *     gap     with 16 bytes between variables
 *     stride  as every other double
 *     ghost   each inside a tile with a rim of 2 elements
 * The bytes that were read must equal those that were written, and gaps must not change. A hash of
 * the whole file is printed.
 *
 * Usage: noncontig_io FILE VARIABLES SIDE MEMORY ROUNDS */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RIM = 2, GAP = 16, UNTOUCHED = 0x5a };

static int rank, variables, part[2];
static size_t block; /* number of doubles of one variable that this rank has */

/* The layout of the variables in the memory of this rank: a datatype, the size of the memory in
 * bytes, and the place in bytes of each element of a variable. */
struct memory {
    MPI_Datatype type;
    size_t bytes;
    size_t (*place)(int variable, int row, int column);
};

static size_t place_contig(int v, int r, int c) { return 8 * (v * block + (size_t)r * part[1] + c); }
static size_t place_gap(int v, int r, int c) { return place_contig(v, r, c) + (size_t)v * GAP; }
static size_t place_stride(int v, int r, int c) { return 2 * place_contig(v, r, c); }
static size_t place_ghost(int v, int r, int c)
{
    size_t width = part[1] + 2 * RIM, tile = (part[0] + 2 * RIM) * width;
    return 8 * (v * tile + (r + RIM) * width + c + RIM);
}

static struct memory memory_named(const char *name)
{
    struct memory memory;
    if (strcmp(name, "contig") == 0) {
        memory = (struct memory){.bytes = variables * block * 8, .place = place_contig};
        MPI_Type_contiguous((int)(variables * block), MPI_DOUBLE, &memory.type);
    } else if (strcmp(name, "gap") == 0) {
        memory = (struct memory){.bytes = variables * (block * 8 + GAP), .place = place_gap};
        MPI_Type_create_hvector(variables, (int)block, (MPI_Aint)(block * 8 + GAP), MPI_DOUBLE, &memory.type);
    } else if (strcmp(name, "stride") == 0) {
        memory = (struct memory){.bytes = variables * block * 16, .place = place_stride};
        MPI_Type_vector((int)(variables * block), 1, 2, MPI_DOUBLE, &memory.type);
    } else {
        int tile[2] = {part[0] + 2 * RIM, part[1] + 2 * RIM}, start[2] = {RIM, RIM};
        MPI_Datatype one;
        memory = (struct memory){.bytes = (size_t)variables * tile[0] * tile[1] * 8, .place = place_ghost};
        MPI_Type_create_subarray(2, tile, part, start, MPI_ORDER_C, MPI_DOUBLE, &one);
        MPI_Type_contiguous(variables, one, &memory.type);
        MPI_Type_free(&one);
    }
    MPI_Type_commit(&memory.type);
    return memory;
}

/* Makes the datatype for the view of the file, which shows this rank its block of each variable. */
static MPI_Datatype view_of_blocks(int side, const int at[2])
{
    int whole[2] = {side, side};
    MPI_Datatype one, view;
    MPI_Type_create_subarray(2, whole, part, at, MPI_ORDER_C, MPI_DOUBLE, &one);
    MPI_Type_contiguous(variables, one, &view);
    MPI_Type_commit(&view);
    MPI_Type_free(&one);
    return view;
}

static uint64_t hash_of_file(const char *name)
{
    uint64_t hash = 1469598103934665603u;
    FILE *file = fopen(name, "rb");
    for (int byte = getc(file); byte != EOF; byte = getc(file))
        hash = (hash ^ (uint64_t)byte) * 1099511628211u;
    fclose(file);
    return hash;
}

/* Writes all variables to the file by one collective call and reads them back by another. Returns
 * the number of wrong calls, elements and bytes of gaps. */
static int round_trip(const char *name, MPI_Datatype view, const struct memory *memory, const char *written, char *got)
{
    int wrong = 0, elements;
    MPI_File file;
    MPI_Status status;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_DOUBLE, view, "native", MPI_INFO_NULL);
    wrong += MPI_File_write_at_all(file, 0, written, 1, memory->type, &status) != MPI_SUCCESS;
    MPI_Get_elements(&status, MPI_DOUBLE, &elements);
    wrong += elements != (int)(variables * block);
    memset(got, UNTOUCHED, memory->bytes);
    wrong += MPI_File_read_at_all(file, 0, got, 1, memory->type, &status) != MPI_SUCCESS;
    MPI_Get_elements(&status, MPI_DOUBLE, &elements);
    wrong += elements != (int)(variables * block);
    MPI_File_close(&file);
    /* Compare each element that was read with the written one, and then set it to UNTOUCHED. After
     * that, every byte of the memory must be UNTOUCHED. */
    for (int v = 0; v < variables; v++)
        for (int r = 0; r < part[0]; r++)
            for (int c = 0; c < part[1]; c++) {
                size_t place = memory->place(v, r, c);
                wrong += memcmp(got + place, written + place, 8) != 0;
                memset(got + place, UNTOUCHED, 8);
            }
    for (size_t i = 0; i < memory->bytes; i++)
        wrong += got[i] != UNTOUCHED;
    return wrong;
}

int main(int argc, char **argv)
{
    int size, grid[2] = {0, 0}, wrong = 0, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    variables = atoi(argv[2]);
    int side = atoi(argv[3]), rounds = atoi(argv[5]);
    MPI_Dims_create(size, 2, grid);
    part[0] = side / grid[0];
    part[1] = side / grid[1];
    block = (size_t)part[0] * part[1];
    int at[2] = {rank / grid[1] * part[0], rank % grid[1] * part[1]};
    MPI_Datatype view = view_of_blocks(side, at);
    struct memory memory = memory_named(argv[4]);
    char *written = malloc(memory.bytes), *got = malloc(memory.bytes);
    for (size_t i = 0; i < memory.bytes; i++)
        written[i] = (char)(i * 31 + i / 256 + rank * 97);
    for (int round = 0; round < rounds; round++) {
        if (rank == 0)
            MPI_File_delete(argv[1], MPI_INFO_NULL);
        MPI_Barrier(MPI_COMM_WORLD);
        wrong += round_trip(argv[1], view, &memory, written, got);
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d variables, %s: %d wrong, file %016llx\n", variables, argv[4], all, (unsigned long long)hash_of_file(argv[1]));
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_File_delete(argv[1], MPI_INFO_NULL);
    free(written);
    free(got);
    MPI_Type_free(&view);
    MPI_Type_free(&memory.type);
    MPI_Finalize();
    return 0;
}
