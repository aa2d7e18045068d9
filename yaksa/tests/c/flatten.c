/* Tests serialized types, which `yaksa_flatten` writes and `yaksa_unflatten` reads. Reading a
 * serialized type gives a type with the same properties, even if the original type was freed
 * meanwhile. Bytes that are not a serialized type are refused. */
#include "interface.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Checks that yaksa itself would refuse a serialized type of this library, which is at `form`.
 * yaksa reads the kind of the type from the int at byte 4. Kind 0 stands for a predefined type, and
 * then yaksa reads the type handle at byte 80. The serialized type has kind 0 and a handle that no
 * type in yaksa has, so a rank that uses yaksa ends instead of accepting it. */
static void refused_by_yaksa(const char *form, uintptr_t n)
{
    int kind;
    uint64_t number;
    EQ(n >= 88, 1);
    memcpy(&kind, form + 4, sizeof kind);
    memcpy(&number, form + 80, sizeof number);
    EQ(kind, 0);
    EQ(number, 0xffffffff);
    /* A serialized type of yaksa begins with a reference count. A serialized type of this
     * library begins with the magic number "ddty", and has a second magic number, "ddtw", after its
     * head of 88 bytes. */
    EQ(memcmp(form, "ddty", 4), 0);
    EQ(memcmp(form + 88, "ddtw", 4), 0);
}

/* A handler that ends the process as if nothing had happened. */
static void leave(int signal)
{
    (void)signal;
    _exit(0);
}

/* Checks that `yaksa_unflatten` ends the process, with a line on standard error that says why,
 * if it gets a serialized type of another library. An error code would not suffice, because MPICH
 * ignores it at the target of one-sided operations. A handler of the signal must not run. */
static void ends(const void *form)
{
    int said[2], status;
    char line[512] = "";
    EQ(pipe(said), 0);
    pid_t child = fork();
    if (child == 0) {
        ytype none;
        dup2(said[1], 2);
        signal(SIGABRT, leave);
        yaksa_unflatten(&none, form);
        _exit(0);
    }
    close(said[1]);
    EQ(waitpid(child, &status, 0), child);
    EQ(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, 1);
    EQ(read(said[0], line, sizeof line - 1) > 0, 1);
    EQ(strstr(line, "all processes of a job must load the same") != NULL, 1);
    close(said[0]);
}

/* Serializes `t`, and returns the type that results from reading the serialized type. Also
 * checks that the serialized type is refused if one of its bits is changed. */
static ytype again(ytype t)
{
    uintptr_t n;
    ytype u = 1;
    OK(yaksa_flatten_size(t, &n));
    char *form = malloc(n + 2);
    form[0] = form[n + 1] = 0x5a;
    /* The buffer for a serialized type need not be aligned. The one in this test begins 1 byte
     * after the address that malloc returns. */
    OK(yaksa_flatten(t, form + 1));
    EQ(form[0], 0x5a);
    EQ(form[n + 1], 0x5a);
    OK(yaksa_unflatten(&u, form + 1));
    refused_by_yaksa(form + 1, n);
    /* Bytes 96 to 103 are the length of the part after the head. Only zeros follow this part. */
    uint64_t end;
    memcpy(&end, form + 1 + 96, sizeof end);
    end += 88;
    for (uintptr_t at = end; at < n; at++) EQ(form[1 + at], 0);
    for (uintptr_t at = 0; at < end; at += 1 + end / 64) {
        /* The library would read as many bytes as a wrong length says, so the test does not change
         * the length. */
        if (at >= 96 && at < 104) continue;
        ytype none = 77;
        form[1 + at] ^= 1;
        /* Bytes 92 to 95 are the version of the part after the head. The library reads only its
         * own version, and refuses others with another code. */
        FAILS(at >= 92 && at < 96 ? NOT_SUPPORTED : INTERNAL, yaksa_unflatten(&none, form + 1));
        EQ(none == UINT64_MAX, 1);
        form[1 + at] ^= 1;
    }
    free(form);
    return u;
}

