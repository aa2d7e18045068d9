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
