/* Calls MPI_Pack_external and MPI_Unpack_external of the MPI library, without the preload library.
 * Reads lines "ENTRY COUNT USER STREAM" from standard input, in which USER and STREAM are bytes in
 * hexadecimal digits. ENTRY is the name of a named type or the number of a layout. For each line,
 * packs from USER, and unpacks from STREAM into zeros. Prints "ENTRY CLASS PACKED CLASS UNPACKED",
 * with the error class of each of the two calls, or "ENTRY absent" if the library does not have the
 * type. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "named.h"

static unsigned char *bytes(const char *digits, long *size)
{
    long i;
    unsigned char *out;
    *size = strcmp(digits, "-") ? (long)strlen(digits) / 2 : 0;
    out = malloc(*size + 1);
    for (i = 0; i < *size; i++) sscanf(digits + 2 * i, "%2hhx", &out[i]);
    return out;
}

static void show(int code, const unsigned char *bytes, long size)
{
    MPI_Error_class(code, &code);
    printf(" %d ", code);
    while (size--) printf("%02x", *bytes++);
}

int main(int argc, char **argv)
{
    static char entry[256], user[1 << 16], stream[1 << 16];
    int count;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (scanf("%255s %d %65535s %65535s", entry, &count, user, stream) == 4) {
        MPI_Datatype t;
        long span, size;
        int code, class;
        MPI_Aint position = 0;
        unsigned char *from = bytes(user, &span), *packed = bytes(stream, &size), *out = calloc(size + 1, 1);
        if (entry[0] >= '0' && entry[0] <= '9') {
            t = make[atoi(entry)]();
            MPI_Type_commit(&t);
        } else if (!named(entry, &t) || t == MPI_DATATYPE_NULL) {
            printf("%s absent\n", entry);
            continue;
        }
        printf("%s", entry);
        code = MPI_Pack_external("external32", from, count, t, out, size, &position);
        if (code && (MPI_Error_class(code, &class), class == MPI_ERR_TYPE)) {
            printf(" absent\n");
            continue;
        }
        show(code, out, position);
        memset(from, 0, span), position = 0;
        code = MPI_Unpack_external("external32", packed, size, &position, from, count, t);
        show(code, from, span);
        puts("");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
