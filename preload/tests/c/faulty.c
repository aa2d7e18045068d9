/* A library that is called in place of an MPI library and passes calls on, but does one thing
 * wrong. The environment variable FAULT names what is wrong. `ddtc check --mpi` and the program
 * ddtbench must find the fault. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fault(const char *name)
{
    const char *wanted = getenv("FAULT");
    return wanted && !strcmp(wanted, name);
}

/* Returns whether a datatype was made by the constructor that has the given combiner. */
static int is(MPI_Datatype t, int combiner)
{
    int i, a, d, c;
    return PMPI_Type_get_envelope(t, &i, &a, &d, &c) == MPI_SUCCESS && c == combiner;
}

/* Returns the byte of one instance that has the highest address, or a null pointer if the type has
 * no bytes. */
static unsigned char *last(void *buffer, MPI_Datatype t)
{
    MPI_Aint lb, extent;
    int size;
    PMPI_Type_size(t, &size);
    PMPI_Type_get_true_extent(t, &lb, &extent);
    return size ? (unsigned char *)buffer + lb + extent - 1 : NULL;
}

static void spoil(void *buffer, MPI_Datatype t)
{
    unsigned char *byte = last(buffer, t);
    if (byte)
        *byte ^= 0xff;
}

/* Number of commits since a type was last freed. The number is large only if many types live at the
 * same time. */
static int commits;

int MPI_Type_commit(MPI_Datatype *t)
{
    commits++;
    return PMPI_Type_commit(t);
}

int MPI_Type_free(MPI_Datatype *t)
{
    commits = 0;
    return PMPI_Type_free(t);
}

int MPI_Type_get_extent(MPI_Datatype t, MPI_Aint *lb, MPI_Aint *extent)
{
    int code = PMPI_Type_get_extent(t, lb, extent);
    if (fault("bounds") && is(t, MPI_COMBINER_CONTIGUOUS))
        *lb += 1000;
    return code;
}

int MPI_Type_get_true_extent(MPI_Datatype t, MPI_Aint *lb, MPI_Aint *extent)
{
    int code = PMPI_Type_get_true_extent(t, lb, extent);
    if (fault("true-extent-of-subarray") && is(t, MPI_COMBINER_SUBARRAY))
        ++*extent;
    return code;
}

int MPI_Type_get_contents(MPI_Datatype t, int ni, int na, int nd, int i[], MPI_Aint a[], MPI_Datatype d[])
{
    int code = PMPI_Type_get_contents(t, ni, na, nd, i, a, d);
    if (fault("decode") && is(t, MPI_COMBINER_VECTOR) && ni)
        i[0]++;
    if (fault("contents-of-hindexed") && is(t, MPI_COMBINER_HINDEXED) && na)
        a[na - 1] += 8;
    return code;
}

#ifndef OPEN_MPI /* Open MPI 5.0 has no large-count functions. */
int MPI_Type_get_contents_c(MPI_Datatype t, MPI_Count ni, MPI_Count na, MPI_Count nc, MPI_Count nd, int i[], MPI_Aint a[], MPI_Count c[],
                            MPI_Datatype d[])
{
    int code = PMPI_Type_get_contents_c(t, ni, na, nc, nd, i, a, c, d);
    if (fault("decode") && is(t, MPI_COMBINER_VECTOR) && ni)
        i[0]++;
    if (fault("contents-of-hindexed") && is(t, MPI_COMBINER_HINDEXED) && na)
        a[na - 1] += 8;
    return code;
}
#endif

int MPI_Type_dup(MPI_Datatype t, MPI_Datatype *new)
{
    return fault("attributes") ? PMPI_Type_contiguous(1, t, new) : PMPI_Type_dup(t, new);
}

int MPI_Pack(const void *in, int n, MPI_Datatype t, void *out, int size, int *position, MPI_Comm comm)
{
    int start = *position, block = is(t, MPI_COMBINER_HINDEXED);
    if (block && fault("abort"))
        abort();
    if (block && fault("exit"))
        _exit(0);
    if (block && fault("segv"))
        *(volatile int *)8 = 0;
    while (block && fault("hang"))
        pause();
    int losing = fault("lost-of-hindexed") && block;
    unsigned char *bytes = out, *before = losing ? memcpy(malloc(size + 1), out, size) : NULL;
    int code = PMPI_Pack(in, n, t, out, size, position, comm);
    if (before && *position > start)
        bytes[*position - 1] = before[*position - 1];
    free(before);
    if (fault("last-of-indexed") && is(t, MPI_COMBINER_INDEXED) && *position > start)
        bytes[*position - 1] ^= 0xff;
    if (fault("swapped-of-vector") && is(t, MPI_COMBINER_VECTOR) && *position > start + 1) {
        unsigned char *other = &bytes[start + (*position - start) / 2], first = bytes[start];
        bytes[start] = *other;
        *other = first;
    }
    int wrong = (fault("pack") && is(t, MPI_COMBINER_VECTOR)) || (fault("commit") && commits > 40);
    if (wrong && *position > start)
        ((unsigned char *)out)[start] ^= 0xff;
    return code;
}

