/* ddtc_mpi.h - MPI's own names over ddtc.
 *
 * This header is for C and C++ programs that build, decode, pack and unpack datatypes, cache
 * attributes on them, or use the tool interface. Without an MPI library they compile unchanged, and
 * run as one process. Compile them against the mpi.h in include/ddtc (-I.../include/ddtc), which
 * includes this file, or with -include ddtc_mpi.h. Constants have the values of the MPI 5.0
 * standard ABI. Deprecated and removed names of MPI-1, and the window accessors of 1996, are
 * declared, too. There is no communication, and there are no C++ bindings (MPI 3.0 removed them).
 *
 * The program is the only process; comments say what this means for a call. The types, null handles
 * and conversions of all of MPI's objects are declared, so that programs that mention them compile.
 * The only objects that exist are communicators (MPI_COMM_WORLD and MPI_COMM_SELF), datatypes, info
 * objects and error handlers. A null pointer for a result is MPI_ERR_ARG.
 *
 * Error handlers: MPI_ERRORS_ARE_FATAL, which is the default, and MPI_ERRORS_ABORT end the program
 * with a message, and MPI_ERRORS_RETURN returns the class. A handler of the program's own is called
 * with the class and the communicator of the call, or MPI_COMM_SELF if the call has none. There is
 * one handler for the whole process, on whichever communicator it is set. MPI_T functions call
 * none.
 *
 * This file is generated from three files of ddtc's sources: capi/tests/table/names.txt, pieces.h
 * in the same folder, and the declarations of capi/include/ddtc.h.
 */
#ifndef DDTC_MPI_H
#define DDTC_MPI_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ddtc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MPI_VERSION 5
#define MPI_SUBVERSION 0

/* ---- Types ------------------------------------------------------------------------------------------------------ */

typedef ddtc_datatype MPI_Datatype;
typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;
typedef int MPI_Fint;
typedef struct MPI_ABI_Comm *MPI_Comm;
typedef ddtc_info MPI_Info;
typedef ddtc_errhandler MPI_Errhandler;
typedef struct MPI_ABI_File *MPI_File;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Message *MPI_Message;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_ABI_Session *MPI_Session;
typedef struct MPI_ABI_Win *MPI_Win;
/* MPI_internal holds the received bytes, the low half in [0] and the high half in [1]. [2] is whether the operation was
 * cancelled. */
typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
typedef ddtc_copy_function MPI_Type_copy_attr_function;
typedef ddtc_delete_function MPI_Type_delete_attr_function;
typedef int(MPI_Comm_copy_attr_function)(MPI_Comm, int, void *, void *, void *, int *);
typedef int(MPI_Comm_delete_attr_function)(MPI_Comm, int, void *, void *);
typedef MPI_Comm_copy_attr_function MPI_Copy_function;
typedef MPI_Comm_delete_attr_function MPI_Delete_function;
typedef int(MPI_Win_copy_attr_function)(MPI_Win, int, void *, void *, void *, int *);
typedef int(MPI_Win_delete_attr_function)(MPI_Win, int, void *, void *);
typedef void(MPI_Comm_errhandler_function)(MPI_Comm *, int *, ...);
typedef void(MPI_File_errhandler_function)(MPI_File *, int *, ...);
typedef void(MPI_Session_errhandler_function)(MPI_Session *, int *, ...);
typedef void(MPI_Win_errhandler_function)(MPI_Win *, int *, ...);
typedef MPI_Comm_errhandler_function MPI_Comm_errhandler_fn;
typedef MPI_File_errhandler_function MPI_File_errhandler_fn;
typedef MPI_Session_errhandler_function MPI_Session_errhandler_fn;
typedef MPI_Win_errhandler_function MPI_Win_errhandler_fn;
typedef MPI_Comm_errhandler_function MPI_Handler_function;
typedef ddtc_t_enum MPI_T_enum;
typedef ddtc_t_cvar_handle MPI_T_cvar_handle;
typedef ddtc_t_pvar_handle MPI_T_pvar_handle;
typedef ddtc_t_pvar_session MPI_T_pvar_session;
typedef ddtc_t_event_registration MPI_T_event_registration;
typedef ddtc_t_event_instance MPI_T_event_instance;

/* ---- Constants -------------------------------------------------------------------------------------------------- */

#define MPI_COMM_NULL ((MPI_Comm)0x100)
#define MPI_COMM_WORLD ((MPI_Comm)0x101)
#define MPI_COMM_SELF ((MPI_Comm)0x102)
#define MPI_OP_NULL DDTC_OP_NULL
#define MPI_SUM DDTC_SUM
#define MPI_MIN DDTC_MIN
#define MPI_MAX DDTC_MAX
#define MPI_PROD DDTC_PROD
#define MPI_BAND DDTC_BAND
#define MPI_BOR DDTC_BOR
#define MPI_BXOR DDTC_BXOR
#define MPI_LAND DDTC_LAND
#define MPI_LOR DDTC_LOR
#define MPI_LXOR DDTC_LXOR
#define MPI_MINLOC DDTC_MINLOC
#define MPI_MAXLOC DDTC_MAXLOC
#define MPI_REPLACE DDTC_REPLACE
#define MPI_NO_OP DDTC_NO_OP
#define MPI_GROUP_NULL ((MPI_Group)0x108)
#define MPI_GROUP_EMPTY ((MPI_Group)0x109)
#define MPI_WIN_NULL ((MPI_Win)0x110)
#define MPI_FILE_NULL ((MPI_File)0x118)
#define MPI_SESSION_NULL ((MPI_Session)0x120)
#define MPI_MESSAGE_NULL ((MPI_Message)0x128)
#define MPI_MESSAGE_NO_PROC ((MPI_Message)0x129)
#define MPI_INFO_NULL DDTC_INFO_NULL
#define MPI_INFO_ENV DDTC_INFO_ENV
#define MPI_ERRHANDLER_NULL DDTC_ERRHANDLER_NULL
#define MPI_ERRORS_ARE_FATAL DDTC_ERRORS_ARE_FATAL
#define MPI_ERRORS_ABORT DDTC_ERRORS_ABORT
#define MPI_ERRORS_RETURN DDTC_ERRORS_RETURN
#define MPI_REQUEST_NULL ((MPI_Request)0x180)
#define MPI_DATATYPE_NULL DDTC_DATATYPE_NULL
#define MPI_AINT DDTC_TYPE_AINT
#define MPI_COUNT DDTC_TYPE_COUNT
#define MPI_OFFSET DDTC_TYPE_OFFSET
#define MPI_PACKED DDTC_TYPE_PACKED
#define MPI_SHORT DDTC_TYPE_SHORT
#define MPI_INT DDTC_TYPE_INT
#define MPI_LONG DDTC_TYPE_LONG
#define MPI_LONG_LONG DDTC_TYPE_LONG_LONG
#define MPI_UNSIGNED_SHORT DDTC_TYPE_UNSIGNED_SHORT
#define MPI_UNSIGNED DDTC_TYPE_UNSIGNED
#define MPI_UNSIGNED_LONG DDTC_TYPE_UNSIGNED_LONG
#define MPI_UNSIGNED_LONG_LONG DDTC_TYPE_UNSIGNED_LONG_LONG
#define MPI_FLOAT DDTC_TYPE_FLOAT
#define MPI_C_FLOAT_COMPLEX DDTC_TYPE_C_FLOAT_COMPLEX
#define MPI_CXX_FLOAT_COMPLEX DDTC_TYPE_CXX_FLOAT_COMPLEX
#define MPI_DOUBLE DDTC_TYPE_DOUBLE
#define MPI_C_DOUBLE_COMPLEX DDTC_TYPE_C_DOUBLE_COMPLEX
#define MPI_CXX_DOUBLE_COMPLEX DDTC_TYPE_CXX_DOUBLE_COMPLEX
#define MPI_LOGICAL DDTC_TYPE_LOGICAL
#define MPI_INTEGER DDTC_TYPE_INTEGER
#define MPI_REAL DDTC_TYPE_REAL
#define MPI_COMPLEX DDTC_TYPE_COMPLEX
#define MPI_DOUBLE_PRECISION DDTC_TYPE_DOUBLE_PRECISION
#define MPI_DOUBLE_COMPLEX DDTC_TYPE_DOUBLE_COMPLEX
#define MPI_CHARACTER DDTC_TYPE_CHARACTER
#define MPI_LONG_DOUBLE DDTC_TYPE_LONG_DOUBLE
#define MPI_C_LONG_DOUBLE_COMPLEX DDTC_TYPE_C_LONG_DOUBLE_COMPLEX
#define MPI_CXX_LONG_DOUBLE_COMPLEX DDTC_TYPE_CXX_LONG_DOUBLE_COMPLEX
#define MPI_FLOAT_INT DDTC_TYPE_FLOAT_INT
#define MPI_DOUBLE_INT DDTC_TYPE_DOUBLE_INT
#define MPI_LONG_INT DDTC_TYPE_LONG_INT
#define MPI_2INT DDTC_TYPE_2INT
#define MPI_SHORT_INT DDTC_TYPE_SHORT_INT
#define MPI_LONG_DOUBLE_INT DDTC_TYPE_LONG_DOUBLE_INT
#define MPI_2REAL DDTC_TYPE_2REAL
#define MPI_2DOUBLE_PRECISION DDTC_TYPE_2DOUBLE_PRECISION
#define MPI_2INTEGER DDTC_TYPE_2INTEGER
#define MPI_C_BOOL DDTC_TYPE_C_BOOL
#define MPI_CXX_BOOL DDTC_TYPE_CXX_BOOL
#define MPI_WCHAR DDTC_TYPE_WCHAR
#define MPI_INT8_T DDTC_TYPE_INT8_T
#define MPI_UINT8_T DDTC_TYPE_UINT8_T
#define MPI_CHAR DDTC_TYPE_CHAR
#define MPI_SIGNED_CHAR DDTC_TYPE_SIGNED_CHAR
#define MPI_UNSIGNED_CHAR DDTC_TYPE_UNSIGNED_CHAR
#define MPI_BYTE DDTC_TYPE_BYTE
#define MPI_INT16_T DDTC_TYPE_INT16_T
#define MPI_UINT16_T DDTC_TYPE_UINT16_T
#define MPI_INT32_T DDTC_TYPE_INT32_T
#define MPI_UINT32_T DDTC_TYPE_UINT32_T
#define MPI_INT64_T DDTC_TYPE_INT64_T
#define MPI_UINT64_T DDTC_TYPE_UINT64_T
#define MPI_LOGICAL1 DDTC_TYPE_LOGICAL1
#define MPI_INTEGER1 DDTC_TYPE_INTEGER1
#define MPI_LOGICAL2 DDTC_TYPE_LOGICAL2
#define MPI_INTEGER2 DDTC_TYPE_INTEGER2
#define MPI_REAL2 DDTC_TYPE_REAL2
#define MPI_LOGICAL4 DDTC_TYPE_LOGICAL4
#define MPI_INTEGER4 DDTC_TYPE_INTEGER4
#define MPI_REAL4 DDTC_TYPE_REAL4
#define MPI_COMPLEX4 DDTC_TYPE_COMPLEX4
#define MPI_LOGICAL8 DDTC_TYPE_LOGICAL8
#define MPI_INTEGER8 DDTC_TYPE_INTEGER8
#define MPI_REAL8 DDTC_TYPE_REAL8
#define MPI_COMPLEX8 DDTC_TYPE_COMPLEX8
#define MPI_LOGICAL16 DDTC_TYPE_LOGICAL16
#define MPI_INTEGER16 DDTC_TYPE_INTEGER16
#define MPI_REAL16 DDTC_TYPE_REAL16
#define MPI_COMPLEX16 DDTC_TYPE_COMPLEX16
#define MPI_COMPLEX32 DDTC_TYPE_COMPLEX32
#define MPI_LB DDTC_TYPE_LB
#define MPI_UB DDTC_TYPE_UB
#define MPI_LONG_LONG_INT MPI_LONG_LONG
#define MPI_C_COMPLEX MPI_C_FLOAT_COMPLEX
#define MPI_BOTTOM ((void *)0)
#define MPI_IN_PLACE ((void *)1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
/* Attributes of communicators and windows do not exist here, so no function takes these values. */
#define MPI_NULL_COPY_FN ((MPI_Copy_function *)0)
#define MPI_DUP_FN ((MPI_Copy_function *)1)
#define MPI_NULL_DELETE_FN ((MPI_Delete_function *)0)
#define MPI_COMM_NULL_COPY_FN ((MPI_Comm_copy_attr_function *)0)
#define MPI_COMM_DUP_FN ((MPI_Comm_copy_attr_function *)1)
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function *)0)
#define MPI_WIN_NULL_COPY_FN ((MPI_Win_copy_attr_function *)0)
#define MPI_WIN_DUP_FN ((MPI_Win_copy_attr_function *)1)
#define MPI_WIN_NULL_DELETE_FN ((MPI_Win_delete_attr_function *)0)
#define MPI_TYPE_NULL_COPY_FN ((MPI_Type_copy_attr_function *)0)
#define MPI_TYPE_DUP_FN ((MPI_Type_copy_attr_function *)1)
#define MPI_TYPE_NULL_DELETE_FN ((MPI_Type_delete_attr_function *)0)

