/* Packs and unpacks many instances by single calls, in an Open MPI 6.0 with mover-provider-6.patch
 * and the preloaded provider. For many instances, MPI_Pack and MPI_Unpack of Open MPI 6.0 make a
 * temporary datatype ("consolidate") and move it as one instance. The program checks that a datatype
 * with a mover is packed by its mover, and that the provider is never asked about a temporary one.
 * The exit status is 1 if something differs. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 1000 };

extern struct {
    unsigned long commits, refused, destructs, sends, receives, bytes_packed, bytes_unpacked;
} ddtc_provider_counts __attribute__((weak));

static int wrong;

static void check(const char *name, int blocks, int bytes, int stride, int moved)
{
    static char memory[COUNT * 512], packed[COUNT * 512], again[COUNT * 512];
    MPI_Datatype tight, type;
    int size, position = 0;
    unsigned long commits = ddtc_provider_counts.commits, sends = ddtc_provider_counts.sends, receives = ddtc_provider_counts.receives;

    /* Blocks of chars at growing distances, which no vector describes. */
    int lengths[8], places[8];
    for (int i = 0, at = 0; i < blocks; at += stride + i, i++) lengths[i] = bytes, places[i] = at;
    MPI_Type_indexed(blocks, lengths, places, MPI_CHAR, &tight);
    MPI_Type_create_resized(tight, 0, 512, &type);
    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    if ((ddtc_provider_counts.commits > commits) != moved) wrong++, printf("%s: %lu movers\n", name, ddtc_provider_counts.commits - commits);
    commits = ddtc_provider_counts.commits;

    for (size_t i = 0; i < sizeof memory; i++) memory[i] = (char)(i * 7 + i / 251);
    MPI_Pack(memory, COUNT, type, packed, sizeof packed, &position, MPI_COMM_SELF);
    if (position != COUNT * size) wrong++, printf("%s: %d bytes packed\n", name, position);
    memset(again, 0, sizeof again);
    position = 0;
    MPI_Unpack(packed, COUNT * size, &position, again, COUNT, type, MPI_COMM_SELF);
    for (int k = 0, at = 0; k < COUNT; k++)
        for (int i = 0; i < blocks; i++, at += bytes) {
            char *here = memory + k * 512 + places[i];
            if (memcmp(here, packed + at, bytes) || memcmp(here, again + k * 512 + places[i], bytes)) wrong++;
        }
    if (ddtc_provider_counts.commits != commits || ddtc_provider_counts.refused)
        wrong++, printf("%s: the provider was asked during a call: %lu, %lu\n", name, ddtc_provider_counts.commits - commits, ddtc_provider_counts.refused);
    if ((ddtc_provider_counts.sends - sends == 1) != moved || (ddtc_provider_counts.receives - receives == 1) != moved)
        wrong++, printf("%s: %lu packs, %lu unpacks\n", name, ddtc_provider_counts.sends - sends, ddtc_provider_counts.receives - receives);
    MPI_Type_free(&tight);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (!&ddtc_provider_counts) return puts("no provider is preloaded"), 2;
    check("blocks of 8 bytes", 8, 8, 16, 1);
    check("blocks of 120 bytes", 3, 120, 128, 0);
    printf("consolidated: %d differences\n", wrong);
    MPI_Finalize();
    return wrong != 0;
}
