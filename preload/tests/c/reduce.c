/* Calls MPI_Reduce_local of the MPI library, without the preload library. Reads lines "TYPE OP
 * COUNT IN INOUT" from standard input, with bytes in hexadecimal digits; TYPE is a named type.
 * Prints "TYPE OP CLASS INOUT" with the error class, or "TYPE OP absent" if the library does not
 * have the type. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "named.h"

static MPI_Op operation(const char *name)
{
    static const struct {
        const char *name;
        int which;
    } names[] = {{"sum", 0},  {"prod", 1}, {"min", 2}, {"max", 3},  {"band", 4},   {"bor", 5},
                 {"bxor", 6}, {"land", 7}, {"lor", 8}, {"lxor", 9}, {"minloc", 10}, {"maxloc", 11}};
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR,
                          MPI_MINLOC, MPI_MAXLOC};
    unsigned i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(name, names[i].name)) return ops[names[i].which];
    return MPI_OP_NULL;
}

static unsigned char *bytes(const char *digits, long *size)
{
    long i;
    unsigned char *out;
    *size = (long)strlen(digits) / 2;
    out = malloc(*size + 1);
    for (i = 0; i < *size; i++) sscanf(digits + 2 * i, "%2hhx", &out[i]);
    return out;
}

int main(int argc, char **argv)
{
    static char type[256], op[64], in[1 << 16], inout[1 << 16];
    int count;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    while (scanf("%255s %63s %d %65535s %65535s", type, op, &count, in, inout) == 5) {
        MPI_Datatype t;
        long size, i;
        int code;
        unsigned char *from = bytes(in, &size), *to = bytes(inout, &size);
        if (!named(type, &t) || t == MPI_DATATYPE_NULL) {
            printf("%s %s absent\n", type, op);
        } else {
            code = MPI_Reduce_local(from, to, count, t, operation(op));
            MPI_Error_class(code, &code);
            printf("%s %s %d ", type, op, code);
            for (i = 0; i < size; i++) printf("%02x", to[i]);
            puts("");
        }
        fflush(stdout);
        free(from);
        free(to);
    }
    MPI_Finalize();
    return 0;
}