enum {
    MPI_SUCCESS = 0,
    MPI_ERR_BUFFER = 1,
    MPI_ERR_COUNT = 2,
    MPI_ERR_TYPE = 3,
    MPI_ERR_TAG = 4,
    MPI_ERR_COMM = 5,
    MPI_ERR_RANK = 6,
    MPI_ERR_REQUEST = 7,
    MPI_ERR_ROOT = 8,
    MPI_ERR_GROUP = 9,
    MPI_ERR_OP = 10,
    MPI_ERR_TOPOLOGY = 11,
    MPI_ERR_DIMS = 12,
    MPI_ERR_ARG = 13,
    MPI_ERR_UNKNOWN = 14,
    MPI_ERR_TRUNCATE = 15,
    MPI_ERR_OTHER = 16,
    MPI_ERR_INTERN = 17,
    MPI_ERR_PENDING = 18,
    MPI_ERR_IN_STATUS = 19,
    MPI_ERR_ACCESS = 20,
    MPI_ERR_AMODE = 21,
    MPI_ERR_ASSERT = 22,
    MPI_ERR_BAD_FILE = 23,
    MPI_ERR_BASE = 24,
    MPI_ERR_CONVERSION = 25,
    MPI_ERR_DISP = 26,
    MPI_ERR_DUP_DATAREP = 27,
    MPI_ERR_FILE_EXISTS = 28,
    MPI_ERR_FILE_IN_USE = 29,
    MPI_ERR_FILE = 30,
    MPI_ERR_INFO_KEY = 31,
    MPI_ERR_INFO_NOKEY = 32,
    MPI_ERR_INFO_VALUE = 33,
    MPI_ERR_INFO = 34,
    MPI_ERR_IO = 35,
    MPI_ERR_KEYVAL = 36,
    MPI_ERR_LOCKTYPE = 37,
    MPI_ERR_NAME = 38,
    MPI_ERR_NO_MEM = 39,
    MPI_ERR_NOT_SAME = 40,
    MPI_ERR_NO_SPACE = 41,
    MPI_ERR_NO_SUCH_FILE = 42,
    MPI_ERR_PORT = 43,
    MPI_ERR_QUOTA = 44,
    MPI_ERR_READ_ONLY = 45,
    MPI_ERR_RMA_ATTACH = 46,
    MPI_ERR_RMA_CONFLICT = 47,
    MPI_ERR_RMA_RANGE = 48,
    MPI_ERR_RMA_SHARED = 49,
    MPI_ERR_RMA_SYNC = 50,
    MPI_ERR_SERVICE = 51,
    MPI_ERR_SIZE = 52,
    MPI_ERR_SPAWN = 53,
    MPI_ERR_UNSUPPORTED_DATAREP = 54,
    MPI_ERR_UNSUPPORTED_OPERATION = 55,
    MPI_ERR_WIN = 56,
    MPI_ERR_RMA_FLAVOR = 57,
    MPI_ERR_PROC_ABORTED = 58,
    MPI_ERR_VALUE_TOO_LARGE = 59,
    MPI_ERR_SESSION = 60,
    MPI_ERR_ERRHANDLER = 61,
    MPI_ERR_ABI = 62,
    MPI_ERR_LASTCODE = 0x3fff
};

enum {
    MPI_T_ERR_CANNOT_INIT = 1001,
    MPI_T_ERR_NOT_ACCESSIBLE = 1002,
    MPI_T_ERR_NOT_INITIALIZED = 1003,
    MPI_T_ERR_NOT_SUPPORTED = 1004,
    MPI_T_ERR_MEMORY = 1005,
    MPI_T_ERR_INVALID = 1006,
    MPI_T_ERR_INVALID_INDEX = 1007,
    MPI_T_ERR_INVALID_ITEM = 1008,
    MPI_T_ERR_INVALID_SESSION = 1009,
    MPI_T_ERR_INVALID_HANDLE = 1010,
    MPI_T_ERR_INVALID_NAME = 1011,
    MPI_T_ERR_OUT_OF_HANDLES = 1012,
    MPI_T_ERR_OUT_OF_SESSIONS = 1013,
    MPI_T_ERR_CVAR_SET_NOT_NOW = 1014,
    MPI_T_ERR_CVAR_SET_NEVER = 1015,
    MPI_T_ERR_PVAR_NO_WRITE = 1016,
    MPI_T_ERR_PVAR_NO_STARTSTOP = 1017,
    MPI_T_ERR_PVAR_NO_ATOMIC = 1018
};

enum {
    MPI_ANY_SOURCE = -1,
    MPI_ANY_TAG = -2,
    MPI_PROC_NULL = -3,
    MPI_ROOT = -4,
    MPI_UNDEFINED = -32766,
    MPI_KEYVAL_INVALID = 0,
    MPI_TAG_UB = 501,
    MPI_IO = 502,
    MPI_HOST = 503,
    MPI_WTIME_IS_GLOBAL = 504,
    MPI_APPNUM = 505,
    MPI_LASTUSEDCODE = 506,
    MPI_UNIVERSE_SIZE = 507,
    MPI_WIN_FLAVOR_CREATE = 311,
    MPI_WIN_FLAVOR_ALLOCATE = 312,
    MPI_WIN_FLAVOR_DYNAMIC = 313,
    MPI_WIN_FLAVOR_SHARED = 314,
    MPI_WIN_UNIFIED = 321,
    MPI_WIN_SEPARATE = 322,
    MPI_WIN_BASE = 601,
    MPI_WIN_DISP_UNIT = 602,
    MPI_WIN_SIZE = 603,
    MPI_WIN_CREATE_FLAVOR = 604,
    MPI_WIN_MODEL = 605,
    MPI_THREAD_SINGLE = 0,
    MPI_THREAD_FUNNELED = 1024,
    MPI_THREAD_SERIALIZED = 2048,
    MPI_THREAD_MULTIPLE = 4096,
    MPI_ORDER_C = 0xC,
    MPI_ORDER_FORTRAN = 0xF,
    MPI_DISTRIBUTE_NONE = 16,
    MPI_DISTRIBUTE_BLOCK = 17,
    MPI_DISTRIBUTE_CYCLIC = 18,
    MPI_DISTRIBUTE_DFLT_DARG = 19,
    MPI_TYPECLASS_INTEGER = 192,
    MPI_TYPECLASS_REAL = 193,
    MPI_TYPECLASS_COMPLEX = 194,
    MPI_IDENT = 201,
    MPI_CONGRUENT = 202,
    MPI_SIMILAR = 203,
    MPI_UNEQUAL = 204,
    MPI_MAX_PROCESSOR_NAME = 256,
    MPI_MAX_ERROR_STRING = 512,
    MPI_MAX_INFO_KEY = 256,
    MPI_MAX_INFO_VAL = 1024,
    MPI_MAX_OBJECT_NAME = 128,
    MPI_MAX_LIBRARY_VERSION_STRING = 8192
};

