/* ddtc.h - C interface of ddtc, the derived datatype compiler.
 *
 * MPI derived datatypes without an MPI library: constructors, decoding, attributes, and packing by
 * native code that is compiled when a type is committed. ddtc_mpi.h declares the same functions
 * under MPI's own names.
 *
 * Conventions
 *   Return value   DDTC_SUCCESS (0), an MPI error class with its value in the MPI 5.0 standard ABI,
 *                  or the code that a failing attribute callback returned. ddtc_error_string(code)
 *                  describes the last failure of the calling thread: it names the argument, its
 *                  value and the rule. A function that fails has changed nothing and written no
 *                  result, unless its comment says otherwise.
 *   Threads        Every function may be called from any thread at any time. A handle may be freed
 *                  while another thread uses it: that thread's call either finishes or reports a
 *                  stale handle. No lock is held while callbacks run, so they may call back into
 *                  the library. They must not throw C++ exceptions through it.
 *   Ownership      A derived handle that a function returns is a reference that belongs to the
 *                  caller; ddtc_type_free gives it back. Predefined handles are never freed,
 *                  whether they have a name or not (f90 and value_index types have none).
 *   Handles        Predefined handles are the small integers of the standard ABI. Derived handles
 *                  are opaque 64-bit values; on x86-64 they are never valid addresses. A freed
 *                  handle stays invalid, because no later object gets the same value.
 *   Pointers       A pointer argument must not be null unless its comment says otherwise. A null
 *                  pointer is DDTC_ERR_ARG, except that a null packed buffer is DDTC_ERR_BUFFER and
 *                  that functions of MPI_T return DDTC_T_ERR_INVALID. Arrays of length 0 may be
 *                  null, and so may the location of ddtc_get_address, the extra_state of
 *                  ddtc_type_create_keyval and the value of ddtc_type_set_attr.
 *   fork           A child process may go on using everything, whatever other threads of the parent
 *                  were doing, and callbacks may fork. The child never writes to the parent's code
 *                  memory, but opens its own. An embedder's own fork handlers may call the library
 *                  only in the child. EMBEDDING.md says in which order to register them, and in
 *                  which cases every function that can fail returns DDTC_ERR_OTHER in a child.
 *                  vfork, posix_spawn, _Fork and bare clone run no fork handlers, so a child made
 *                  by one of them must call exec before it uses the library.
 *   Limits         If the system refuses a memory file, code is placed in anonymous pages. If it
 *                  refuses executable memory, types are interpreted instead of compiled. Neither is
 *                  an error. If the cause is a limit on the size of files, the system also sends
 *                  the signal SIGXFSZ, which the library masks and removes.
 *   Side effects   None before the first call: no constructor runs, no thread starts, no
 *                  environment variable is read, and nothing is printed.
 *
 * The soname contains major.minor while the major version is 0, and only major after that.
 * Structures that may grow in later versions begin with struct_size.
 */
#ifndef DDTC_H
#define DDTC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDTC_VERSION_MAJOR 0
#define DDTC_VERSION_MINOR 3
#define DDTC_VERSION_PATCH 0

/* ---- Types ------------------------------------------------------------------------------------------------------ */

/* These types are MPI_Datatype, MPI_Aint and MPI_Count of the MPI 5.0 ABI. */
typedef struct MPI_ABI_Datatype *ddtc_datatype;
typedef intptr_t ddtc_aint;
typedef int64_t ddtc_count;

/* ---- Constants: values of the MPI 5.0 standard ABI -------------------------------------------------------------- */

enum {
    DDTC_SUCCESS = 0,
    DDTC_ERR_BUFFER = 1,
    DDTC_ERR_COUNT = 2,
    DDTC_ERR_TYPE = 3,
    DDTC_ERR_OP = 10,
    DDTC_ERR_ARG = 13,
    DDTC_ERR_TRUNCATE = 15,
    DDTC_ERR_OTHER = 16,
    DDTC_ERR_INTERN = 17,
    DDTC_ERR_CONVERSION = 25,
    DDTC_ERR_INFO_KEY = 31,
    DDTC_ERR_INFO_NOKEY = 32,
    DDTC_ERR_INFO_VALUE = 33,
    DDTC_ERR_INFO = 34,
    DDTC_ERR_KEYVAL = 36,
    DDTC_ERR_NO_MEM = 39,
    DDTC_ERR_UNSUPPORTED_DATAREP = 54,
    DDTC_ERR_UNSUPPORTED_OPERATION = 55,
    DDTC_ERR_VALUE_TOO_LARGE = 59,
    DDTC_ERR_ERRHANDLER = 61
};

enum {
    DDTC_UNDEFINED = -32766,
    DDTC_KEYVAL_INVALID = 0,
    DDTC_MAX_OBJECT_NAME = 128,
    DDTC_MAX_ERROR_STRING = 512,
    DDTC_MAX_INFO_KEY = 256,
    DDTC_MAX_INFO_VAL = 1024,
    DDTC_ORDER_C = 12,
    DDTC_ORDER_FORTRAN = 15,
    DDTC_DISTRIBUTE_NONE = 16,
    DDTC_DISTRIBUTE_BLOCK = 17,
    DDTC_DISTRIBUTE_CYCLIC = 18,
    DDTC_DISTRIBUTE_DFLT_DARG = 19,
    DDTC_TYPECLASS_INTEGER = 192,
    DDTC_TYPECLASS_REAL = 193,
    DDTC_TYPECLASS_COMPLEX = 194
};

enum {
    DDTC_COMBINER_NAMED = 101,
    DDTC_COMBINER_DUP = 102,
    DDTC_COMBINER_CONTIGUOUS = 103,
    DDTC_COMBINER_VECTOR = 104,
    DDTC_COMBINER_HVECTOR = 105,
    DDTC_COMBINER_INDEXED = 106,
    DDTC_COMBINER_HINDEXED = 107,
    DDTC_COMBINER_INDEXED_BLOCK = 108,
    DDTC_COMBINER_HINDEXED_BLOCK = 109,
    DDTC_COMBINER_STRUCT = 110,
    DDTC_COMBINER_SUBARRAY = 111,
    DDTC_COMBINER_DARRAY = 112,
    DDTC_COMBINER_F90_REAL = 113,
    DDTC_COMBINER_F90_COMPLEX = 114,
    DDTC_COMBINER_F90_INTEGER = 115,
    DDTC_COMBINER_RESIZED = 116,
    DDTC_COMBINER_VALUE_INDEX = 117,
    /* Combiners of the MPI-1 constructors in the form in which Fortran called them, with INTEGER
     * addresses. The ABI defines no values for these combiners; the values are ddtc's own. */
    DDTC_COMBINER_HVECTOR_INTEGER = 20105,
    DDTC_COMBINER_HINDEXED_INTEGER = 20107,
    DDTC_COMBINER_STRUCT_INTEGER = 20110
};

/* Combiners that ddtc_type_envelope returns. The values are ddtc's own. */
enum {
    DDTC_BASIC = 1501,
    DDTC_CONTIG = 1502,
    DDTC_VECTOR = 1503,
    DDTC_HVECTOR = 1504,
    DDTC_INDEXED = 1505,
    DDTC_HINDEXED = 1506,
    DDTC_STRUCT = 1507
};

