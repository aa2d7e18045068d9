/* Runs MPI_Pack_external and MPI_Unpack_external of this MPI library on the layouts of layouts.h.
 *
 *   external INDEX      reads user memory from the file "user" and a stream from the file "stream".
 *                       It packs the user memory into the file "packed", unpacks the stream into
 *                       that memory, and writes the result to the file "unpacked". Then it prints
 *                       "ready" and the return codes of both calls. After that it measures a batch
 *                       for each line "p" (pack) or "u" (unpack) of standard input: it repeats the
 *                       call until a batch takes more than 200 us, and prints the nanoseconds of
 *                       one call. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "layouts.h"

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }

static char *get(const char *name, long *size)
{
    FILE *f = fopen(name, "rb");
    char *bytes;
    if (!f) perror(name), exit(1);
    fseek(f, 0, SEEK_END), *size = ftell(f), rewind(f);
    bytes = malloc(*size + 1);
    if (fread(bytes, 1, *size, f) != (size_t)*size) perror(name), exit(1);
    fclose(f);
    return bytes;
}

static void put(const char *name, const char *bytes, long size)
{
    FILE *f = fopen(name, "wb");
    if (!f || fwrite(bytes, 1, size, f) != (size_t)size || fclose(f)) perror(name), exit(1);
}

static MPI_Datatype t;
static char *user, *stream, *packed;
static long span, size;

static int pack(void)
{
    MPI_Aint position = 0;
    return MPI_Pack_external("external32", user, 1, t, packed, size, &position);
}

static int unpack(void)
{
    MPI_Aint position = 0;
    return MPI_Unpack_external("external32", stream, size, &position, user, 1, t);
}

int main(int argc, char **argv)
{
    char line[16];
    double nanoseconds;
    long repeats[2] = {1, 1}, i;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (argc < 2) return 2;
    t = make[atoi(argv[1])]();
    MPI_Type_commit(&t);
    user = get("user", &span), stream = get("stream", &size);
    packed = calloc(size + 1, 1);
    printf("ready %d", pack());
    put("packed", packed, size);
    printf(" %d\n", unpack());
    put("unpacked", user, span);
    for (fflush(stdout); fgets(line, sizeof line, stdin); fflush(stdout)) {
        int (*call)(void) = line[0] == 'p' ? pack : unpack;
        long *n = &repeats[line[0] == 'p'];
        for (;;) {
            double start = now();
            for (i = 0; i < *n; i++) call();
            nanoseconds = now() - start;
            if (nanoseconds > 2e5) break;
            *n *= 2;
        }
        printf("%.2f\n", nanoseconds / *n);
    }
    MPI_Finalize();
    return 0;
}