enum {
    MPI_F_STATUS_SIZE = 8,
    MPI_F_SOURCE = 0,
    MPI_F_TAG = 1,
    MPI_F_ERROR = 2
};

enum {
    MPI_COMBINER_NAMED = 101,
    MPI_COMBINER_DUP = 102,
    MPI_COMBINER_CONTIGUOUS = 103,
    MPI_COMBINER_VECTOR = 104,
    MPI_COMBINER_HVECTOR = 105,
    MPI_COMBINER_INDEXED = 106,
    MPI_COMBINER_HINDEXED = 107,
    MPI_COMBINER_INDEXED_BLOCK = 108,
    MPI_COMBINER_HINDEXED_BLOCK = 109,
    MPI_COMBINER_STRUCT = 110,
    MPI_COMBINER_SUBARRAY = 111,
    MPI_COMBINER_DARRAY = 112,
    MPI_COMBINER_F90_REAL = 113,
    MPI_COMBINER_F90_COMPLEX = 114,
    MPI_COMBINER_F90_INTEGER = 115,
    MPI_COMBINER_RESIZED = 116,
    MPI_COMBINER_VALUE_INDEX = 117,
    MPI_COMBINER_HVECTOR_INTEGER = DDTC_COMBINER_HVECTOR_INTEGER,
    MPI_COMBINER_HINDEXED_INTEGER = DDTC_COMBINER_HINDEXED_INTEGER,
    MPI_COMBINER_STRUCT_INTEGER = DDTC_COMBINER_STRUCT_INTEGER
};

/* Combiners of the window accessors that were proposed in 1996. */
enum {
    MPI_BASIC = DDTC_BASIC,
    MPI_CONTIG = DDTC_CONTIG,
    MPI_VECTOR = DDTC_VECTOR,
    MPI_HVECTOR = DDTC_HVECTOR,
    MPI_INDEXED = DDTC_INDEXED,
    MPI_HINDEXED = DDTC_HINDEXED,
    MPI_STRUCT = DDTC_STRUCT
};

#define MPI_T_ENUM_NULL ((MPI_T_enum)0)
#define MPI_T_CVAR_HANDLE_NULL ((MPI_T_cvar_handle)0)
#define MPI_T_PVAR_SESSION_NULL ((MPI_T_pvar_session)0)
#define MPI_T_PVAR_HANDLE_NULL ((MPI_T_pvar_handle)0)
#define MPI_T_PVAR_ALL_HANDLES ((MPI_T_pvar_handle)1)

enum {
    MPI_T_VERBOSITY_USER_BASIC = 0x09,
    MPI_T_VERBOSITY_USER_DETAIL = 0x0a,
    MPI_T_VERBOSITY_USER_ALL = 0x0c,
    MPI_T_VERBOSITY_TUNER_BASIC = 0x11,
    MPI_T_VERBOSITY_TUNER_DETAIL = 0x12,
    MPI_T_VERBOSITY_TUNER_ALL = 0x14,
    MPI_T_VERBOSITY_MPIDEV_BASIC = 0x21,
    MPI_T_VERBOSITY_MPIDEV_DETAIL = 0x22,
    MPI_T_VERBOSITY_MPIDEV_ALL = 0x24,
    MPI_T_BIND_NO_OBJECT = 1,
    MPI_T_BIND_MPI_COMM = 2,
    MPI_T_BIND_MPI_DATATYPE = 3,
    MPI_T_BIND_MPI_ERRHANDLER = 4,
    MPI_T_BIND_MPI_FILE = 5,
    MPI_T_BIND_MPI_GROUP = 6,
    MPI_T_BIND_MPI_OP = 7,
    MPI_T_BIND_MPI_REQUEST = 8,
    MPI_T_BIND_MPI_WIN = 9,
    MPI_T_BIND_MPI_MESSAGE = 10,
    MPI_T_BIND_MPI_INFO = 11,
    MPI_T_BIND_MPI_SESSION = 12,
    MPI_T_SCOPE_CONSTANT = 1,
    MPI_T_SCOPE_READONLY = 2,
    MPI_T_SCOPE_LOCAL = 3,
    MPI_T_SCOPE_GROUP = 4,
    MPI_T_SCOPE_GROUP_EQ = 5,
    MPI_T_SCOPE_ALL = 6,
    MPI_T_SCOPE_ALL_EQ = 7,
    MPI_T_PVAR_CLASS_STATE = 1,
    MPI_T_PVAR_CLASS_LEVEL = 2,
    MPI_T_PVAR_CLASS_SIZE = 3,
    MPI_T_PVAR_CLASS_PERCENTAGE = 4,
    MPI_T_PVAR_CLASS_HIGHWATERMARK = 5,
    MPI_T_PVAR_CLASS_LOWWATERMARK = 6,
    MPI_T_PVAR_CLASS_COUNTER = 7,
    MPI_T_PVAR_CLASS_AGGREGATE = 8,
    MPI_T_PVAR_CLASS_TIMER = 9,
    MPI_T_PVAR_CLASS_GENERIC = 10
};

typedef enum {
    MPI_T_CB_REQUIRE_NONE = 0x00,
    MPI_T_CB_REQUIRE_MPI_RESTRICTED = 0x03,
    MPI_T_CB_REQUIRE_THREAD_SAFE = 0x0f,
    MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE = 0x3f
} MPI_T_cb_safety;

typedef enum {
    MPI_T_SOURCE_ORDERED = 1,
    MPI_T_SOURCE_UNORDERED = 2
} MPI_T_source_order;

typedef void(MPI_T_event_cb_function)(MPI_T_event_instance, MPI_T_event_registration, MPI_T_cb_safety, void *);
typedef void(MPI_T_event_free_cb_function)(MPI_T_event_registration, MPI_T_cb_safety, void *);
typedef void(MPI_T_event_dropped_cb_function)(MPI_Count, MPI_T_event_registration, int, MPI_T_cb_safety, void *);

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

/* Handles an error as the handler in force for that kind of object says: ends the program, returns
 * the code, or calls the program's handler. */
static inline int ddtc_mpi_raise(int kind, void *object, int code, const char *call)
{
    int fatal = 0;
    ddtc_errhandler_call(kind, object, code, &fatal);
    if (fatal) {
        char text[DDTC_MAX_ERROR_STRING];
        int n;
        ddtc_error_string(code, text, &n);
        fprintf(stderr, "%s: error %d: %s\n", call, code, text);
        fflush(NULL);
        exit(code > 0 && code < 256 ? code : 1);
    }
    return code;
}
static inline int ddtc_mpi_check_on(MPI_Comm comm, int code, const char *call)
{
    return code == 0 ? 0 : ddtc_mpi_raise(DDTC_ERRHANDLER_COMM, comm, code, call);
}
static inline int ddtc_mpi_check(int code, const char *call) { return ddtc_mpi_check_on(MPI_COMM_SELF, code, call); }
/* Reports an error that a function of this header has found. */
static inline int ddtc_mpi_fail(int code, const char *call, const char *argument, const char *value, const char *rule)
{
    ddtc_mpi_explain(code, call, argument, value, rule);
    return ddtc_mpi_check(code, call);
}
#define DDTC_MPI_NOT_NULL(pointer, call) \
    do { \
        if ((pointer) == NULL) \
            return ddtc_mpi_fail(MPI_ERR_ARG, call, #pointer, "NULL", "must not be a null pointer"); \
    } while (0)
/* Returns an error from the function unless `exists` is true, which says that the handle `object`
 * refers to an object. */
#define DDTC_MPI_OBJECT(object, exists, code, call, argument, rule) \
    do { \
        (void)(object); \
        if (!(exists)) return ddtc_mpi_fail(code, call, argument, "another handle", rule); \
    } while (0)
#define DDTC_MPI_COMM(comm, call) \
    DDTC_MPI_OBJECT(comm, (comm) == MPI_COMM_WORLD || (comm) == MPI_COMM_SELF, MPI_ERR_COMM, call, #comm, \
                    "must be MPI_COMM_WORLD or MPI_COMM_SELF")
#define DDTC_MPI_FILE(file, call) \
    DDTC_MPI_OBJECT(file, (file) == MPI_FILE_NULL, MPI_ERR_FILE, call, #file, "must be MPI_FILE_NULL")
#define DDTC_MPI_SESSION(session, call) \
    DDTC_MPI_OBJECT(session, 0, MPI_ERR_SESSION, call, #session, "there are no sessions")
#define DDTC_MPI_WIN(win, call) DDTC_MPI_OBJECT(win, 0, MPI_ERR_WIN, call, #win, "there are no windows")

static inline int MPI_Error_class(int errorcode, int *errorclass)
{
    return ddtc_mpi_check(ddtc_error_class(errorcode, errorclass), "MPI_Error_class");
}
static inline int MPI_Error_string(int errorcode, char *string, int *resultlen)
{
    return ddtc_mpi_check(ddtc_error_string(errorcode, string, resultlen), "MPI_Error_string");
}
static inline int MPI_Add_error_class(int *errorclass)
{
    return ddtc_mpi_check(ddtc_error_add_class(errorclass), "MPI_Add_error_class");
}
static inline int MPI_Add_error_code(int errorclass, int *errorcode)
{
    return ddtc_mpi_check(ddtc_error_add_code(errorclass, errorcode), "MPI_Add_error_code");
}
static inline int MPI_Add_error_string(int errorcode, const char *string)
{
    return ddtc_mpi_check(ddtc_error_add_string(errorcode, string), "MPI_Add_error_string");
}
static inline int MPI_Remove_error_class(int errorclass)
{
    return ddtc_mpi_check(ddtc_error_remove_class(errorclass), "MPI_Remove_error_class");
}
static inline int MPI_Remove_error_code(int errorcode)
{
    return ddtc_mpi_check(ddtc_error_remove_code(errorcode), "MPI_Remove_error_code");
}
static inline int MPI_Remove_error_string(int errorcode)
{
    return ddtc_mpi_check(ddtc_error_remove_string(errorcode), "MPI_Remove_error_string");
}
static inline int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn,
    MPI_Errhandler *errhandler)
{
    return ddtc_mpi_check(ddtc_errhandler_create(DDTC_ERRHANDLER_COMM, (void (*)(void))comm_errhandler_fn, errhandler),
        "MPI_Comm_create_errhandler");
}
static inline int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    DDTC_MPI_COMM(comm, "MPI_Comm_set_errhandler");
    return ddtc_mpi_check_on(comm, ddtc_errhandler_set(DDTC_ERRHANDLER_COMM, errhandler), "MPI_Comm_set_errhandler");
}
static inline int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    DDTC_MPI_COMM(comm, "MPI_Comm_get_errhandler");
    return ddtc_mpi_check_on(comm, ddtc_errhandler_get(DDTC_ERRHANDLER_COMM, errhandler), "MPI_Comm_get_errhandler");
}
static inline int MPI_Comm_call_errhandler(MPI_Comm comm, int errorcode)
{
    DDTC_MPI_COMM(comm, "MPI_Comm_call_errhandler");
    ddtc_mpi_raise(DDTC_ERRHANDLER_COMM, comm, errorcode, "MPI_Comm_call_errhandler");
    return 0;
}
/* Handlers for windows and sessions can be created. The functions that set, get or call the handler of a window or
 * session fail, because no window and no session exists. The only file is MPI_FILE_NULL. Its handler is the one that
 * opened files would start with (MPI 5.0, 14.7). */