/* Predefined handles, with the values of the ABI. */
#define DDTC_DATATYPE_NULL ((ddtc_datatype)0x200)
#define DDTC_TYPE_AINT ((ddtc_datatype)0x201)
#define DDTC_TYPE_COUNT ((ddtc_datatype)0x202)
#define DDTC_TYPE_OFFSET ((ddtc_datatype)0x203)
#define DDTC_TYPE_PACKED ((ddtc_datatype)0x207)
#define DDTC_TYPE_SHORT ((ddtc_datatype)0x208)
#define DDTC_TYPE_INT ((ddtc_datatype)0x209)
#define DDTC_TYPE_LONG ((ddtc_datatype)0x20a)
#define DDTC_TYPE_LONG_LONG ((ddtc_datatype)0x20b)
#define DDTC_TYPE_UNSIGNED_SHORT ((ddtc_datatype)0x20c)
#define DDTC_TYPE_UNSIGNED ((ddtc_datatype)0x20d)
#define DDTC_TYPE_UNSIGNED_LONG ((ddtc_datatype)0x20e)
#define DDTC_TYPE_UNSIGNED_LONG_LONG ((ddtc_datatype)0x20f)
#define DDTC_TYPE_FLOAT ((ddtc_datatype)0x210)
#define DDTC_TYPE_C_FLOAT_COMPLEX ((ddtc_datatype)0x212)
#define DDTC_TYPE_CXX_FLOAT_COMPLEX ((ddtc_datatype)0x213)
#define DDTC_TYPE_DOUBLE ((ddtc_datatype)0x214)
#define DDTC_TYPE_C_DOUBLE_COMPLEX ((ddtc_datatype)0x216)
#define DDTC_TYPE_CXX_DOUBLE_COMPLEX ((ddtc_datatype)0x217)
#define DDTC_TYPE_LOGICAL ((ddtc_datatype)0x218)
#define DDTC_TYPE_INTEGER ((ddtc_datatype)0x219)
#define DDTC_TYPE_REAL ((ddtc_datatype)0x21a)
#define DDTC_TYPE_COMPLEX ((ddtc_datatype)0x21b)
#define DDTC_TYPE_DOUBLE_PRECISION ((ddtc_datatype)0x21c)
#define DDTC_TYPE_DOUBLE_COMPLEX ((ddtc_datatype)0x21d)
#define DDTC_TYPE_CHARACTER ((ddtc_datatype)0x21e)
#define DDTC_TYPE_LONG_DOUBLE ((ddtc_datatype)0x220)
#define DDTC_TYPE_C_LONG_DOUBLE_COMPLEX ((ddtc_datatype)0x224)
#define DDTC_TYPE_CXX_LONG_DOUBLE_COMPLEX ((ddtc_datatype)0x225)
#define DDTC_TYPE_FLOAT_INT ((ddtc_datatype)0x228)
#define DDTC_TYPE_DOUBLE_INT ((ddtc_datatype)0x229)
#define DDTC_TYPE_LONG_INT ((ddtc_datatype)0x22a)
#define DDTC_TYPE_2INT ((ddtc_datatype)0x22b)
#define DDTC_TYPE_SHORT_INT ((ddtc_datatype)0x22c)
#define DDTC_TYPE_LONG_DOUBLE_INT ((ddtc_datatype)0x22d)
#define DDTC_TYPE_2REAL ((ddtc_datatype)0x230)
#define DDTC_TYPE_2DOUBLE_PRECISION ((ddtc_datatype)0x231)
#define DDTC_TYPE_2INTEGER ((ddtc_datatype)0x232)
#define DDTC_TYPE_C_BOOL ((ddtc_datatype)0x238)
#define DDTC_TYPE_CXX_BOOL ((ddtc_datatype)0x239)
#define DDTC_TYPE_WCHAR ((ddtc_datatype)0x23c)
#define DDTC_TYPE_INT8_T ((ddtc_datatype)0x240)
#define DDTC_TYPE_UINT8_T ((ddtc_datatype)0x241)
#define DDTC_TYPE_CHAR ((ddtc_datatype)0x243)
#define DDTC_TYPE_SIGNED_CHAR ((ddtc_datatype)0x244)
#define DDTC_TYPE_UNSIGNED_CHAR ((ddtc_datatype)0x245)
#define DDTC_TYPE_BYTE ((ddtc_datatype)0x247)
#define DDTC_TYPE_INT16_T ((ddtc_datatype)0x248)
#define DDTC_TYPE_UINT16_T ((ddtc_datatype)0x249)
#define DDTC_TYPE_INT32_T ((ddtc_datatype)0x250)
#define DDTC_TYPE_UINT32_T ((ddtc_datatype)0x251)
#define DDTC_TYPE_INT64_T ((ddtc_datatype)0x258)
#define DDTC_TYPE_UINT64_T ((ddtc_datatype)0x259)
#define DDTC_TYPE_LOGICAL1 ((ddtc_datatype)0x2c0)
#define DDTC_TYPE_INTEGER1 ((ddtc_datatype)0x2c1)
#define DDTC_TYPE_LOGICAL2 ((ddtc_datatype)0x2c8)
#define DDTC_TYPE_INTEGER2 ((ddtc_datatype)0x2c9)
#define DDTC_TYPE_REAL2 ((ddtc_datatype)0x2ca)
#define DDTC_TYPE_LOGICAL4 ((ddtc_datatype)0x2d0)
#define DDTC_TYPE_INTEGER4 ((ddtc_datatype)0x2d1)
#define DDTC_TYPE_REAL4 ((ddtc_datatype)0x2d2)
#define DDTC_TYPE_COMPLEX4 ((ddtc_datatype)0x2d3)
#define DDTC_TYPE_LOGICAL8 ((ddtc_datatype)0x2d8)
#define DDTC_TYPE_INTEGER8 ((ddtc_datatype)0x2d9)
#define DDTC_TYPE_REAL8 ((ddtc_datatype)0x2da)
#define DDTC_TYPE_COMPLEX8 ((ddtc_datatype)0x2db)
#define DDTC_TYPE_LOGICAL16 ((ddtc_datatype)0x2e0)
#define DDTC_TYPE_INTEGER16 ((ddtc_datatype)0x2e1)
#define DDTC_TYPE_REAL16 ((ddtc_datatype)0x2e2)
#define DDTC_TYPE_COMPLEX16 ((ddtc_datatype)0x2e3)
#define DDTC_TYPE_COMPLEX32 ((ddtc_datatype)0x2eb)
/* Bound markers of MPI-1, which the ABI lacks. They are types of size 0 that only set a bound. */
#define DDTC_TYPE_LB ((ddtc_datatype)0xf00)
#define DDTC_TYPE_UB ((ddtc_datatype)0xf01)

/* ---- Library: version, configuration, hooks, errors ------------------------------------------------------------- */

/* Return the version of the library that the program is linked with. The constants DDTC_VERSION_*
 * are the version of this header. */
int ddtc_version(int *major, int *minor, int *patch);
const char *ddtc_version_string(void);

enum { DDTC_MODE_OFF = 0, DDTC_MODE_INTERPRET = 1, DDTC_MODE_LAZY = 2, DDTC_MODE_COMMIT = 3 };
enum { DDTC_TARGET_BASELINE = 0, DDTC_TARGET_AVX2 = 1, DDTC_TARGET_AVX512 = 2, DDTC_TARGET_NEON = 3 };

typedef struct ddtc_config {
    /* Set by the caller to sizeof(ddtc_config), also before ddtc_config_get. */
    size_t struct_size;
    /* When datatypes are compiled, a DDTC_MODE_ constant. OFF: nothing is compiled, and pack and
     * unpack follow the type map; commits prepare and cache layouts nevertheless. INTERPRET:
     * layouts are interpreted, and never compiled. LAZY: a layout is compiled once one of its
     * directions has moved lazy_threshold bytes. COMMIT: layouts are compiled at commit. */
    int mode;
    /* CPU level of compiled code, a DDTC_TARGET_ constant. The default is the highest level of the
     * machine. */
    int target;
    /* Whether a commit compiles unpack as well as pack. Otherwise unpack is compiled at its first
     * use. */
    int both_directions;
    /* Whether to verify the result of every compiler stage, and to compare every pack, unpack and
     * range with what the type map defines. Only the bytes that the call maps are compared, not
     * those between them. Reductions are not compared, and neither are direct calls of the entry of
     * a ddtc_kernel. */
    int check;
    /* In mode LAZY, the number of bytes that one direction (pack or unpack) of a layout has to move
     * before it is compiled. Layouts that differ only in distances of 64 KiB or more are counted
     * together. */
    uint64_t lazy_threshold;
    /* Number of bytes above which the cache drops layouts. All layouts in it count, those of
     * committed types included, but only layouts that no committed type uses are dropped: the least
     * recently used first, until at most three quarters of this number are in use. */
    uint64_t cache_bytes;
    /* Maximum number of bytes of executable memory. Once they are used up, further layouts are
     * interpreted. */
    uint64_t arena_bytes;
    /* Number of threads, at most 1024, for one pack or unpack of at least parallel_bytes bytes. With
     * 1, the default, no thread is started; 0 means 1. A call is split only if it moves all packed
     * bytes of its instances and its direction has been compiled, and an unpack only if it is known
     * that no entries of the instances overlap. Conversions and reductions are not split. */
    uint64_t threads;
    /* Number of packed bytes from which on a call is split over threads. */
    uint64_t parallel_bytes;
    /* Number of packed bytes from which on a pack uses stores that bypass the caches. With
     * UINT64_MAX, the default, it never does. */
    uint64_t stream_bytes;
} ddtc_config;

/* Read and set the configuration that later commits use. Types that are already committed keep the
 * configuration with which they were committed. A caller that was built with the header of an
 * earlier version passes the size of its own, shorter structure in struct_size, and the fields that
 * this structure lacks keep their values. Any other struct_size is DDTC_ERR_ARG. */
int ddtc_config_get(ddtc_config *config);
int ddtc_configure(const ddtc_config *config);

/* Sets the functions from which the library gets its memory, except for executable pages. `free`
 * receives the size and alignment that `alloc` was called with. `alloc` returns null on failure. If
 * the memory was for a list whose length depends on a datatype, such as the nest and the tables of
 * a commit, a list of segments, a wire form or the buffer of a copy, the call returns
 * DDTC_ERR_NO_MEM, or the type is interpreted instead of compiled. For any other memory, the
 * library ends the process by abort(): that is all of a fixed size, the library's copies of the
 * arrays that are passed to constructors, and the memory of code generators. This must be the first
 * call of the process into the library: once anything was allocated it returns DDTC_ERR_OTHER and
 * changes nothing. Both functions may be called from any thread. They must neither call the library
 * nor fork. */