int main(void)
{
    ytype t, u, v;
    uintptr_t n, m;
    int ints[64], packed[2][64];
    for (int i = 0; i < 64; i++) ints[i] = i;
    OK(yaksa_init(NULL));
    OK(yaksa_type_create_resized(T_INT, -4, 12, NULL, &t));
    OK(yaksa_type_create_struct(3, LIST(2, 1, 0), LIST(8, 0, 0), TYPES(t, T_SHORT_INT, T_DOUBLE), NULL, &u));
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_subarray(2, LIST(3, 3), LIST(2, 1), LIST(0, 1), ORDER_C, u, NULL, &v));
    OK(yaksa_type_free(u));
    u = again(v);
    OK(yaksa_type_get_size(v, &n));
    OK(yaksa_type_get_size(u, &m));
    EQ(n, m);
    intptr_t lb, extent, lb2, extent2;
    OK(yaksa_type_get_extent(v, &lb, &extent));
    OK(yaksa_type_get_extent(u, &lb2, &extent2));
    EQ(lb, lb2);
    EQ(extent, extent2);
    OK(yaksa_type_get_true_extent(v, &lb, &extent));
    OK(yaksa_type_get_true_extent(u, &lb2, &extent2));
    EQ(lb, lb2);
    EQ(extent, extent2);
    EQ(pieces(1, v), pieces(1, u));
    EQ(pieces(2, v), pieces(2, u));
    memset(packed, 0, sizeof packed);
    OK(yaksa_pack(ints, 1, v, 0, packed[0], sizeof packed[0], &n, NULL, OP_REPLACE));
    OK(yaksa_type_free(v));
    OK(yaksa_pack(ints, 1, u, 0, packed[1], sizeof packed[1], &m, NULL, OP_REPLACE));
    EQ(n, 28);
    EQ(m, n);
    BYTES(packed[0], packed[1], n);
    OK(yaksa_type_free(u));

    u = again(T_DOUBLE);
    bounds(u, 8, 0, 8, 0, 8);
    OK(yaksa_type_free(u));
    u = again(T_LONG_DOUBLE_INT);
    EQ(pieces(2, u), 2);
    OK(yaksa_type_free(u));
    EQ(again(T_NULL), T_NULL);

    ytype none = 77;
    FAILS(INTERNAL, yaksa_unflatten(&none, "bytes that are none of ours, whatever they mean"));
    /* If `yaksa_unflatten` fails, it writes a handle that names no type. So the later calls of a
     * caller that ignores the error code fail, too. */
    FAILS(INTERNAL, yaksa_type_get_size(none, &n));
    FAILS(INTERNAL, yaksa_iov_len(1, none, &n));
    FAILS(INTERNAL, yaksa_pack(ints, 1, none, 0, packed[0], sizeof packed[0], &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_unpack(packed[0], 4, ints, 1, none, 0, &n, NULL, OP_REPLACE));
    FAILS(INTERNAL, yaksa_type_free(none));
    /* MPICH decides by the length of a serialized type in which way it moves data. So each has at
     * least the length that it has in yaksa: 680 bytes for a subarray of two dimensions, and 952 for
     * six vectors, one of the other. From 800 bytes on, none fits into a header of MPICH. */
    OK(yaksa_type_create_subarray(2, LIST(8, 8), LIST(2, 2), LIST(1, 1), ORDER_C, T_INT, NULL, &t));
    OK(yaksa_flatten_size(t, &n));
    EQ(n >= 680 && n < 728, 1);
    OK(yaksa_type_free(t));
    OK(yaksa_type_create_hvector(10, 2, 64, T_INT, NULL, &t));
    OK(yaksa_flatten_size(t, &n));
    EQ(n, 272);
    for (int i = 0; i < 5; i++) {
        OK(yaksa_type_create_hvector(2, 1, 1000 << i, t, NULL, &u));
        OK(yaksa_type_free(t));
        t = u;
    }
    OK(yaksa_flatten_size(u, &n));
    EQ(n, 800);
    v = again(u);
    EQ(pieces(1, v), 320);
    OK(yaksa_type_free(u));
    OK(yaksa_type_free(v));
    char *form = malloc(4096);
    OK(yaksa_flatten_size(T_INT, &n));
    EQ(n <= 4096, 1);
    OK(yaksa_flatten(T_INT, form));
    /* The process ends if the serialized type lacks the head of 88 bytes. Versions of ddtc up to
     * 0.2.2 wrote no head. */
    ends(form + 88);
    /* The process also ends if the serialized type was written by yaksa. These numbers are the
     * beginning of one: reference count, kind, depth and alignment of the type. */
    int vector[28] = {1, 4, 2, 8};
    ends(vector);
    /* With a reference count of 2^32 - 1, which no type has in practice, these bytes are neither
     * a serialized type of yaksa nor one of this library. So the call returns an error code. The
     * same is true if the kind of the type is one that does not exist in yaksa, such as 9. */
    vector[0] = -1;
    FAILS(INTERNAL, yaksa_unflatten(&none, vector));
    vector[0] = 1, vector[1] = 9;
    FAILS(INTERNAL, yaksa_unflatten(&none, vector));
    free(form);
    FAILS(INTERNAL, yaksa_unflatten(&none, NULL));
    FAILS(INTERNAL, yaksa_unflatten(NULL, "ddty...."));
    FAILS(INTERNAL, yaksa_flatten(T_INT, NULL));
    FAILS(INTERNAL, yaksa_flatten_size(T_INT, NULL));
    FAILS(INTERNAL, yaksa_flatten_size(12345, &n));
    EQ(none == UINT64_MAX, 1);
    OK(yaksa_finalize());
    return 0;
}