static inline int MPI_File_create_errhandler(MPI_File_errhandler_function *file_errhandler_fn,
    MPI_Errhandler *errhandler)
{
    return ddtc_mpi_check(ddtc_errhandler_create(DDTC_ERRHANDLER_FILE, (void (*)(void))file_errhandler_fn, errhandler),
        "MPI_File_create_errhandler");
}
static inline int MPI_File_set_errhandler(MPI_File file, MPI_Errhandler errhandler)
{
    DDTC_MPI_FILE(file, "MPI_File_set_errhandler");
    return ddtc_mpi_check(ddtc_errhandler_set(DDTC_ERRHANDLER_FILE, errhandler), "MPI_File_set_errhandler");
}
static inline int MPI_File_get_errhandler(MPI_File file, MPI_Errhandler *errhandler)
{
    DDTC_MPI_FILE(file, "MPI_File_get_errhandler");
    return ddtc_mpi_check(ddtc_errhandler_get(DDTC_ERRHANDLER_FILE, errhandler), "MPI_File_get_errhandler");
}
static inline int MPI_File_call_errhandler(MPI_File fh, int errorcode)
{
    DDTC_MPI_FILE(fh, "MPI_File_call_errhandler");
    ddtc_mpi_raise(DDTC_ERRHANDLER_FILE, fh, errorcode, "MPI_File_call_errhandler");
    return 0;
}
static inline int MPI_Session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn,
    MPI_Errhandler *errhandler)
{
    return ddtc_mpi_check(ddtc_errhandler_create(DDTC_ERRHANDLER_SESSION, (void (*)(void))session_errhandler_fn,
        errhandler), "MPI_Session_create_errhandler");
}
static inline int MPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler)
{
    DDTC_MPI_SESSION(session, "MPI_Session_set_errhandler");
    return ddtc_mpi_check(ddtc_errhandler_set(DDTC_ERRHANDLER_SESSION, errhandler), "MPI_Session_set_errhandler");
}
static inline int MPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler *errhandler)
{
    DDTC_MPI_SESSION(session, "MPI_Session_get_errhandler");
    return ddtc_mpi_check(ddtc_errhandler_get(DDTC_ERRHANDLER_SESSION, errhandler), "MPI_Session_get_errhandler");
}
static inline int MPI_Session_call_errhandler(MPI_Session session, int errorcode)
{
    DDTC_MPI_SESSION(session, "MPI_Session_call_errhandler");
    ddtc_mpi_raise(DDTC_ERRHANDLER_SESSION, session, errorcode, "MPI_Session_call_errhandler");
    return 0;
}
static inline int MPI_Win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn, MPI_Errhandler *errhandler)
{
    return ddtc_mpi_check(ddtc_errhandler_create(DDTC_ERRHANDLER_WIN, (void (*)(void))win_errhandler_fn, errhandler),
        "MPI_Win_create_errhandler");
}
static inline int MPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler)
{
    DDTC_MPI_WIN(win, "MPI_Win_set_errhandler");
    return ddtc_mpi_check(ddtc_errhandler_set(DDTC_ERRHANDLER_WIN, errhandler), "MPI_Win_set_errhandler");
}
static inline int MPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler *errhandler)
{
    DDTC_MPI_WIN(win, "MPI_Win_get_errhandler");
    return ddtc_mpi_check(ddtc_errhandler_get(DDTC_ERRHANDLER_WIN, errhandler), "MPI_Win_get_errhandler");
}
static inline int MPI_Win_call_errhandler(MPI_Win win, int errorcode)
{
    DDTC_MPI_WIN(win, "MPI_Win_call_errhandler");
    ddtc_mpi_raise(DDTC_ERRHANDLER_WIN, win, errorcode, "MPI_Win_call_errhandler");
    return 0;
}
static inline int MPI_Errhandler_free(MPI_Errhandler *errhandler)
{
    return ddtc_mpi_check(ddtc_errhandler_free(errhandler), "MPI_Errhandler_free");
}

/* ---- One process ------------------------------------------------------------------------------------------------ */

static inline int MPI_Init(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return ddtc_mpi_check(ddtc_mpi_set(DDTC_MPI_STATE, 1), "MPI_Init");
}
/* Any thread may call MPI, whatever level of thread support is required. */
static inline int MPI_Query_thread(int *provided)
{
    DDTC_MPI_NOT_NULL(provided, "MPI_Query_thread");
    *provided = MPI_THREAD_MULTIPLE;
    return 0;
}
static inline int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)required;
    DDTC_MPI_NOT_NULL(provided, "MPI_Init_thread");
    *provided = MPI_THREAD_MULTIPLE;
    return MPI_Init(argc, argv);
}
/* Returns whether this thread called MPI_Init. */
static inline int MPI_Is_thread_main(int *flag)
{
    return ddtc_mpi_check(ddtc_mpi_get(DDTC_MPI_THREAD_MAIN, flag), "MPI_Is_thread_main");
}
/* Writes a report if the control variable ddtc_report asks for one. */
static inline int MPI_Finalize(void)
{
    ddtc_mpi_set(DDTC_MPI_STATE, 2);
    return ddtc_t_report();
}
static inline int MPI_Initialized(int *flag)
{
    int state = 0;
    DDTC_MPI_NOT_NULL(flag, "MPI_Initialized");
    ddtc_mpi_get(DDTC_MPI_STATE, &state);
    *flag = state > 0;
    return 0;
}
static inline int MPI_Finalized(int *flag)
{
    int state = 0;
    DDTC_MPI_NOT_NULL(flag, "MPI_Finalized");
    ddtc_mpi_get(DDTC_MPI_STATE, &state);
    *flag = state > 1;
    return 0;
}
static inline int MPI_Abort(MPI_Comm comm, int errorcode)
{
    (void)comm;
    fflush(NULL);
    /* A process can return only the low 8 bits of a code. If these are 0, it returns 1, because 0
     * would mean success. */
    exit(errorcode != 0 && (errorcode & 0xff) == 0 ? 1 : errorcode);
}
static inline int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    DDTC_MPI_COMM(comm, "MPI_Comm_rank");
    DDTC_MPI_NOT_NULL(rank, "MPI_Comm_rank");
    *rank = 0;
    return 0;
}
static inline int MPI_Comm_size(MPI_Comm comm, int *size)
{
    DDTC_MPI_COMM(comm, "MPI_Comm_size");
    DDTC_MPI_NOT_NULL(size, "MPI_Comm_size");
    *size = 1;
    return 0;
}
static inline int MPI_Barrier(MPI_Comm comm)
{
    DDTC_MPI_COMM(comm, "MPI_Barrier");
    return 0;
}
/* Returns the attributes that MPI predefines (MPI 5.0, 9.1.2 and 9.5). Programs cannot cache others on communicators
 * here. MPI_APPNUM and MPI_UNIVERSE_SIZE are not set. */