typedef struct ddtc_allocator {
    void *(*alloc)(void *context, size_t size, size_t alignment);
    void (*free)(void *context, void *pointer, size_t size, size_t alignment);
    void *context;
} ddtc_allocator;
int ddtc_set_allocator(const ddtc_allocator *allocator);
int ddtc_allocator_is_set(int *flag);

/* Sets a function that receives one line for each event (compiles, fallbacks, differences in check
 * mode) whose level is `level` or more urgent. The default is a null `log`, which turns logging
 * off, whatever the level. The thread that does the work calls the function, without holding a
 * lock. Lines about the compile of a type are passed on after the compile, so the function may use
 * the same type. Threads that are in a call of the library while the function is replaced may still
 * call it until that call returns, so the function and its context must stay valid until then. */
enum { DDTC_LOG_ERROR = 1, DDTC_LOG_WARN = 2, DDTC_LOG_INFO = 3, DDTC_LOG_DEBUG = 4, DDTC_LOG_TRACE = 5 };
typedef void ddtc_log_function(void *context, int level, const char *line);
int ddtc_set_log(ddtc_log_function *log, void *context, int level);

/* Writes the message for an error code. If the program added the code, this is the string that the
 * program gave to the code. Otherwise, if the last failure in this thread had that code, it is the
 * message of the failure. For any other code it is a general description of the code. `string` has
 * room for DDTC_MAX_ERROR_STRING bytes; `resultlen` receives the length without the NUL. */
int ddtc_error_string(int code, char *string, int *resultlen);
/* Returns the class of a code. An error class of MPI is its own class, and a code that the program
 * added has the class that the program gave it. Any other code, such as one that a user's callback
 * returned, is of class DDTC_ERR_OTHER. */
int ddtc_error_class(int code, int *errorclass);

/* Add and remove error classes, codes and strings of the program (MPI 5.0, 9.5). The numbers of
 * added classes and codes are above MPI_ERR_LASTCODE, and no number is given out twice. A code may
 * belong to a class of MPI or to one that the program added. The string of a code is empty until
 * one is added, and is truncated to DDTC_MAX_ERROR_STRING bytes including the NUL. The string of a
 * code must be removed before the code, and all codes of a class before the class; any other order
 * is DDTC_ERR_ARG. */
int ddtc_error_add_class(int *errorclass);
int ddtc_error_add_code(int errorclass, int *errorcode);
int ddtc_error_add_string(int errorcode, const char *string);
int ddtc_error_remove_class(int errorclass);
int ddtc_error_remove_code(int errorcode);
int ddtc_error_remove_string(int errorcode);

/* ---- Constructors (MPI 5.0, 5.1.2 to 5.1.4) -----------------------------------------------------
 * The arguments are those of MPI's functions. The _c forms take large counts, and a type that one
 * of them built can be decoded only by the _c forms of the decoding functions. Errors: negative
 * counts are DDTC_ERR_COUNT, other bad numbers DDTC_ERR_ARG, bad old types DDTC_ERR_TYPE, and a
 * displacement, size or bound that would not fit in 64 bits DDTC_ERR_VALUE_TOO_LARGE. New types
 * have no attributes and no name, and are not committed. The library cannot check whether two
 * displacements lead into the same object of the program (MPI 5.0, 5.1.12). */
