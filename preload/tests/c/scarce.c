/* A program in which a resource of the process runs out after MPI_Init, and which goes on after
 * that.
 *
 * It commits types of many layouts, exchanges messages of each type with itself, and packs and
 * unpacks them. Every byte is compared.
 *
 * Usage: scarce descriptors | memory | memfd
 *     descriptors  the table of file descriptors is full
 *     memory       the address space may grow by only 4 MiB
 *     memfd        memfd_create is refused, as with the setting vm.memfd_noexec=2 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LAYOUTS = 60, ROUNDS = 20, BUFFER_BYTES = 1 << 20, MIB = 1 << 20, GROWTH = 4 };

enum { DESCRIPTORS = 512 };
static int is_refused, first_opened = DESCRIPTORS;
static char from[BUFFER_BYTES], into[BUFFER_BYTES], packed[BUFFER_BYTES];

/* Replaces the C library's memfd_create, also for the preload library. It always fails: with EACCES
 * once the mode `memfd` has begun, and otherwise as on a kernel without the call. */
int memfd_create(const char *name, unsigned flags)
{
    (void)name, (void)flags;
    errno = is_refused ? EACCES : ENOSYS;
    return -1;
}

static void fill_descriptors(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = DESCRIPTORS;
    setrlimit(RLIMIT_NOFILE, &limit);
    first_opened = open("/dev/null", O_RDONLY);
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
}

static void limit_memory(void)
{
    unsigned long pages = 0;
    struct rlimit limit;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%lu", &pages) != 1)
        abort();
    fclose(file);
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + (unsigned long)GROWTH * MIB;
    setrlimit(RLIMIT_AS, &limit);
}

/* Makes a vector type whose blocks and gaps depend on `number`. */
static MPI_Datatype layout(int number, int *extent)
{
    int blocks = 20 + number, length = 1 + number % 7, stride = length + 1 + number % 5;
    MPI_Datatype type;
    MPI_Type_vector(blocks, length, stride, MPI_INT, &type);
    MPI_Type_commit(&type);
    *extent = ((blocks - 1) * stride + length) * (int)sizeof(int);
    return type;
}

/* Moves one instance from `from` to `into`, by a message in even rounds and by packing in odd
 * rounds. Returns whether a byte is wrong. */
static int moves_wrong(MPI_Datatype type, int extent, int round)
{
    int position = 0, size;
    memset(into, 0x55, (size_t)extent);
    MPI_Type_size(type, &size);
    if (round % 2 == 0) {
        MPI_Sendrecv(from, 1, type, 0, 1, into, 1, type, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    } else {
        MPI_Pack(from, 1, type, packed, BUFFER_BYTES, &position, MPI_COMM_SELF);
        position = 0;
        MPI_Unpack(packed, size, &position, into, 1, type, MPI_COMM_SELF);
    }
    int moved = 0;
    for (int i = 0; i < extent; i++) {
        if (into[i] == from[i])
            moved++;
        else if (into[i] != 0x55)
            return 1;
    }
    return moved != size;
}

int main(int argc, char **argv)
{
    int wrong = 0;
    MPI_Init(&argc, &argv);
    for (int i = 0; i < BUFFER_BYTES; i++) {
        from[i] = (char)(i * 37 + i / 256);
        if (from[i] == 0x55) /* 0x55 is the value of bytes that were not moved */
            from[i] = 0;
    }
    /* Send a message before a resource runs out, since the MPI library opens files for its first
     * message. */
    MPI_Sendrecv(from, 1, MPI_INT, 0, 1, into, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    if (strcmp(argv[1], "descriptors") == 0)
        fill_descriptors();
    else if (strcmp(argv[1], "memory") == 0)
        limit_memory();
    else
        is_refused = 1;
    for (int number = 0; number < LAYOUTS; number++) {
        int extent;
        MPI_Datatype type = layout(number, &extent);
        for (int round = 0; round < ROUNDS; round++)
            wrong += moves_wrong(type, extent, round);
        MPI_Type_free(&type);
    }
    printf("%s: %d transfers wrong\n", argv[1], wrong);
    fflush(stdout);
    /* Close the descriptors, since MPI_Finalize may open files. */
    for (int descriptor = first_opened; descriptor < DESCRIPTORS; descriptor++)
        close(descriptor);
    MPI_Finalize();
    return 0;
}