static inline int MPI_Comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag)
{
    DDTC_MPI_COMM(comm, "MPI_Comm_get_attr");
    return ddtc_mpi_check_on(comm, ddtc_mpi_attribute(comm_keyval, attribute_val, flag), "MPI_Comm_get_attr");
}
static inline double MPI_Wtime(void) { return ddtc_mpi_wtime(); }
static inline double MPI_Wtick(void) { return 1e-9; }
static inline int MPI_Get_processor_name(char *name, int *resultlen)
{
    DDTC_MPI_NOT_NULL(name, "MPI_Get_processor_name");
    DDTC_MPI_NOT_NULL(resultlen, "MPI_Get_processor_name");
    strcpy(name, "localhost");
    *resultlen = 9;
    return 0;
}
static inline int MPI_Get_version(int *version, int *subversion)
{
    DDTC_MPI_NOT_NULL(version, "MPI_Get_version");
    DDTC_MPI_NOT_NULL(subversion, "MPI_Get_version");
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return 0;
}
static inline int MPI_Get_library_version(char *version, int *resultlen)
{
    DDTC_MPI_NOT_NULL(version, "MPI_Get_library_version");
    DDTC_MPI_NOT_NULL(resultlen, "MPI_Get_library_version");
    strcpy(version, ddtc_version_string());
    *resultlen = (int)strlen(version);
    return 0;
}

/* ---- Info: what a program puts in; nothing here takes hints ----------------------------------------------------- */

static inline int MPI_Info_create(MPI_Info *info)
{
    return ddtc_mpi_check(ddtc_info_create(info), "MPI_Info_create");
}
/* Returns a copy of MPI_INFO_ENV, which is empty, because no MPI started this process. */
static inline int MPI_Info_create_env(int argc, char *argv[], MPI_Info *info)
{
    (void)argc, (void)argv;
    return ddtc_mpi_check(ddtc_info_dup(MPI_INFO_ENV, info), "MPI_Info_create_env");
}
static inline int MPI_Info_dup(MPI_Info info, MPI_Info *newinfo)
{
    return ddtc_mpi_check(ddtc_info_dup(info, newinfo), "MPI_Info_dup");
}
static inline int MPI_Info_free(MPI_Info *info) { return ddtc_mpi_check(ddtc_info_free(info), "MPI_Info_free"); }
static inline int MPI_Info_set(MPI_Info info, const char *key, const char *value)
{
    return ddtc_mpi_check(ddtc_info_set(info, key, value), "MPI_Info_set");
}
static inline int MPI_Info_delete(MPI_Info info, const char *key)
{
    return ddtc_mpi_check(ddtc_info_delete(info, key), "MPI_Info_delete");
}
static inline int MPI_Info_get_string(MPI_Info info, const char *key, int *buflen, char *value, int *flag)
{
    return ddtc_mpi_check(ddtc_info_get_string(info, key, buflen, value, flag), "MPI_Info_get_string");
}
/* Writes at most valuelen characters and a NUL. */
static inline int MPI_Info_get(MPI_Info info, const char *key, int valuelen, char *value, int *flag)
{
    int buflen = valuelen < 0 ? -1 : valuelen < MPI_MAX_INFO_VAL ? valuelen + 1 : MPI_MAX_INFO_VAL;
    DDTC_MPI_NOT_NULL(key, "MPI_Info_get");
    DDTC_MPI_NOT_NULL(value, "MPI_Info_get");
    DDTC_MPI_NOT_NULL(flag, "MPI_Info_get");
    return ddtc_mpi_check(ddtc_info_get_string(info, key, &buflen, value, flag), "MPI_Info_get");
}
static inline int MPI_Info_get_valuelen(MPI_Info info, const char *key, int *valuelen, int *flag)
{
    int buflen = 0, found = 0, code;
    DDTC_MPI_NOT_NULL(key, "MPI_Info_get_valuelen");
    DDTC_MPI_NOT_NULL(valuelen, "MPI_Info_get_valuelen");
    DDTC_MPI_NOT_NULL(flag, "MPI_Info_get_valuelen");
    code = ddtc_mpi_check(ddtc_info_get_string(info, key, &buflen, NULL, &found), "MPI_Info_get_valuelen");
    if (code) return code;
    if (found) *valuelen = buflen - 1;
    *flag = found;
    return 0;
}
static inline int MPI_Info_get_nkeys(MPI_Info info, int *nkeys)
{
    return ddtc_mpi_check(ddtc_info_get_nkeys(info, nkeys), "MPI_Info_get_nkeys");
}
static inline int MPI_Info_get_nthkey(MPI_Info info, int n, char *key)
{
    return ddtc_mpi_check(ddtc_info_get_nthkey(info, n, key), "MPI_Info_get_nthkey");
}

/* ---- Datatypes -------------------------------------------------------------------------------------------------- */