int MPI_Unpack(const void *in, int size, int *position, void *out, int n, MPI_Datatype t, MPI_Comm comm)
{
    int code = PMPI_Unpack(in, size, position, out, n, t, comm);
    if (fault("unpack") && n == 1 && is(t, MPI_COMBINER_VECTOR))
        spoil(out, t);
    MPI_Aint lb, extent;
    PMPI_Type_get_true_extent(t, &lb, &extent);
    if (fault("first-of-struct") && is(t, MPI_COMBINER_STRUCT) && n && last(out, t))
        ((unsigned char *)out)[lb] ^= 0xff;
    if (fault("behind-of-contiguous") && n == 1 && is(t, MPI_COMBINER_CONTIGUOUS) && last(out, t))
        last(out, t)[1] ^= 0xff;
    return code;
}

int MPI_Recv(void *out, int n, MPI_Datatype t, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    int code = PMPI_Recv(out, n, t, from, tag, comm, status), size;
    PMPI_Type_size(t, &size);
    if (fault("last-of-long-message") && code == MPI_SUCCESS && n == 1 && size > 256 && !is(t, MPI_COMBINER_NAMED))
        spoil(out, t);
    if (fault("behind-of-long-message") && code == MPI_SUCCESS && n == 1 && size > 256 && !is(t, MPI_COMBINER_NAMED))
        last(out, t)[1] ^= 0xff;
    if ((fault("behind-of-truncated") || fault("truncation")) && code != MPI_SUCCESS && n == 1 && is(t, MPI_COMBINER_VECTOR) && last(out, t))
        last(out, t)[1] ^= 0xff;
    return code;
}

int MPI_Get_elements(const MPI_Status *status, MPI_Datatype t, int *elements)
{
    int code = PMPI_Get_elements(status, t, elements);
    if (fault("elements-of-vector") && is(t, MPI_COMBINER_VECTOR) && *elements > 1)
        --*elements;
    return code;
}

int MPI_Get_count(const MPI_Status *status, MPI_Datatype t, int *count)
{
    int code = PMPI_Get_count(status, t, count);
    if (fault("elements") && *count == MPI_UNDEFINED)
        *count = 0;
    return code;
}

int MPI_Pack_external(const char rep[], const void *in, int n, MPI_Datatype t, void *out, MPI_Aint size, MPI_Aint *position)
{
    int code = PMPI_Pack_external(rep, in, n, t, out, size, position);
    if (fault("external32") && *position)
        *(unsigned char *)out ^= 0xff;
    return code;
}

/* Returns whether some elements of `n` instances must overlap in memory, because the instances have
 * more bytes than the memory that they span. */
static int overlaps(int n, MPI_Datatype t)
{
    MPI_Aint lb, extent, span;
    int size;
    PMPI_Type_size(t, &size);
    PMPI_Type_get_extent(t, &lb, &extent);
    PMPI_Type_get_true_extent(t, &lb, &span);
    return n > 0 && (long)size * n > span + (n - 1) * labs(extent);
}

int MPI_Sendrecv(const void *in, int n, MPI_Datatype t, int to, int tag, void *out, int m, MPI_Datatype u, int from, int utag, MPI_Comm comm,
                 MPI_Status *status)
{
    if (fault("overlap") && overlaps(m, u))
        abort();
    int code = PMPI_Sendrecv(in, n, t, to, tag, out, m, u, from, utag, comm, status);
    if (fault("messages") && m == 1 && is(u, MPI_COMBINER_VECTOR))
        spoil(out, u);
    return code;
}

int MPI_Gather(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, int root, MPI_Comm comm)
{
    int code = PMPI_Gather(in, n, t, out, m, u, root, comm);
    if (fault("collectives") && m == 1 && is(u, MPI_COMBINER_VECTOR))
        spoil(out, u);
    return code;
}