int ddtc_type_contiguous(int count, ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_contiguous_c(ddtc_count count, ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_vector(int count, int blocklength, int stride, ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_vector_c(ddtc_count count, ddtc_count blocklength, ddtc_count stride, ddtc_datatype oldtype,
                       ddtc_datatype *newtype);
int ddtc_type_create_hvector(int count, int blocklength, ddtc_aint stride, ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_create_hvector_c(ddtc_count count, ddtc_count blocklength, ddtc_count stride, ddtc_datatype oldtype,
                               ddtc_datatype *newtype);
int ddtc_type_indexed(int count, const int blocklengths[], const int displacements[], ddtc_datatype oldtype,
                      ddtc_datatype *newtype);
int ddtc_type_indexed_c(ddtc_count count, const ddtc_count blocklengths[], const ddtc_count displacements[],
                        ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_create_hindexed(int count, const int blocklengths[], const ddtc_aint displacements[], ddtc_datatype oldtype,
                              ddtc_datatype *newtype);
int ddtc_type_create_hindexed_c(ddtc_count count, const ddtc_count blocklengths[], const ddtc_count displacements[],
                                ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_create_indexed_block(int count, int blocklength, const int displacements[], ddtc_datatype oldtype,
                                   ddtc_datatype *newtype);
int ddtc_type_create_indexed_block_c(ddtc_count count, ddtc_count blocklength, const ddtc_count displacements[],
                                     ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_create_hindexed_block(int count, int blocklength, const ddtc_aint displacements[], ddtc_datatype oldtype,
                                    ddtc_datatype *newtype);
int ddtc_type_create_hindexed_block_c(ddtc_count count, ddtc_count blocklength, const ddtc_count displacements[],
                                      ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_create_struct(int count, const int blocklengths[], const ddtc_aint displacements[],
                            const ddtc_datatype types[], ddtc_datatype *newtype);
int ddtc_type_create_struct_c(ddtc_count count, const ddtc_count blocklengths[], const ddtc_count displacements[],
                              const ddtc_datatype types[], ddtc_datatype *newtype);
int ddtc_type_create_subarray(int ndims, const int sizes[], const int subsizes[], const int starts[], int order,
                              ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_create_subarray_c(int ndims, const ddtc_count sizes[], const ddtc_count subsizes[],
                                const ddtc_count starts[], int order, ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_create_darray(int size, int rank, int ndims, const int gsizes[], const int distribs[], const int dargs[],
                            const int psizes[], int order, ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_create_darray_c(int size, int rank, int ndims, const ddtc_count gsizes[], const int distribs[],
                              const int dargs[], const int psizes[], int order, ddtc_datatype oldtype,
                              ddtc_datatype *newtype);
int ddtc_type_create_resized(ddtc_datatype oldtype, ddtc_aint lb, ddtc_aint extent, ddtc_datatype *newtype);
int ddtc_type_create_resized_c(ddtc_datatype oldtype, ddtc_count lb, ddtc_count extent, ddtc_datatype *newtype);
/* Constructors of MPI-1 in the form in which Fortran called them: addresses are INTEGERs, and the
 * combiners are DDTC_COMBINER_*_INTEGER. */
int ddtc_type_hvector_integer(int count, int blocklength, int stride, ddtc_datatype oldtype, ddtc_datatype *newtype);
int ddtc_type_hindexed_integer(int count, const int blocklengths[], const int displacements[], ddtc_datatype oldtype,
                               ddtc_datatype *newtype);
int ddtc_type_struct_integer(int count, const int blocklengths[], const int displacements[],
                             const ddtc_datatype types[], ddtc_datatype *newtype);
/* Return predefined types that have no names. Equal arguments give equal handles, which are never
 * freed and need no commit. */
int ddtc_type_create_f90_real(int p, int r, ddtc_datatype *newtype);
int ddtc_type_create_f90_complex(int p, int r, ddtc_datatype *newtype);
int ddtc_type_create_f90_integer(int r, ddtc_datatype *newtype);
/* Returns the pair type of a value type and an index type. Sets `pair` to DDTC_DATATYPE_NULL if the
 * two are named types that form no pair type. */
int ddtc_type_get_value_index(ddtc_datatype value, ddtc_datatype index, ddtc_datatype *pair);
int ddtc_type_match_size(int typeclass, int size, ddtc_datatype *datatype);
/* Builds a type from the text notation of docs/SEMANTICS.md, such as "vector(3, 1, 2, int)". */
int ddtc_type_parse(const char *text, ddtc_datatype *newtype);

/* ---- Life of a type --------------------------------------------------------------------------------------------- */

/* Makes a new handle with the same type map. Attributes are copied by their copy callbacks. The new
 * type shares the committed state and the compiled code, and its name is empty. The duplicate of a
 * predefined type is committed. If a copy callback fails, its code is returned, the copies that
 * were already made are deleted, and newtype is DDTC_DATATYPE_NULL. */
int ddtc_type_dup(ddtc_datatype oldtype, ddtc_datatype *newtype);
/* Commits a type, and compiles it if the configuration says so. A type that is already committed is
 * not changed. */
int ddtc_type_commit(ddtc_datatype *datatype);
/* Frees a type: runs the delete callbacks of its attributes, beginning with the attribute that was
 * set last, and sets the handle to DDTC_DATATYPE_NULL. Types that were built from this one remain
 * valid. If a callback fails, its code is returned; the attributes that were deleted before it are
 * gone, and the others and the handle stay. */
int ddtc_type_free(ddtc_datatype *datatype);

/* ---- Queries (MPI 5.0, 5.1.7 to 5.1.9, 3.2.5) ---------------------------------------------------
 * A result that does not fit in an int is DDTC_UNDEFINED. */
int ddtc_type_size(ddtc_datatype datatype, int *size);
int ddtc_type_size_c(ddtc_datatype datatype, ddtc_count *size);
int ddtc_type_size_x(ddtc_datatype datatype, ddtc_count *size);
int ddtc_type_get_extent(ddtc_datatype datatype, ddtc_aint *lb, ddtc_aint *extent);
int ddtc_type_get_extent_c(ddtc_datatype datatype, ddtc_count *lb, ddtc_count *extent);
int ddtc_type_get_extent_x(ddtc_datatype datatype, ddtc_count *lb, ddtc_count *extent);
int ddtc_type_get_true_extent(ddtc_datatype datatype, ddtc_aint *lb, ddtc_aint *extent);
int ddtc_type_get_true_extent_c(ddtc_datatype datatype, ddtc_count *lb, ddtc_count *extent);
int ddtc_type_get_true_extent_x(ddtc_datatype datatype, ddtc_count *lb, ddtc_count *extent);
/* Return the number of basic elements (get_elements) or of whole instances (get_count) in `bytes`
 * received bytes. The result is DDTC_UNDEFINED if the bytes end inside an element or an instance,
 * respectively. A pair type counts as two elements. */
int ddtc_get_elements(ddtc_datatype datatype, ddtc_count bytes, int *count);
int ddtc_get_elements_c(ddtc_datatype datatype, ddtc_count bytes, ddtc_count *count);
int ddtc_get_elements_x(ddtc_datatype datatype, ddtc_count bytes, ddtc_count *count);
int ddtc_get_count(ddtc_datatype datatype, ddtc_count bytes, int *count);
int ddtc_get_count_c(ddtc_datatype datatype, ddtc_count bytes, ddtc_count *count);
int ddtc_get_count_x(ddtc_datatype datatype, ddtc_count bytes, ddtc_count *count);
/* Returns the number of packed bytes of the first `elements` basic elements. A status must contain
 * this number for MPI_Get_elements to return `elements` (MPI 5.0, 13.3), so this function is the
 * inverse of ddtc_get_elements. DDTC_ERR_COUNT if `elements` is negative, or if it is not 0 for a
 * type without data; DDTC_ERR_VALUE_TOO_LARGE if the number of bytes does not fit. */
int ddtc_elements_size(ddtc_datatype datatype, ddtc_count elements, ddtc_count *bytes);
/* Set and get the name of a type. At most DDTC_MAX_OBJECT_NAME - 1 bytes of a name are kept, so
 * `name` of get_name needs room for DDTC_MAX_OBJECT_NAME. Predefined types that have a name in MPI
 * start with that name. */
int ddtc_type_set_name(ddtc_datatype datatype, const char *name);
int ddtc_type_get_name(ddtc_datatype datatype, char *name, int *resultlen);
/* Writes a type in text notation. `length` is the room in `text` on entry, and the length of the
 * whole text including its NUL on return. `text` may be null, to ask for the length alone. */
int ddtc_type_print(ddtc_datatype datatype, char *text, ddtc_count *length);

/* ---- Between processes -------------------------------------------------------------------------------------------- */

/* The wire form describes a datatype by bytes that any machine can read, for example the target of
 * a one-sided operation. It does not contain attributes, the name, or whether the type is
 * committed. to_wire writes it at `wire`, which has room for `room` bytes, and sets `size` to its
 * length; DDTC_ERR_TRUNCATE if there is less room. */
int ddtc_type_wire_size(ddtc_datatype datatype, ddtc_count *size);
int ddtc_type_to_wire(ddtc_datatype datatype, void *wire, ddtc_count room, ddtc_count *size);
/* Builds a type from a wire form. The new type is not committed; its envelope, contents and bounds
 * equal those of the original, and it packs the same bytes. The form of a predefined type gives
 * its predefined handle. The bytes need not be trusted if `size` is limited: time and memory are
 * linear in it, but two bytes can describe a node that takes about 200 bytes of memory, and the
 * process ends if there is no memory for a node.
 * Errors: a form that is cut off is DDTC_ERR_TRUNCATE; one of another version
 * DDTC_ERR_UNSUPPORTED_OPERATION; one with a named or f90 type that is unknown here, or has another
 * size or alignment here, DDTC_ERR_TYPE; arguments that a constructor refuses have that
 * constructor's error class; any other bytes are DDTC_ERR_ARG. DDTC_ERR_NO_MEM if there is not
 * enough memory for an array. */
int ddtc_type_from_wire(const void *wire, ddtc_count size, ddtc_datatype *newtype);

/* Compares the type signature of count1 instances of type1 with that of count2 instances of type2.
 * A pair type is two elements. `index` receives the number of the first element that differs,
 * counted from 0, or -1 if there is none. The result is DDTC_SIGNATURE_UNKNOWN if that element is
 * MPI_BYTE or MPI_PACKED in one of the two. */
enum {
    DDTC_SIGNATURE_EQUAL = 0,
    DDTC_SIGNATURE_FIRST_IS_PREFIX = 1,
    DDTC_SIGNATURE_SECOND_IS_PREFIX = 2,
    DDTC_SIGNATURE_MISMATCH = 3,
    DDTC_SIGNATURE_UNKNOWN = 4
};
int ddtc_signature_compare(ddtc_count count1, ddtc_datatype type1, ddtc_count count2, ddtc_datatype type2, int *result,
                           ddtc_count *index);
/* Returns a hash of the first `elements` basic elements of `count` instances. Equal sequences have
 * the same hash on every machine. The hash is 0 if one of the elements is MPI_BYTE or MPI_PACKED;
 * treat 0 as equal to every hash. It is DDTC_ERR_TRUNCATE if `elements` is more than the instances
 * have. */
int ddtc_signature_hash(ddtc_count count, ddtc_datatype datatype, ddtc_count elements, uint64_t *hash);

/* ---- Addresses (MPI 5.0, 5.1.5, 5.1.12) ------------------------------------------------------------------------- */
int ddtc_get_address(const void *location, ddtc_aint *address);
ddtc_aint ddtc_aint_add(ddtc_aint base, ddtc_aint displacement);
ddtc_aint ddtc_aint_diff(ddtc_aint a, ddtc_aint b);

/* ---- Decoding (MPI 5.0, 5.1.13) -----------------------------------------------------------------
 * The lengths of the arrays and the order of the arguments in them are those of MPI's tables.
 * Asking for the contents of a named type is DDTC_ERR_TYPE. So is a call of ddtc_type_get_envelope
 * or ddtc_type_get_contents for a type that a _c constructor built. If a max_ argument is less than
 * the number that the envelope returned, the call is DDTC_ERR_ARG. Derived types in
 * array_of_datatypes are new references, and predefined types have their predefined handles. A call
 * costs one copy of each array. */
int ddtc_type_get_envelope(ddtc_datatype datatype, int *num_integers, int *num_addresses, int *num_datatypes,
                           int *combiner);
int ddtc_type_get_envelope_c(ddtc_datatype datatype, ddtc_count *num_integers, ddtc_count *num_addresses,
                             ddtc_count *num_large_counts, ddtc_count *num_datatypes, int *combiner);
int ddtc_type_get_contents(ddtc_datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                           int array_of_integers[], ddtc_aint array_of_addresses[], ddtc_datatype array_of_datatypes[]);
int ddtc_type_get_contents_c(ddtc_datatype datatype, ddtc_count max_integers, ddtc_count max_addresses,
                             ddtc_count max_large_counts, ddtc_count max_datatypes, int array_of_integers[],
                             ddtc_aint array_of_addresses[], ddtc_count array_of_large_counts[],
                             ddtc_datatype array_of_datatypes[]);

/* Accessors that were proposed for MPI in 1996, for callers whose arrays have a fixed size: they
 * read a window of a constructor's arguments. ddtc_type_envelope returns the constructor's count
 * and a combiner from DDTC_BASIC to DDTC_STRUCT. ddtc_type_contents writes at most `count` entries
 * of the arguments, beginning with entry `start`, in the constructor's units:
 *   basic            types[0], the datatype itself (f90 and value_index types are basic)
 *   contig           types[0]
 *   vector, hvector  blocklengths[0], *stride, types[0]
 *   indexed, hindexed, struct
 *                    blocklengths, displacements and, for struct, types: of each array
 *                    max(0, min(count, all - start)) entries, where `all` is the count that
 *                    ddtc_type_envelope returns; for indexed and hindexed, types[0] in any case
 * Other arrays are not written and may be null. The cost depends only on the size of the window.
 * Derived types are new references. Errors: a type with any other combiner is DDTC_ERR_TYPE; count
 * <= 0 is DDTC_ERR_COUNT; start < 0 is DDTC_ERR_ARG; counts and block lengths above INT_MAX are
 * DDTC_ERR_VALUE_TOO_LARGE. */
int ddtc_type_envelope(ddtc_datatype datatype, int *count, int *combiner);
int ddtc_type_contents(ddtc_datatype datatype, int start, int count, int blocklengths[], ddtc_aint *stride,
                       ddtc_aint displacements[], ddtc_datatype types[]);

/* ---- Attributes (MPI 5.0, 7.7.4) -------------------------------------------------------------------------------- */
typedef int ddtc_copy_function(ddtc_datatype oldtype, int keyval, void *extra_state, void *value_in, void *value_out,
                               int *flag);
typedef int ddtc_delete_function(ddtc_datatype datatype, int keyval, void *value, void *extra_state);
#define DDTC_NULL_COPY_FN ((ddtc_copy_function *)0)
#define DDTC_DUP_FN ((ddtc_copy_function *)1)
#define DDTC_NULL_DELETE_FN ((ddtc_delete_function *)0)

int ddtc_type_create_keyval(ddtc_copy_function *copy, ddtc_delete_function *del, int *keyval, void *extra_state);
/* Frees a keyval and sets the variable to DDTC_KEYVAL_INVALID. As long as some type has an
 * attribute with this keyval, the keyval's number still works: it gets, sets and deletes
 * attributes, dup copies them, and freeing a type deletes them. Once the last of these attributes
 * is gone, the number is DDTC_ERR_KEYVAL (MPI 5.0, 7.7.2). Freeing a freed keyval again succeeds
 * while some type has an attribute with it, and is DDTC_ERR_KEYVAL after that. */
int ddtc_type_free_keyval(int *keyval);
/* Sets an attribute. An old value is deleted first; if its delete callback fails, the old value
 * stays and the callback's code is returned. */
int ddtc_type_set_attr(ddtc_datatype datatype, int keyval, void *value);
/* Gets an attribute. `value` is the address of a pointer, which is written only if the type has the
 * attribute. */
int ddtc_type_get_attr(ddtc_datatype datatype, int keyval, void *value, int *flag);
int ddtc_type_delete_attr(ddtc_datatype datatype, int keyval);

/* ---- Pack and unpack (MPI 5.0, 5.2) -------------------------------------------------------------
 * Types must be committed. A null buffer is MPI_BOTTOM, and displacements are then absolute
 * addresses. All instances must lie inside the address space (DDTC_ERR_BUFFER). If the packed
 * buffer is too small, the call is DDTC_ERR_TRUNCATE; a position outside of it is DDTC_ERR_ARG. */
int ddtc_pack(const void *inbuf, int incount, ddtc_datatype datatype, void *outbuf, int outsize, int *position);
int ddtc_pack_c(const void *inbuf, ddtc_count incount, ddtc_datatype datatype, void *outbuf, ddtc_count outsize,
                ddtc_count *position);
int ddtc_unpack(const void *inbuf, int insize, int *position, void *outbuf, int outcount, ddtc_datatype datatype);
int ddtc_unpack_c(const void *inbuf, ddtc_count insize, ddtc_count *position, void *outbuf, ddtc_count outcount,
                  ddtc_datatype datatype);
int ddtc_pack_size(int incount, ddtc_datatype datatype, int *size);
int ddtc_pack_size_c(ddtc_count incount, ddtc_datatype datatype, ddtc_count *size);
/* Pack and unpack a range of the packed stream: at most max_bytes bytes, beginning with byte
 * `offset`. `bytes` receives the number of bytes that were moved. The calls keep no state, so
 * ranges may be moved in any order and by any thread, and may end inside an element. */
int ddtc_pack_range(const void *inbuf, ddtc_count incount, ddtc_datatype datatype, ddtc_count offset, void *packed,
                    ddtc_count max_bytes, ddtc_count *bytes);
int ddtc_unpack_range(const void *packed, ddtc_count max_bytes, ddtc_count offset, void *outbuf, ddtc_count outcount,
                      ddtc_datatype datatype, ddtc_count *bytes);

/* ---- External representation (MPI 5.0, 5.3) -----------------------------------------------------
 * These functions are like ddtc_pack, ddtc_unpack and ddtc_pack_size, but each packed value is
 * big-endian, has the size that table 14.2 of MPI 5.0 gives, and is not padded. Sizes and positions
 * are of type ddtc_aint in the functions without _c. If `datarep` is not "external32", the call is
 * DDTC_ERR_UNSUPPORTED_DATAREP. An integer that does not fit in the representation to which it is
 * converted is DDTC_ERR_CONVERSION: the message names the first such element, the position keeps
 * its value, and the elements before that element have been moved. Floating-point values are
 * rounded to nearest, ties to even. The _size functions also accept types that are not
 * committed. */
int ddtc_pack_external(const char *datarep, const void *inbuf, int incount, ddtc_datatype datatype, void *outbuf,
                       ddtc_aint outsize, ddtc_aint *position);
int ddtc_pack_external_c(const char *datarep, const void *inbuf, ddtc_count incount, ddtc_datatype datatype, void *outbuf,
                         ddtc_count outsize, ddtc_count *position);
int ddtc_unpack_external(const char *datarep, const void *inbuf, ddtc_aint insize, ddtc_aint *position, void *outbuf,
                         int outcount, ddtc_datatype datatype);
int ddtc_unpack_external_c(const char *datarep, const void *inbuf, ddtc_count insize, ddtc_count *position, void *outbuf,
                           ddtc_count outcount, ddtc_datatype datatype);
int ddtc_pack_external_size(const char *datarep, int incount, ddtc_datatype datatype, ddtc_aint *size);
int ddtc_pack_external_size_c(const char *datarep, ddtc_count incount, ddtc_datatype datatype, ddtc_count *size);

/* ---- Reductions (MPI 5.0, 6.9) ------------------------------------------------------------------
 * These functions compute inout[i] = in[i] op inout[i] for each element, in the order of the type
 * map; an element that the type names three times gets three contributions. Types must be
 * committed. Their layout is arbitrary, but the operation must be defined for all elements (tables
 * of 6.9.2 to 6.9.4; REPLACE and NO_OP accept every element). If it is not, the call is
 * DDTC_ERR_OP, the message names the first such element, and nothing is written. Integers wrap
 * around; a NaN behaves as in a plain C loop. The two buffers must not overlap.
 *
 * In reduce_local, both buffers have the layout of the datatype. unpack_reduce reads packed data
 * from `inbuf`, beginning at *position, and advances the position. An operation that ddtc_op_create
 * made is called by reduce_local with the arguments of the call, as in MPI. unpack_reduce calls
 * such an operation with the handle of the basic type, which must be the same for all elements
 * (DDTC_ERR_OP otherwise) and must have a name (DDTC_ERR_TYPE otherwise; some pair types of
 * ddtc_type_get_value_index have none). The operation gets suitably aligned arrays of that type,
 * which are copies of the data if necessary. It must not free datatypes or operations that are in
 * use. */
typedef struct MPI_ABI_Op *ddtc_op;
typedef void ddtc_user_function(void *invec, void *inoutvec, int *len, ddtc_datatype *datatype);
typedef void ddtc_user_c_function(void *invec, void *inoutvec, ddtc_count *len, ddtc_datatype *datatype);
#define DDTC_OP_NULL ((ddtc_op)0x20)
#define DDTC_SUM ((ddtc_op)0x21)
#define DDTC_MIN ((ddtc_op)0x22)
#define DDTC_MAX ((ddtc_op)0x23)
#define DDTC_PROD ((ddtc_op)0x24)
#define DDTC_BAND ((ddtc_op)0x28)
#define DDTC_BOR ((ddtc_op)0x29)
#define DDTC_BXOR ((ddtc_op)0x2a)
#define DDTC_LAND ((ddtc_op)0x30)
#define DDTC_LOR ((ddtc_op)0x31)
#define DDTC_LXOR ((ddtc_op)0x32)
#define DDTC_MINLOC ((ddtc_op)0x38)
#define DDTC_MAXLOC ((ddtc_op)0x39)
#define DDTC_REPLACE ((ddtc_op)0x3c)
#define DDTC_NO_OP ((ddtc_op)0x3d)

int ddtc_reduce_local(const void *inbuf, void *inoutbuf, int count, ddtc_datatype datatype, ddtc_op op);
int ddtc_reduce_local_c(const void *inbuf, void *inoutbuf, ddtc_count count, ddtc_datatype datatype, ddtc_op op);
int ddtc_unpack_reduce(const void *inbuf, int insize, int *position, void *outbuf, int outcount, ddtc_datatype datatype,
                       ddtc_op op);
int ddtc_unpack_reduce_c(const void *inbuf, ddtc_count insize, ddtc_count *position, void *outbuf, ddtc_count outcount,
                         ddtc_datatype datatype, ddtc_op op);
int ddtc_op_create(ddtc_user_function *function, int commute, ddtc_op *op);
int ddtc_op_create_c(ddtc_user_c_function *function, int commute, ddtc_op *op);
int ddtc_op_free(ddtc_op *op);
int ddtc_op_commutative(ddtc_op op, int *commute);

/* ---- Tool information interface (MPI 5.0, 15.3) -------------------------------------------------
 * The functions of MPI_T, with the arguments and error codes of MPI_T. They may be called between
 * ddtc_t_init_thread and ddtc_t_finalize. These two may be called before any other function of this
 * header and from any thread, and their calls are counted: the last ddtc_t_finalize ends the use of
 * the other functions. For strings, at most *len - 1 characters and a NUL are written, and *len
 * receives the full length plus one. A null buffer or *len = 0 asks for the length alone; with a
 * null `len` nothing is returned. Pointers to results that are not wanted may be null. There are no
 * events and no event sources. No error handler is ever called. Pack and unpack calls are counted
 * only while a session is open or the control variable ddtc_report is not empty. */
enum {
    DDTC_T_ERR_NOT_INITIALIZED = 1003,
    DDTC_T_ERR_INVALID = 1006,
    DDTC_T_ERR_INVALID_INDEX = 1007,
    DDTC_T_ERR_INVALID_SESSION = 1009,
    DDTC_T_ERR_INVALID_HANDLE = 1010,
    DDTC_T_ERR_INVALID_NAME = 1011,
    DDTC_T_ERR_PVAR_NO_WRITE = 1016,
    DDTC_T_ERR_PVAR_NO_STARTSTOP = 1017
};
typedef struct MPI_T_enum_t *ddtc_t_enum;
typedef struct MPI_T_cvar_handle_t *ddtc_t_cvar_handle;
typedef struct MPI_T_pvar_session_t *ddtc_t_pvar_session;
typedef struct MPI_T_pvar_handle_t *ddtc_t_pvar_handle;
typedef struct MPI_T_event_registration_t *ddtc_t_event_registration;
typedef struct MPI_T_event_instance_t *ddtc_t_event_instance;
#define DDTC_T_ENUM_NULL ((ddtc_t_enum)0)
#define DDTC_T_PVAR_ALL_HANDLES ((ddtc_t_pvar_handle)1)

int ddtc_t_init_thread(int required, int *provided);
int ddtc_t_finalize(void);

int ddtc_t_enum_get_info(ddtc_t_enum enumtype, int *num, char *name, int *name_len);
int ddtc_t_enum_get_item(ddtc_t_enum enumtype, int index, int *value, char *name, int *name_len);

/* Control variables: those of the configuration that later commits use (see ddtc_config), and
 * ddtc_report. */
int ddtc_t_cvar_get_num(int *num_cvar);
int ddtc_t_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity, ddtc_datatype *datatype,
                         ddtc_t_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope);
int ddtc_t_cvar_get_index(const char *name, int *cvar_index);
int ddtc_t_cvar_handle_alloc(int cvar_index, void *obj_handle, ddtc_t_cvar_handle *handle, int *count);
int ddtc_t_cvar_handle_free(ddtc_t_cvar_handle *handle);
int ddtc_t_cvar_read(ddtc_t_cvar_handle handle, void *buf);
int ddtc_t_cvar_write(ddtc_t_cvar_handle handle, const void *buf);

/* Performance variables. A handle of a counter or timer begins at zero and counts while it is
 * started. A variable that shows a level, such as the bytes that the cache holds, is always active:
 * a call that starts, stops or resets one handle of it is an error. */
int ddtc_t_pvar_get_num(int *num_pvar);
int ddtc_t_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
                         ddtc_datatype *datatype, ddtc_t_enum *enumtype, char *desc, int *desc_len, int *bind,
                         int *readonly, int *continuous, int *atomic);
int ddtc_t_pvar_get_index(const char *name, int var_class, int *pvar_index);
int ddtc_t_pvar_session_create(ddtc_t_pvar_session *session);
int ddtc_t_pvar_session_free(ddtc_t_pvar_session *session);
int ddtc_t_pvar_handle_alloc(ddtc_t_pvar_session session, int pvar_index, void *obj_handle, ddtc_t_pvar_handle *handle,
                             int *count);
int ddtc_t_pvar_handle_free(ddtc_t_pvar_session session, ddtc_t_pvar_handle *handle);
int ddtc_t_pvar_start(ddtc_t_pvar_session session, ddtc_t_pvar_handle handle);
int ddtc_t_pvar_stop(ddtc_t_pvar_session session, ddtc_t_pvar_handle handle);
int ddtc_t_pvar_read(ddtc_t_pvar_session session, ddtc_t_pvar_handle handle, void *buf);
int ddtc_t_pvar_write(ddtc_t_pvar_session session, ddtc_t_pvar_handle handle, const void *buf);
int ddtc_t_pvar_reset(ddtc_t_pvar_session session, ddtc_t_pvar_handle handle);
int ddtc_t_pvar_readreset(ddtc_t_pvar_session session, ddtc_t_pvar_handle handle, void *buf);

int ddtc_t_category_get_num(int *num_cat);
int ddtc_t_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars,
                             int *num_pvars, int *num_categories);
int ddtc_t_category_get_num_events(int cat_index, int *num_events);
int ddtc_t_category_get_index(const char *name, int *cat_index);
int ddtc_t_category_get_cvars(int cat_index, int len, int indices[]);
int ddtc_t_category_get_pvars(int cat_index, int len, int indices[]);
int ddtc_t_category_get_events(int cat_index, int len, int indices[]);
int ddtc_t_category_get_categories(int cat_index, int len, int indices[]);
int ddtc_t_category_changed(int *update_number);

int ddtc_t_event_get_num(int *num_events);
int ddtc_t_event_get_info(int event_index, char *name, int *name_len, int *verbosity, ddtc_datatype datatypes[],
                          ddtc_aint displacements[], int *num_elements, ddtc_t_enum *enumtype, void *info, char *desc,
                          int *desc_len, int *bind);
int ddtc_t_event_get_index(const char *name, int *event_index);
int ddtc_t_event_handle_alloc(int event_index, void *obj_handle, void *info, ddtc_t_event_registration *registration);
int ddtc_t_event_handle_free(ddtc_t_event_registration registration, void *user_data, void (*callback)(void));
int ddtc_t_event_handle_get_info(ddtc_t_event_registration registration, void *info_used);
int ddtc_t_event_handle_set_info(ddtc_t_event_registration registration, void *info);
int ddtc_t_event_register_callback(ddtc_t_event_registration registration, int cb_safety, void *info, void *user_data,
                                   void (*callback)(void));
int ddtc_t_event_callback_get_info(ddtc_t_event_registration registration, int cb_safety, void *info_used);
int ddtc_t_event_callback_set_info(ddtc_t_event_registration registration, int cb_safety, void *info);
int ddtc_t_event_set_dropped_handler(ddtc_t_event_registration registration, void (*callback)(void));
int ddtc_t_event_read(ddtc_t_event_instance instance, int element_index, void *buffer);
int ddtc_t_event_copy(ddtc_t_event_instance instance, void *buffer);
int ddtc_t_event_get_timestamp(ddtc_t_event_instance instance, ddtc_count *timestamp);
int ddtc_t_event_get_source(ddtc_t_event_instance instance, int *source_index);
int ddtc_t_source_get_num(int *num_sources);
int ddtc_t_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len, int *ordering,
                           ddtc_count *ticks_per_second, ddtc_count *max_ticks, void *info);
int ddtc_t_source_get_timestamp(int source_index, ddtc_count *timestamp);

/* Writes a report of all performance variables, counted from the start of the process, to the place
 * that the control variable ddtc_report names. */
int ddtc_t_report(void);

/* ---- For runtimes ----------------------------------------------------------------------------------------------- */
enum { DDTC_PACK = 0, DDTC_UNPACK = 1 };

/* Native code of a committed type. Call entry(user + origin, packed, count, context), where `user`
 * is the address of displacement 0 of the first instance. `entry` is null if the type is
 * interpreted instead of compiled; call ddtc_committed_range then. The kernel is valid as long as
 * the committed type is held. */
typedef struct ddtc_kernel {
    void (*entry)(void *user, void *packed, uint64_t count, const uint64_t *context);
    const uint64_t *context;
    ddtc_aint origin;
} ddtc_kernel;
int ddtc_type_get_kernel(ddtc_datatype datatype, int direction, ddtc_kernel *kernel);

/* A committed type with a reference count, which is independent of the lifetime of its handle.
 * ddtc_type_get_committed returns a reference; retain adds one, and release gives one back. Any
 * output pointer of ddtc_committed_bounds may be null. ddtc_committed_pack and
 * ddtc_committed_unpack check the count, and that all instances lie in the address space; they do
 * not check the packed buffer. */
typedef struct ddtc_committed ddtc_committed;
int ddtc_type_get_committed(ddtc_datatype datatype, const ddtc_committed **committed);
int ddtc_committed_retain(const ddtc_committed *committed);
int ddtc_committed_release(const ddtc_committed *committed);
int ddtc_committed_bounds(const ddtc_committed *committed, ddtc_count *size, ddtc_count *lb, ddtc_count *extent,
                          ddtc_count *true_lb, ddtc_count *true_extent);
int ddtc_committed_pack(const ddtc_committed *committed, const void *user, ddtc_count count, void *packed);
int ddtc_committed_unpack(const ddtc_committed *committed, const void *packed, void *user, ddtc_count count);
int ddtc_committed_range(const ddtc_committed *committed, int direction, void *user, ddtc_count count, ddtc_count offset,
                         void *packed, ddtc_count max_bytes, ddtc_count *bytes);
int ddtc_committed_kernel(const ddtc_committed *committed, int direction, ddtc_kernel *kernel);

/* A committed type in external32 (see ddtc_pack_external), or under one of MPI's operations (see
 * ddtc_unpack_reduce). The caller looks up the ddtc_applied once and keeps it; it is counted by
 * retain and release like a committed type. Under an operation, the only direction is DDTC_UNPACK
 * (DDTC_PACK is DDTC_ERR_OP). A range must begin between two values, and only whole values are
 * moved, so `bytes` may be less than max_bytes. A value that does not fit is DDTC_ERR_CONVERSION;
 * the values before it have been moved. */
typedef struct ddtc_applied ddtc_applied;
int ddtc_committed_external32(const ddtc_committed *committed, const ddtc_applied **applied);
int ddtc_committed_reduce(const ddtc_committed *committed, ddtc_op op, const ddtc_applied **applied);
int ddtc_applied_retain(const ddtc_applied *applied);
int ddtc_applied_release(const ddtc_applied *applied);
int ddtc_applied_size(const ddtc_applied *applied, ddtc_count count, ddtc_count *bytes);
int ddtc_applied_range(const ddtc_applied *applied, int direction, void *user, ddtc_count count, ddtc_count offset,
                       void *packed, ddtc_count max_bytes, ddtc_count *bytes);

/* Copies `incount` instances of one layout to another, which has `outcount` instances and may have
 * room for more. The bytes end up where packing and unpacking would put them, but no packed stream
 * is made. If the two memory areas overlap, everything is read before anything is written, by way
 * of a buffer as long as the message (DDTC_ERR_NO_MEM, with nothing written, if there is no memory
 * for it). Both types must be committed. Signatures are compared: DDTC_ERR_TYPE names the first
 * element whose basic type differs on the other side; MPI_BYTE and MPI_PACKED match any.
 * DDTC_ERR_TRUNCATE if the target has no room.
 *   copy               Copies between two layouts that are given by their handles.
 *   committed_direct   Looks up a pair of types, for the caller to keep. The result has a reference
 *                      count, like a committed type, and holds both types.
 *   committed_direct_reduce
 *                      Like committed_direct, but the values of the source are combined with the
 *                      values at the target by one of MPI's operations: target = op(source,
 *                      target). DDTC_ERR_OP names the first element for which the operation is not
 *                      defined.
 *   direct_period      Sets `bytes` to the period of the pair of types. If the copy is compiled,
 *                      multiples of the period are copied in one pass, and the remainder goes
 *                      through a small buffer. Otherwise all bytes go through the buffer. If the
 *                      period is 0, the copy is never compiled.
 *   direct_copy        Copies, and sets `bytes` to the number of bytes copied. */
int ddtc_copy(const void *inbuf, ddtc_count incount, ddtc_datatype intype, void *outbuf, ddtc_count outcount,
              ddtc_datatype outtype);
typedef struct ddtc_direct ddtc_direct;
int ddtc_committed_direct(const ddtc_committed *from, const ddtc_committed *to, const ddtc_direct **direct);
int ddtc_committed_direct_reduce(const ddtc_committed *from, const ddtc_committed *to, ddtc_op op,
                                 const ddtc_direct **direct);
int ddtc_direct_retain(const ddtc_direct *direct);
int ddtc_direct_release(const ddtc_direct *direct);
int ddtc_direct_period(const ddtc_direct *direct, ddtc_count *bytes);
int ddtc_direct_copy(const ddtc_direct *direct, const void *inbuf, ddtc_count incount, void *outbuf, ddtc_count outcount,
                     ddtc_count *bytes);

/* Segments are the contiguous pieces of user memory that `count` instances consist of, in the order
 * in which they are packed. A segment ends where the next packed byte does not directly follow in
 * memory; the next segment begins with that packed byte. struct iovec is that of <sys/uio.h>. The
 * functions that count or find segments do not list them. A call starts from any segment or packed
 * byte in O(depth + log blocks), and keeps no state. The first call for a layout takes time linear
 * in the number of the datatype's arguments. DDTC_ERR_COUNT if the packed bytes do not fit in 63
 * bits, DDTC_ERR_VALUE_TOO_LARGE if a displacement does not fit in 64. Arrays have room for `max`
 * segments and may be null if that is 0.
 *   segments          Lists the segments from index `first` on, as many as fit. `len` receives
 *                     their number, which is 0 at the end.
 *   segments_from     Lists the segments from packed byte `offset` on. The first segment is listed
 *                     without its bytes before `offset`. `bytes` receives the number of bytes in
 *                     all listed segments.
 *   segments_within   Finds how many whole segments from `first` on fit in max_bytes bytes (-1: no
 *                     limit), and returns their number in `len` and their bytes in `bytes`.
 *   segment_at        Finds the segment that contains packed byte `offset`. `index` receives its
 *                     number, and `skip` how many of its bytes come before that byte. At the end of
 *                     the stream these are the number of segments and 0.
 *   segment_offset    Returns the first packed byte of segment `index`. If `index` is the number of
 *                     segments, this is the size of the stream.
 * A null `user` is MPI_BOTTOM. Where `user` is passed, all instances must lie in the address space,
 * as for a pack. */
struct iovec;
int ddtc_committed_segments(const ddtc_committed *committed, const void *user, ddtc_count count, ddtc_count first,
                            struct iovec *iov, ddtc_count max, ddtc_count *len);
int ddtc_committed_segments_from(const ddtc_committed *committed, const void *user, ddtc_count count, ddtc_count offset,
                                 struct iovec *iov, ddtc_count max, ddtc_count *len, ddtc_count *bytes);
int ddtc_committed_segments_within(const ddtc_committed *committed, ddtc_count count, ddtc_count first,
                                   ddtc_count max_bytes, ddtc_count *len, ddtc_count *bytes);
int ddtc_committed_segment_at(const ddtc_committed *committed, ddtc_count count, ddtc_count offset, ddtc_count *index,
                              ddtc_count *skip);
int ddtc_committed_segment_offset(const ddtc_committed *committed, ddtc_count count, ddtc_count index, ddtc_count *offset);
/* Count and list the segments of one instance of a committed handle, like MPIX_Type_iov_len and
 * MPIX_Type_iov of MPICH (whose MPIX_Iov has the layout of struct iovec). The addresses are
 * displacements. iov_len counts the whole segments within max_iov_bytes bytes (-1: no limit); iov
 * lists segments from index iov_offset on. */
int ddtc_type_iov_len(ddtc_datatype datatype, ddtc_count max_iov_bytes, ddtc_count *iov_len,
                      ddtc_count *actual_iov_bytes);
int ddtc_type_iov(ddtc_datatype datatype, ddtc_count iov_offset, struct iovec *iov, ddtc_count max_iov_len,
                  ddtc_count *actual_iov_len);

/* Callbacks that a runtime, such as an MPI library, provides so that ddtc can decode the runtime's
 * datatypes. `host` is the runtime's own handle or address of a datatype. The callbacks envelope,
 * contents, named and bounds return 0, or an error code, which stops the decoding: the caller of
 * ddtc_type_decode gets DDTC_ERR_OTHER, and the message has the code. If ddtc_type_decode
 * fails, `newtype` is set to DDTC_DATATYPE_NULL.
 *   envelope, contents  Decode one constructor, like ddtc_type_get_envelope_c and
 *                       ddtc_type_get_contents_c, with the values of the standard ABI. If the type
 *                       was built by a constructor without _c, the number of large counts is 0.
 *   named               Sets `datatype` to the predefined handle of this header for a named type.
 *   bounds              Sets `lb` and `extent` to the bounds that the type has in the runtime, and
 *                       ddtc keeps them. If this callback is null, ddtc computes the bounds itself.
 *   identity            Sets `value` to a number that is equal only for handles of one datatype, so
 *                       that a datatype which occurs several times is decoded once. A return
 *                       code other than 0 means that no such number is known. May be null.
 *   release             Takes back a reference to a datatype that `contents` returned. May be null
 *                       if there is nothing to take back. */
typedef struct ddtc_introspect {
    /* sizeof(ddtc_introspect), set by the caller. */
    size_t struct_size;
    void *context;
    int (*envelope)(void *context, uintptr_t host, ddtc_count *integers, ddtc_count *addresses, ddtc_count *large_counts,
                    ddtc_count *datatypes, int *combiner);
    int (*contents)(void *context, uintptr_t host, ddtc_count integers, ddtc_count addresses, ddtc_count large_counts,
                    ddtc_count datatypes, int array_of_integers[], ddtc_aint array_of_addresses[],
                    ddtc_count array_of_large_counts[], uintptr_t array_of_datatypes[]);
    int (*named)(void *context, uintptr_t host, ddtc_datatype *datatype);
    int (*bounds)(void *context, uintptr_t host, ddtc_count *lb, ddtc_count *extent);
    int (*identity)(void *context, uintptr_t host, uint64_t *value);
    void (*release)(void *context, uintptr_t host);
} ddtc_introspect;
int ddtc_type_decode(const ddtc_introspect *functions, uintptr_t host, ddtc_datatype *newtype);

/* Convert between handles and Fortran's default INTEGERs. The number of a predefined type with a
 * name is its value in the ABI; any other type gets a number that is given out only once. If
 * ddtc_type_fromint fails, it sets `datatype` to DDTC_DATATYPE_NULL. */
int ddtc_type_toint(ddtc_datatype datatype, int *integer);
int ddtc_type_fromint(int integer, ddtc_datatype *datatype);
/* Set and get the values of .TRUE. and .FALSE. in the runtime's Fortran compiler, which attribute
 * callbacks see. The defaults are 1 and 0. */
int ddtc_set_fortran_booleans(int logical_true, int logical_false);
int ddtc_get_fortran_booleans(int *logical_true, int *logical_false);
/* Set and get the sizes in bytes that types have in the runtime's Fortran compiler: INTEGER and
 * LOGICAL (4 or 8), REAL (4 or 8) and DOUBLE PRECISION (8 or 16). The sizes of COMPLEX and of the
 * pair types follow from these. The defaults are 4, 4 and 8. Set the sizes before any datatype is
 * used. They are fixed by the first successful ddtc_set_fortran_kinds, by the first
 * ddtc_get_fortran_kinds, or by the first use of a datatype whose size depends on them. Setting
 * other sizes after that is DDTC_ERR_OTHER; setting the same sizes succeeds. Sizes that are not
 * listed here are DDTC_ERR_UNSUPPORTED_OPERATION. If a pointer is null, ddtc_get_fortran_kinds
 * still writes the results whose pointers come before it. In the _toint and _fromint functions
 * handles remain INTEGERs of 4 bytes. */
int ddtc_set_fortran_kinds(int integer, int real, int double_precision);
int ddtc_get_fortran_kinds(int *integer, int *real, int *double_precision);
/* Like ddtc_type_create_keyval, with Fortran procedures: all arguments are passed by reference,
 * handles are INTEGERs, and the flag is a LOGICAL. */
int ddtc_type_create_keyval_f(void (*copy)(void), void (*del)(void), int *keyval, const ddtc_aint *extra_state);

/* ---- For ddtc_mpi.h and the Fortran module ---------------------------------------------------------------------- */

/* Info objects (MPI 5.0, chapter 10) are lists of pairs of strings, in the order in which their
 * keys were first set. The library takes no hints from info objects. DDTC_INFO_ENV is empty,
 * because no MPI started the process, and cannot be changed or freed. A key has 1 to
 * DDTC_MAX_INFO_KEY - 1 bytes (DDTC_ERR_INFO_KEY otherwise), and a value has at most
 * DDTC_MAX_INFO_VAL - 1 bytes (DDTC_ERR_INFO_VALUE otherwise). A handle that names no info object
 * is DDTC_ERR_INFO. `key` of get_nthkey needs room for DDTC_MAX_INFO_KEY bytes. */
typedef struct MPI_ABI_Info *ddtc_info;
#define DDTC_INFO_NULL ((ddtc_info)0x130)
#define DDTC_INFO_ENV ((ddtc_info)0x131)
int ddtc_info_create(ddtc_info *info);
int ddtc_info_dup(ddtc_info info, ddtc_info *newinfo);
/* Frees an info object and sets the variable to DDTC_INFO_NULL. */
int ddtc_info_free(ddtc_info *info);
int ddtc_info_set(ddtc_info info, const char *key, const char *value);
/* Deletes a key; DDTC_ERR_INFO_NOKEY if there is no such key. */
int ddtc_info_delete(ddtc_info info, const char *key);
/* Gets the value of a key. On entry `buflen` is the number of bytes that `value` has room for. At
 * most that number minus 1 bytes and a NUL are written; if it is 0, nothing is written and `value`
 * may be null. On return, if the key exists, `buflen` is the length of its value including the
 * NUL. */
int ddtc_info_get_string(ddtc_info info, const char *key, int *buflen, char *value, int *flag);
int ddtc_info_get_nkeys(ddtc_info info, int *nkeys);
int ddtc_info_get_nthkey(ddtc_info info, int n, char *key);

/* Error handlers (MPI 5.0, 9.3). Two handlers are in force at any time: one for files, initially
 * DDTC_ERRORS_RETURN, and one for communicators and everything else, initially
 * DDTC_ERRORS_ARE_FATAL. `function` is an MPI_Comm_errhandler_function or the corresponding type
 * for `kind`. If DDTC_ERRHANDLER_FORTRAN is added to `kind`, `function` is a Fortran procedure of
 * two INTEGERs. create and get return a reference that free takes back; a handler stays valid while
 * it is in force. A handle that names no handler of that kind is DDTC_ERR_ERRHANDLER. Apart from
 * ddtc_errhandler_call, no function of this header calls a handler. */
typedef struct MPI_ABI_Errhandler *ddtc_errhandler;
#define DDTC_ERRHANDLER_NULL ((ddtc_errhandler)0x140)
#define DDTC_ERRORS_ARE_FATAL ((ddtc_errhandler)0x141)
#define DDTC_ERRORS_ABORT ((ddtc_errhandler)0x142)
#define DDTC_ERRORS_RETURN ((ddtc_errhandler)0x143)
enum {
    DDTC_ERRHANDLER_COMM = 0,
    DDTC_ERRHANDLER_FILE = 1,
    DDTC_ERRHANDLER_WIN = 2,
    DDTC_ERRHANDLER_SESSION = 3,
    DDTC_ERRHANDLER_FORTRAN = 8
};
int ddtc_errhandler_create(int kind, void (*function)(void), ddtc_errhandler *errhandler);
/* Frees a reference and sets the variable to DDTC_ERRHANDLER_NULL. */
int ddtc_errhandler_free(ddtc_errhandler *errhandler);
int ddtc_errhandler_set(int kind, ddtc_errhandler errhandler);
int ddtc_errhandler_get(int kind, ddtc_errhandler *errhandler);
/* Calls the handler that is in force for `kind` with `object`, a handle, and `code`, if the program
 * created that handler. `fatal` receives whether the program has to end, which is so if the handler
 * is DDTC_ERRORS_ARE_FATAL or DDTC_ERRORS_ABORT. */
int ddtc_errhandler_call(int kind, void *object, int code, int *fatal);

/* State of the MPI functions that are implemented by this library (see ddtc_mpi.h). ERRORS_RETURN:
 * 1 if an error is returned to the caller or passed to an error handler, 0 (MPI's default) if an
 * error ends the program. STATE: 0 before MPI_Init, 1 after it, 2 after MPI_Finalize. THREAD_MAIN,
 * which can only be read: whether this thread called MPI_Init. ddtc_mpi_wtime returns seconds since
 * some time in the past. */
enum { DDTC_MPI_ERRORS_RETURN = 0, DDTC_MPI_STATE = 1, DDTC_MPI_THREAD_MAIN = 2 };
int ddtc_mpi_set(int which, int value);
int ddtc_mpi_get(int which, int *value);
double ddtc_mpi_wtime(void);
/* Gets one of the attributes of communicators that MPI predefines, by its keyval in the ABI.
 * `value` receives the address of an int, and is written only if there is such an attribute. Other
 * keyvals are DDTC_ERR_KEYVAL. */
int ddtc_mpi_attribute(int keyval, void *value, int *flag);
/* Records a message that ddtc_error_string(code) returns in this thread, as if a call had failed
 * with that code. */
int ddtc_mpi_explain(int code, const char *call, const char *argument, const char *value, const char *rule);

#ifdef __cplusplus
}
#endif

#endif