static inline int MPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_contiguous(count, oldtype, newtype), "MPI_Type_contiguous");
}
static inline int MPI_Type_contiguous_c(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_contiguous_c(count, oldtype, newtype), "MPI_Type_contiguous_c");
}
static inline int MPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_vector(count, blocklength, stride, oldtype, newtype), "MPI_Type_vector");
}
static inline int MPI_Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
    MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_vector_c(count, blocklength, stride, oldtype, newtype), "MPI_Type_vector_c");
}
static inline int MPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
    MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_hvector(count, blocklength, stride, oldtype, newtype),
        "MPI_Type_create_hvector");
}
static inline int MPI_Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_hvector_c(count, blocklength, stride, oldtype, newtype),
        "MPI_Type_create_hvector_c");
}
static inline int MPI_Type_indexed(int count, const int array_of_blocklengths[], const int array_of_displacements[],
    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_indexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype),
        "MPI_Type_indexed");
}
static inline int MPI_Type_indexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
    const MPI_Count array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_indexed_c(count, array_of_blocklengths, array_of_displacements, oldtype, newtype),
        "MPI_Type_indexed_c");
}
static inline int MPI_Type_create_hindexed(int count, const int array_of_blocklengths[],
    const MPI_Aint array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype,
        newtype), "MPI_Type_create_hindexed");
}
static inline int MPI_Type_create_hindexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
    const MPI_Count array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_hindexed_c(count, array_of_blocklengths, array_of_displacements, oldtype,
        newtype), "MPI_Type_create_hindexed_c");
}
static inline int MPI_Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[],
    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_indexed_block(count, blocklength, array_of_displacements, oldtype, newtype),
        "MPI_Type_create_indexed_block");
}
static inline int MPI_Type_create_indexed_block_c(MPI_Count count, MPI_Count blocklength,
    const MPI_Count array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_indexed_block_c(count, blocklength, array_of_displacements, oldtype,
        newtype), "MPI_Type_create_indexed_block_c");
}
static inline int MPI_Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[],
    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_hindexed_block(count, blocklength, array_of_displacements, oldtype,
        newtype), "MPI_Type_create_hindexed_block");
}
static inline int MPI_Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength,
    const MPI_Count array_of_displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_hindexed_block_c(count, blocklength, array_of_displacements, oldtype,
        newtype), "MPI_Type_create_hindexed_block_c");
}
static inline int MPI_Type_create_struct(int count, const int array_of_blocklengths[],
    const MPI_Aint array_of_displacements[], const MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types,
        newtype), "MPI_Type_create_struct");
}
static inline int MPI_Type_create_struct_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
    const MPI_Count array_of_displacements[], const MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_struct_c(count, array_of_blocklengths, array_of_displacements,
        array_of_types, newtype), "MPI_Type_create_struct_c");
}
static inline int MPI_Type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[],
    const int array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order,
        oldtype, newtype), "MPI_Type_create_subarray");
}
static inline int MPI_Type_create_subarray_c(int ndims, const MPI_Count array_of_sizes[],
    const MPI_Count array_of_subsizes[], const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype,
    MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_subarray_c(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order,
        oldtype, newtype), "MPI_Type_create_subarray_c");
}
static inline int MPI_Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[],
    const int array_of_distribs[], const int array_of_dargs[], const int array_of_psizes[], int order,
    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_darray(size, rank, ndims, array_of_gsizes, array_of_distribs,
        array_of_dargs, array_of_psizes, order, oldtype, newtype), "MPI_Type_create_darray");
}
static inline int MPI_Type_create_darray_c(int size, int rank, int ndims, const MPI_Count array_of_gsizes[],
    const int array_of_distribs[], const int array_of_dargs[], const int array_of_psizes[], int order,
    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_darray_c(size, rank, ndims, array_of_gsizes, array_of_distribs,
        array_of_dargs, array_of_psizes, order, oldtype, newtype), "MPI_Type_create_darray_c");
}
static inline int MPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_resized(oldtype, lb, extent, newtype), "MPI_Type_create_resized");
}
static inline int MPI_Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_resized_c(oldtype, lb, extent, newtype), "MPI_Type_create_resized_c");
}
static inline int MPI_Type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_f90_real(p, r, newtype), "MPI_Type_create_f90_real");
}
static inline int MPI_Type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_f90_complex(p, r, newtype), "MPI_Type_create_f90_complex");
}
static inline int MPI_Type_create_f90_integer(int r, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_create_f90_integer(r, newtype), "MPI_Type_create_f90_integer");
}
static inline int MPI_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype *pair_type)
{
    return ddtc_mpi_check(ddtc_type_get_value_index(value_type, index_type, pair_type), "MPI_Type_get_value_index");
}
static inline int MPI_Type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
    return ddtc_mpi_check(ddtc_type_match_size(typeclass, size, datatype), "MPI_Type_match_size");
}
static inline int MPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return ddtc_mpi_check(ddtc_type_dup(oldtype, newtype), "MPI_Type_dup");
}
static inline int MPI_Type_commit(MPI_Datatype *datatype)
{
    return ddtc_mpi_check(ddtc_type_commit(datatype), "MPI_Type_commit");
}
static inline int MPI_Type_free(MPI_Datatype *datatype)
{
    return ddtc_mpi_check(ddtc_type_free(datatype), "MPI_Type_free");
}
static inline int MPI_Type_size(MPI_Datatype datatype, int *size)
{
    return ddtc_mpi_check(ddtc_type_size(datatype, size), "MPI_Type_size");
}
static inline int MPI_Type_size_c(MPI_Datatype datatype, MPI_Count *size)
{
    return ddtc_mpi_check(ddtc_type_size_c(datatype, size), "MPI_Type_size_c");
}
static inline int MPI_Type_size_x(MPI_Datatype datatype, MPI_Count *size)
{
    return ddtc_mpi_check(ddtc_type_size_x(datatype, size), "MPI_Type_size_x");
}
static inline int MPI_Type_get_extent(MPI_Datatype datatype, MPI_Aint *lb, MPI_Aint *extent)
{
    return ddtc_mpi_check(ddtc_type_get_extent(datatype, lb, extent), "MPI_Type_get_extent");
}
static inline int MPI_Type_get_extent_c(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    return ddtc_mpi_check(ddtc_type_get_extent_c(datatype, lb, extent), "MPI_Type_get_extent_c");
}
static inline int MPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    return ddtc_mpi_check(ddtc_type_get_extent_x(datatype, lb, extent), "MPI_Type_get_extent_x");
}
static inline int MPI_Type_get_true_extent(MPI_Datatype datatype, MPI_Aint *true_lb, MPI_Aint *true_extent)
{
    return ddtc_mpi_check(ddtc_type_get_true_extent(datatype, true_lb, true_extent), "MPI_Type_get_true_extent");
}
static inline int MPI_Type_get_true_extent_c(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    return ddtc_mpi_check(ddtc_type_get_true_extent_c(datatype, true_lb, true_extent), "MPI_Type_get_true_extent_c");
}
static inline int MPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    return ddtc_mpi_check(ddtc_type_get_true_extent_x(datatype, true_lb, true_extent), "MPI_Type_get_true_extent_x");
}
static inline int MPI_Type_set_name(MPI_Datatype datatype, const char *type_name)
{
    return ddtc_mpi_check(ddtc_type_set_name(datatype, type_name), "MPI_Type_set_name");
}
static inline int MPI_Type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen)
{
    return ddtc_mpi_check(ddtc_type_get_name(datatype, type_name, resultlen), "MPI_Type_get_name");
}
static inline int MPI_Type_get_envelope(MPI_Datatype datatype, int *num_integers, int *num_addresses,
    int *num_datatypes, int *combiner)
{
    return ddtc_mpi_check(ddtc_type_get_envelope(datatype, num_integers, num_addresses, num_datatypes, combiner),
        "MPI_Type_get_envelope");
}
static inline int MPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count *num_addresses,
    MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner)
{
    return ddtc_mpi_check(ddtc_type_get_envelope_c(datatype, num_integers, num_addresses, num_large_counts,
        num_datatypes, combiner), "MPI_Type_get_envelope_c");
}
static inline int MPI_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
    int array_of_integers[], MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[])
{
    return ddtc_mpi_check(ddtc_type_get_contents(datatype, max_integers, max_addresses, max_datatypes,
        array_of_integers, array_of_addresses, array_of_datatypes), "MPI_Type_get_contents");
}
static inline int MPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
    MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
    MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[])
{
    return ddtc_mpi_check(ddtc_type_get_contents_c(datatype, max_integers, max_addresses, max_large_counts,
        max_datatypes, array_of_integers, array_of_addresses, array_of_large_counts, array_of_datatypes),
        "MPI_Type_get_contents_c");
}
static inline int MPI_Type_create_keyval(MPI_Type_copy_attr_function *type_copy_attr_fn,
    MPI_Type_delete_attr_function *type_delete_attr_fn, int *type_keyval, void *extra_state)
{
    return ddtc_mpi_check(ddtc_type_create_keyval(type_copy_attr_fn, type_delete_attr_fn, type_keyval, extra_state),
        "MPI_Type_create_keyval");
}
static inline int MPI_Type_free_keyval(int *type_keyval)
{
    return ddtc_mpi_check(ddtc_type_free_keyval(type_keyval), "MPI_Type_free_keyval");
}
static inline int MPI_Type_set_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val)
{
    return ddtc_mpi_check(ddtc_type_set_attr(datatype, type_keyval, attribute_val), "MPI_Type_set_attr");
}
static inline int MPI_Type_get_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val, int *flag)
{
    return ddtc_mpi_check(ddtc_type_get_attr(datatype, type_keyval, attribute_val, flag), "MPI_Type_get_attr");
}
static inline int MPI_Type_delete_attr(MPI_Datatype datatype, int type_keyval)
{
    return ddtc_mpi_check(ddtc_type_delete_attr(datatype, type_keyval), "MPI_Type_delete_attr");
}
static inline MPI_Fint MPI_Type_c2f(MPI_Datatype datatype)
{
    int integer = 0;
    ddtc_mpi_check(ddtc_type_toint(datatype, &integer), "MPI_Type_c2f");
    return integer;
}
static inline MPI_Datatype MPI_Type_f2c(MPI_Fint integer)
{
    MPI_Datatype datatype = MPI_DATATYPE_NULL;
    ddtc_mpi_check(ddtc_type_fromint(integer, &datatype), "MPI_Type_f2c");
    return datatype;
}
static inline int MPI_Type_toint(MPI_Datatype datatype) { return MPI_Type_c2f(datatype); }
static inline MPI_Datatype MPI_Type_fromint(int datatype) { return MPI_Type_f2c(datatype); }

/* ---- The window accessors of 1996 ------------------------------------------------------------------------------- */

static inline int MPI_Type_envelope(MPI_Datatype datatype, int *count, int *combiner)
{
    return ddtc_mpi_check(ddtc_type_envelope(datatype, count, combiner), "MPI_Type_envelope");
}
static inline int MPI_Type_contents(MPI_Datatype datatype, int start, int count, int *array_blocklens,
    MPI_Aint *stride, MPI_Aint *array_disps, MPI_Datatype *array_types)
{
    return ddtc_mpi_check(ddtc_type_contents(datatype, start, count, array_blocklens, stride, array_disps,
        array_types), "MPI_Type_contents");
}

/* ---- Addresses, pack, status ------------------------------------------------------------------------------------ */

static inline int MPI_Get_address(const void *location, MPI_Aint *address)
{
    return ddtc_mpi_check(ddtc_get_address(location, address), "MPI_Get_address");
}
static inline MPI_Aint MPI_Aint_add(MPI_Aint base, MPI_Aint disp) { return ddtc_aint_add(base, disp); }
static inline MPI_Aint MPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) { return ddtc_aint_diff(addr1, addr2); }
static inline int MPI_Pack(const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, int outsize,
    int *position, MPI_Comm comm)
{
    DDTC_MPI_COMM(comm, "MPI_Pack");
    return ddtc_mpi_check_on(comm, ddtc_pack(inbuf, incount, datatype, outbuf, outsize, position), "MPI_Pack");
}
static inline int MPI_Unpack(const void *inbuf, int insize, int *position, void *outbuf, int outcount,
    MPI_Datatype datatype, MPI_Comm comm)
{
    DDTC_MPI_COMM(comm, "MPI_Unpack");
    return ddtc_mpi_check_on(comm, ddtc_unpack(inbuf, insize, position, outbuf, outcount, datatype), "MPI_Unpack");
}
static inline int MPI_Pack_size(int incount, MPI_Datatype datatype, MPI_Comm comm, int *size)
{
    DDTC_MPI_COMM(comm, "MPI_Pack_size");
    return ddtc_mpi_check_on(comm, ddtc_pack_size(incount, datatype, size), "MPI_Pack_size");
}
static inline int MPI_Pack_c(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf,
    MPI_Count outsize, MPI_Count *position, MPI_Comm comm)
{
    DDTC_MPI_COMM(comm, "MPI_Pack_c");
    return ddtc_mpi_check_on(comm, ddtc_pack_c(inbuf, incount, datatype, outbuf, outsize, position), "MPI_Pack_c");
}
static inline int MPI_Unpack_c(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
    MPI_Count outcount, MPI_Datatype datatype, MPI_Comm comm)
{
    DDTC_MPI_COMM(comm, "MPI_Unpack_c");
    return ddtc_mpi_check_on(comm, ddtc_unpack_c(inbuf, insize, position, outbuf, outcount, datatype), "MPI_Unpack_c");
}
static inline int MPI_Pack_size_c(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size)
{
    DDTC_MPI_COMM(comm, "MPI_Pack_size_c");
    return ddtc_mpi_check_on(comm, ddtc_pack_size_c(incount, datatype, size), "MPI_Pack_size_c");
}
/* These functions have no communicator, so their errors go to the handler of MPI_COMM_SELF. */
static inline int MPI_Reduce_local(const void *inbuf, void *inoutbuf, int count, MPI_Datatype datatype, MPI_Op op)
{
    return ddtc_mpi_check(ddtc_reduce_local(inbuf, inoutbuf, count, datatype, op), "MPI_Reduce_local");
}
static inline int MPI_Reduce_local_c(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype,
    MPI_Op op)
{
    return ddtc_mpi_check(ddtc_reduce_local_c(inbuf, inoutbuf, count, datatype, op), "MPI_Reduce_local_c");
}
static inline int MPI_Pack_external(const char datarep[], const void *inbuf, int incount, MPI_Datatype datatype,
    void *outbuf, MPI_Aint outsize, MPI_Aint *position)
{
    return ddtc_mpi_check(ddtc_pack_external(datarep, inbuf, incount, datatype, outbuf, outsize, position),
        "MPI_Pack_external");
}
static inline int MPI_Pack_external_c(const char datarep[], const void *inbuf, MPI_Count incount,
    MPI_Datatype datatype, void *outbuf, MPI_Count outsize, MPI_Count *position)
{
    return ddtc_mpi_check(ddtc_pack_external_c(datarep, inbuf, incount, datatype, outbuf, outsize, position),
        "MPI_Pack_external_c");
}
static inline int MPI_Unpack_external(const char datarep[], const void *inbuf, MPI_Aint insize, MPI_Aint *position,
    void *outbuf, int outcount, MPI_Datatype datatype)
{
    return ddtc_mpi_check(ddtc_unpack_external(datarep, inbuf, insize, position, outbuf, outcount, datatype),
        "MPI_Unpack_external");
}
static inline int MPI_Unpack_external_c(const char datarep[], const void *inbuf, MPI_Count insize, MPI_Count *position,
    void *outbuf, MPI_Count outcount, MPI_Datatype datatype)
{
    return ddtc_mpi_check(ddtc_unpack_external_c(datarep, inbuf, insize, position, outbuf, outcount, datatype),
        "MPI_Unpack_external_c");
}
static inline int MPI_Pack_external_size(const char datarep[], int incount, MPI_Datatype datatype, MPI_Aint *size)
{
    return ddtc_mpi_check(ddtc_pack_external_size(datarep, incount, datatype, size), "MPI_Pack_external_size");
}
static inline int MPI_Pack_external_size_c(const char datarep[], MPI_Count incount, MPI_Datatype datatype,
    MPI_Count *size)
{
    return ddtc_mpi_check(ddtc_pack_external_size_c(datarep, incount, datatype, size), "MPI_Pack_external_size_c");
}

static inline MPI_Count ddtc_mpi_bytes(const MPI_Status *status)
{
    return (MPI_Count)((uint64_t)(uint32_t)status->MPI_internal[1] << 32 | (uint32_t)status->MPI_internal[0]);
}
/* Sets a status to the bytes of `count` basic elements of a datatype, so that MPI_Get_elements
 * returns `count`, and MPI_Get_count the number of instances if they are whole. */
static inline int ddtc_mpi_set_elements(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    MPI_Count bytes = 0;
    int code = ddtc_elements_size(datatype, count, &bytes);
    if (code) return code;
    status->MPI_internal[0] = (int)(uint32_t)(uint64_t)bytes;
    status->MPI_internal[1] = (int)(uint32_t)((uint64_t)bytes >> 32);
    return 0;
}

static inline int MPI_Status_set_elements(MPI_Status *status, MPI_Datatype datatype, int count)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_set_elements");
    return ddtc_mpi_check(ddtc_mpi_set_elements(status, datatype, count), "MPI_Status_set_elements");
}
static inline int MPI_Status_set_elements_c(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_set_elements_c");
    return ddtc_mpi_check(ddtc_mpi_set_elements(status, datatype, count), "MPI_Status_set_elements_c");
}
static inline int MPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_set_elements_x");
    return ddtc_mpi_check(ddtc_mpi_set_elements(status, datatype, count), "MPI_Status_set_elements_x");
}
static inline int MPI_Get_elements(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Get_elements");
    return ddtc_mpi_check(ddtc_get_elements(datatype, ddtc_mpi_bytes(status), count), "MPI_Get_elements");
}
static inline int MPI_Get_elements_c(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Get_elements_c");
    return ddtc_mpi_check(ddtc_get_elements_c(datatype, ddtc_mpi_bytes(status), count), "MPI_Get_elements_c");
}
static inline int MPI_Get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Get_elements_x");
    return ddtc_mpi_check(ddtc_get_elements_x(datatype, ddtc_mpi_bytes(status), count), "MPI_Get_elements_x");
}
static inline int MPI_Get_count(const MPI_Status *status, MPI_Datatype datatype, int *count)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Get_count");
    return ddtc_mpi_check(ddtc_get_count(datatype, ddtc_mpi_bytes(status), count), "MPI_Get_count");
}
static inline int MPI_Get_count_c(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Get_count_c");
    return ddtc_mpi_check(ddtc_get_count_c(datatype, ddtc_mpi_bytes(status), count), "MPI_Get_count_c");
}
static inline int MPI_Status_get_source(const MPI_Status *status, int *source)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_get_source");
    DDTC_MPI_NOT_NULL(source, "MPI_Status_get_source");
    *source = status->MPI_SOURCE;
    return 0;
}
static inline int MPI_Status_set_source(MPI_Status *status, int source)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_set_source");
    status->MPI_SOURCE = source;
    return 0;
}
static inline int MPI_Status_get_tag(const MPI_Status *status, int *tag)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_get_tag");
    DDTC_MPI_NOT_NULL(tag, "MPI_Status_get_tag");
    *tag = status->MPI_TAG;
    return 0;
}
static inline int MPI_Status_set_tag(MPI_Status *status, int tag)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_set_tag");
    status->MPI_TAG = tag;
    return 0;
}
static inline int MPI_Status_get_error(const MPI_Status *status, int *error)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_get_error");
    DDTC_MPI_NOT_NULL(error, "MPI_Status_get_error");
    *error = status->MPI_ERROR;
    return 0;
}
static inline int MPI_Status_set_error(MPI_Status *status, int error)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_set_error");
    status->MPI_ERROR = error;
    return 0;
}
static inline int MPI_Status_set_cancelled(MPI_Status *status, int flag)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Status_set_cancelled");
    status->MPI_internal[2] = flag != 0;
    return 0;
}
static inline int MPI_Test_cancelled(const MPI_Status *status, int *flag)
{
    DDTC_MPI_NOT_NULL(status, "MPI_Test_cancelled");
    DDTC_MPI_NOT_NULL(flag, "MPI_Test_cancelled");
    *flag = status->MPI_internal[2];
    return 0;
}

/* ---- Fortran's handles and statuses (MPI 5.0, 19.3) ------------------------------------------------------------- */

static inline MPI_Fint MPI_Comm_c2f(MPI_Comm handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_Comm MPI_Comm_f2c(MPI_Fint integer) { return (MPI_Comm)(intptr_t)integer; }
static inline int MPI_Comm_toint(MPI_Comm comm) { return (int)(intptr_t)comm; }
static inline MPI_Comm MPI_Comm_fromint(int comm) { return (MPI_Comm)(intptr_t)comm; }
static inline MPI_Fint MPI_Errhandler_c2f(MPI_Errhandler handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_Errhandler MPI_Errhandler_f2c(MPI_Fint integer) { return (MPI_Errhandler)(intptr_t)integer; }
static inline int MPI_Errhandler_toint(MPI_Errhandler errhandler) { return (int)(intptr_t)errhandler; }
static inline MPI_Errhandler MPI_Errhandler_fromint(int errhandler) { return (MPI_Errhandler)(intptr_t)errhandler; }
static inline MPI_Fint MPI_File_c2f(MPI_File handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_File MPI_File_f2c(MPI_Fint integer) { return (MPI_File)(intptr_t)integer; }
static inline int MPI_File_toint(MPI_File file) { return (int)(intptr_t)file; }
static inline MPI_File MPI_File_fromint(int file) { return (MPI_File)(intptr_t)file; }
static inline MPI_Fint MPI_Group_c2f(MPI_Group handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_Group MPI_Group_f2c(MPI_Fint integer) { return (MPI_Group)(intptr_t)integer; }
static inline int MPI_Group_toint(MPI_Group group) { return (int)(intptr_t)group; }
static inline MPI_Group MPI_Group_fromint(int group) { return (MPI_Group)(intptr_t)group; }
static inline MPI_Fint MPI_Info_c2f(MPI_Info handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_Info MPI_Info_f2c(MPI_Fint integer) { return (MPI_Info)(intptr_t)integer; }
static inline int MPI_Info_toint(MPI_Info info) { return (int)(intptr_t)info; }
static inline MPI_Info MPI_Info_fromint(int info) { return (MPI_Info)(intptr_t)info; }
static inline MPI_Fint MPI_Message_c2f(MPI_Message handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_Message MPI_Message_f2c(MPI_Fint integer) { return (MPI_Message)(intptr_t)integer; }
static inline int MPI_Message_toint(MPI_Message message) { return (int)(intptr_t)message; }
static inline MPI_Message MPI_Message_fromint(int message) { return (MPI_Message)(intptr_t)message; }
static inline MPI_Fint MPI_Op_c2f(MPI_Op handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_Op MPI_Op_f2c(MPI_Fint integer) { return (MPI_Op)(intptr_t)integer; }
static inline int MPI_Op_toint(MPI_Op op) { return (int)(intptr_t)op; }
static inline MPI_Op MPI_Op_fromint(int op) { return (MPI_Op)(intptr_t)op; }
static inline MPI_Fint MPI_Request_c2f(MPI_Request handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_Request MPI_Request_f2c(MPI_Fint integer) { return (MPI_Request)(intptr_t)integer; }
static inline int MPI_Request_toint(MPI_Request request) { return (int)(intptr_t)request; }
static inline MPI_Request MPI_Request_fromint(int request) { return (MPI_Request)(intptr_t)request; }
static inline MPI_Fint MPI_Session_c2f(MPI_Session handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_Session MPI_Session_f2c(MPI_Fint integer) { return (MPI_Session)(intptr_t)integer; }
static inline int MPI_Session_toint(MPI_Session session) { return (int)(intptr_t)session; }
static inline MPI_Session MPI_Session_fromint(int session) { return (MPI_Session)(intptr_t)session; }
static inline MPI_Fint MPI_Win_c2f(MPI_Win handle) { return (MPI_Fint)(intptr_t)handle; }
static inline MPI_Win MPI_Win_f2c(MPI_Fint integer) { return (MPI_Win)(intptr_t)integer; }
static inline int MPI_Win_toint(MPI_Win win) { return (int)(intptr_t)win; }
static inline MPI_Win MPI_Win_fromint(int win) { return (MPI_Win)(intptr_t)win; }
static inline int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    DDTC_MPI_NOT_NULL(c_status, "MPI_Status_c2f");
    DDTC_MPI_NOT_NULL(f_status, "MPI_Status_c2f");
    memcpy(f_status, c_status, MPI_F_STATUS_SIZE * sizeof *f_status);
    return 0;
}
static inline int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    DDTC_MPI_NOT_NULL(f_status, "MPI_Status_f2c");
    DDTC_MPI_NOT_NULL(c_status, "MPI_Status_f2c");
    memcpy(c_status, f_status, MPI_F_STATUS_SIZE * sizeof *f_status);
    return 0;
}

/* ---- Deprecated and removed names of MPI-1 ---------------------------------------------------------------------- */

static inline int MPI_Address(void *location, MPI_Aint *address) { return MPI_Get_address(location, address); }
static inline int MPI_Attr_get(MPI_Comm comm, int keyval, void *attribute_val, int *flag)
{
    return MPI_Comm_get_attr(comm, keyval, attribute_val, flag);
}
static inline int MPI_Errhandler_create(MPI_Handler_function *function, MPI_Errhandler *errhandler)
{
    return MPI_Comm_create_errhandler(function, errhandler);
}
static inline int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler)
{
    return MPI_Comm_set_errhandler(comm, errhandler);
}
static inline int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    return MPI_Comm_get_errhandler(comm, errhandler);
}
static inline int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
    MPI_Datatype *newtype)
{
    return MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}
static inline int MPI_Type_hindexed(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
    MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return MPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
}
static inline int MPI_Type_struct(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
    MPI_Datatype array_of_types[], MPI_Datatype *newtype)
{
    return MPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
}
static inline int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent)
{
    MPI_Aint lb;
    DDTC_MPI_NOT_NULL(extent, "MPI_Type_extent");
    return MPI_Type_get_extent(datatype, &lb, extent);
}
static inline int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint extent;
    DDTC_MPI_NOT_NULL(displacement, "MPI_Type_lb");
    return MPI_Type_get_extent(datatype, displacement, &extent);
}
static inline int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint lb = 0, extent = 0;
    int code;
    DDTC_MPI_NOT_NULL(displacement, "MPI_Type_ub");
    code = MPI_Type_get_extent(datatype, &lb, &extent);
    if (code == 0) *displacement = lb + extent;
    return code;
}

/* ---- Tool interface --------------------------------------------------------------------------------------------- */

static inline int MPI_T_category_changed(int *update_number) { return ddtc_t_category_changed(update_number); }
static inline int MPI_T_category_get_categories(int cat_index, int len, int indices[])
{
    return ddtc_t_category_get_categories(cat_index, len, indices);
}
static inline int MPI_T_category_get_cvars(int cat_index, int len, int indices[])
{
    return ddtc_t_category_get_cvars(cat_index, len, indices);
}
static inline int MPI_T_category_get_events(int cat_index, int len, int indices[])
{
    return ddtc_t_category_get_events(cat_index, len, indices);
}
static inline int MPI_T_category_get_index(const char *name, int *cat_index)
{
    return ddtc_t_category_get_index(name, cat_index);
}
static inline int MPI_T_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len,
    int *num_cvars, int *num_pvars, int *num_categories)
{
    return ddtc_t_category_get_info(cat_index, name, name_len, desc, desc_len, num_cvars, num_pvars, num_categories);
}
static inline int MPI_T_category_get_num(int *num_cat) { return ddtc_t_category_get_num(num_cat); }
static inline int MPI_T_category_get_num_events(int cat_index, int *num_events)
{
    return ddtc_t_category_get_num_events(cat_index, num_events);
}
static inline int MPI_T_category_get_pvars(int cat_index, int len, int indices[])
{
    return ddtc_t_category_get_pvars(cat_index, len, indices);
}
static inline int MPI_T_cvar_get_index(const char *name, int *cvar_index)
{
    return ddtc_t_cvar_get_index(name, cvar_index);
}
static inline int MPI_T_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity,
    MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope)
{
    return ddtc_t_cvar_get_info(cvar_index, name, name_len, verbosity, datatype, enumtype, desc, desc_len, bind, scope);
}
static inline int MPI_T_cvar_get_num(int *num_cvar) { return ddtc_t_cvar_get_num(num_cvar); }
static inline int MPI_T_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count)
{
    return ddtc_t_cvar_handle_alloc(cvar_index, obj_handle, handle, count);
}
static inline int MPI_T_cvar_handle_free(MPI_T_cvar_handle *handle) { return ddtc_t_cvar_handle_free(handle); }
static inline int MPI_T_cvar_read(MPI_T_cvar_handle handle, void *buf) { return ddtc_t_cvar_read(handle, buf); }
static inline int MPI_T_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    return ddtc_t_cvar_write(handle, buf);
}
static inline int MPI_T_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    return ddtc_t_enum_get_info(enumtype, num, name, name_len);
}
static inline int MPI_T_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
    return ddtc_t_enum_get_item(enumtype, indx, value, name, name_len);
}
static inline int MPI_T_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
    MPI_Info *info_used)
{
    return ddtc_t_event_callback_get_info(event_registration, (int)cb_safety, info_used);
}
static inline int MPI_T_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
    MPI_Info info)
{
    return ddtc_t_event_callback_set_info(event_registration, (int)cb_safety, info);
}
static inline int MPI_T_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
    return ddtc_t_event_copy(event_instance, buffer);
}
static inline int MPI_T_event_get_index(const char *name, int *event_index)
{
    return ddtc_t_event_get_index(name, event_index);
}
static inline int MPI_T_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
    MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[], int *num_elements, MPI_T_enum *enumtype,
    MPI_Info *info, char *desc, int *desc_len, int *bind)
{
    return ddtc_t_event_get_info(event_index, name, name_len, verbosity, array_of_datatypes, array_of_displacements,
        num_elements, enumtype, info, desc, desc_len, bind);
}
static inline int MPI_T_event_get_num(int *num_events) { return ddtc_t_event_get_num(num_events); }
static inline int MPI_T_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
    return ddtc_t_event_get_source(event_instance, source_index);
}
static inline int MPI_T_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
    return ddtc_t_event_get_timestamp(event_instance, event_timestamp);
}
static inline int MPI_T_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info,
    MPI_T_event_registration *event_registration)
{
    return ddtc_t_event_handle_alloc(event_index, obj_handle, info, event_registration);
}
static inline int MPI_T_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
    MPI_T_event_free_cb_function free_cb_function)
{
    return ddtc_t_event_handle_free(event_registration, user_data, (void (*)(void))free_cb_function);
}
static inline int MPI_T_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
    return ddtc_t_event_handle_get_info(event_registration, info_used);
}
static inline int MPI_T_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
    return ddtc_t_event_handle_set_info(event_registration, info);
}
static inline int MPI_T_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
    return ddtc_t_event_read(event_instance, element_index, buffer);
}
static inline int MPI_T_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
    MPI_Info info, void *user_data, MPI_T_event_cb_function event_cb_function)
{
    return ddtc_t_event_register_callback(event_registration, (int)cb_safety, info, user_data,
        (void (*)(void))event_cb_function);
}
static inline int MPI_T_event_set_dropped_handler(MPI_T_event_registration event_registration,
    MPI_T_event_dropped_cb_function dropped_cb_function)
{
    return ddtc_t_event_set_dropped_handler(event_registration, (void (*)(void))dropped_cb_function);
}
static inline int MPI_T_finalize(void) { return ddtc_t_finalize(); }
static inline int MPI_T_init_thread(int required, int *provided) { return ddtc_t_init_thread(required, provided); }
static inline int MPI_T_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    return ddtc_t_pvar_get_index(name, var_class, pvar_index);
}
static inline int MPI_T_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
    MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *readonly, int *continuous,
    int *atomic)
{
    return ddtc_t_pvar_get_info(pvar_index, name, name_len, verbosity, var_class, datatype, enumtype, desc, desc_len,
        bind, readonly, continuous, atomic);
}
static inline int MPI_T_pvar_get_num(int *num_pvar) { return ddtc_t_pvar_get_num(num_pvar); }
static inline int MPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle,
    MPI_T_pvar_handle *handle, int *count)
{
    return ddtc_t_pvar_handle_alloc(session, pvar_index, obj_handle, handle, count);
}
static inline int MPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
    return ddtc_t_pvar_handle_free(session, handle);
}
static inline int MPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    return ddtc_t_pvar_read(session, handle, buf);
}
static inline int MPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    return ddtc_t_pvar_readreset(session, handle, buf);
}
static inline int MPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return ddtc_t_pvar_reset(session, handle);
}
static inline int MPI_T_pvar_session_create(MPI_T_pvar_session *session)
{
    return ddtc_t_pvar_session_create(session);
}
static inline int MPI_T_pvar_session_free(MPI_T_pvar_session *session) { return ddtc_t_pvar_session_free(session); }
static inline int MPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return ddtc_t_pvar_start(session, handle);
}
static inline int MPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return ddtc_t_pvar_stop(session, handle);
}
static inline int MPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
    return ddtc_t_pvar_write(session, handle, buf);
}
static inline int MPI_T_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len,
    MPI_T_source_order *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info)
{
    return ddtc_t_source_get_info(source_index, name, name_len, desc, desc_len, (int *)ordering, ticks_per_second,
        max_ticks, info);
}
static inline int MPI_T_source_get_num(int *num_sources) { return ddtc_t_source_get_num(num_sources); }
static inline int MPI_T_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
    return ddtc_t_source_get_timestamp(source_index, timestamp);
}

#ifdef __cplusplus
}
#endif

#endif
