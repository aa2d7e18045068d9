// Parts of the generated header ddtc_mpi.h that are written by hand, each after a line with its
// name: its beginning and end, parts whose place a line `text NAME` of names.txt gives, types, and
// bodies of functions. The declarations of a body end with a blank line. The generator puts the
// checks of the arguments there.
//: head
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
//: foot
#ifdef __cplusplus
}
#endif

#endif
//: MPI_Status
typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
//: errors
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
//: MPI_Comm_call_errhandler
    ddtc_mpi_raise(DDTC_ERRHANDLER_COMM, comm, errorcode, "MPI_Comm_call_errhandler");
    return 0;
//: MPI_File_call_errhandler
    ddtc_mpi_raise(DDTC_ERRHANDLER_FILE, fh, errorcode, "MPI_File_call_errhandler");
    return 0;
//: MPI_Session_call_errhandler
    ddtc_mpi_raise(DDTC_ERRHANDLER_SESSION, session, errorcode, "MPI_Session_call_errhandler");
    return 0;
//: MPI_Win_call_errhandler
    ddtc_mpi_raise(DDTC_ERRHANDLER_WIN, win, errorcode, "MPI_Win_call_errhandler");
    return 0;
//: MPI_Query_thread
    *provided = MPI_THREAD_MULTIPLE;
    return 0;
//: MPI_Init_thread
    *provided = MPI_THREAD_MULTIPLE;
    return MPI_Init(argc, argv);
//: MPI_Finalize
    ddtc_mpi_set(DDTC_MPI_STATE, 2);
    return ddtc_t_report();
//: MPI_Initialized
    int state = 0;

    ddtc_mpi_get(DDTC_MPI_STATE, &state);
    *flag = state > 0;
    return 0;
//: MPI_Finalized
    int state = 0;

    ddtc_mpi_get(DDTC_MPI_STATE, &state);
    *flag = state > 1;
    return 0;
//: MPI_Abort
    fflush(NULL);
    /* A process can return only the low 8 bits of a code. If these are 0, it returns 1, because 0
     * would mean success. */
    exit(errorcode != 0 && (errorcode & 0xff) == 0 ? 1 : errorcode);
//: MPI_Comm_rank
    *rank = 0;
    return 0;
//: MPI_Comm_size
    *size = 1;
    return 0;
//: MPI_Barrier
    return 0;
//: MPI_Wtick
    return 1e-9;
//: MPI_Get_processor_name
    strcpy(name, "localhost");
    *resultlen = 9;
    return 0;
//: MPI_Get_version
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return 0;
//: MPI_Get_library_version
    strcpy(version, ddtc_version_string());
    *resultlen = (int)strlen(version);
    return 0;
//: MPI_Info_get
    int buflen = valuelen < 0 ? -1 : valuelen < MPI_MAX_INFO_VAL ? valuelen + 1 : MPI_MAX_INFO_VAL;

    return ddtc_mpi_check(ddtc_info_get_string(info, key, &buflen, value, flag), "MPI_Info_get");
//: MPI_Info_get_valuelen
    int buflen = 0, found = 0, code;

    code = ddtc_mpi_check(ddtc_info_get_string(info, key, &buflen, NULL, &found), "MPI_Info_get_valuelen");
    if (code) return code;
    if (found) *valuelen = buflen - 1;
    *flag = found;
    return 0;
//: MPI_Type_c2f
    int integer = 0;
    ddtc_mpi_check(ddtc_type_toint(datatype, &integer), "MPI_Type_c2f");
    return integer;
//: MPI_Type_f2c
    MPI_Datatype datatype = MPI_DATATYPE_NULL;
    ddtc_mpi_check(ddtc_type_fromint(integer, &datatype), "MPI_Type_f2c");
    return datatype;
//: status
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
//: MPI_Status_get_source
    *source = status->MPI_SOURCE;
    return 0;
//: MPI_Status_set_source
    status->MPI_SOURCE = source;
    return 0;
//: MPI_Status_get_tag
    *tag = status->MPI_TAG;
    return 0;
//: MPI_Status_set_tag
    status->MPI_TAG = tag;
    return 0;
//: MPI_Status_get_error
    *error = status->MPI_ERROR;
    return 0;
//: MPI_Status_set_error
    status->MPI_ERROR = error;
    return 0;
//: MPI_Status_set_cancelled
    status->MPI_internal[2] = flag != 0;
    return 0;
//: MPI_Test_cancelled
    *flag = status->MPI_internal[2];
    return 0;
//: MPI_Status_c2f
    memcpy(f_status, c_status, MPI_F_STATUS_SIZE * sizeof *f_status);
    return 0;
//: MPI_Status_f2c
    memcpy(c_status, f_status, MPI_F_STATUS_SIZE * sizeof *f_status);
    return 0;
//: MPI_Type_extent
    MPI_Aint lb;

    return MPI_Type_get_extent(datatype, &lb, extent);
//: MPI_Type_lb
    MPI_Aint extent;

    return MPI_Type_get_extent(datatype, displacement, &extent);
//: MPI_Type_ub
    MPI_Aint lb = 0, extent = 0;
    int code;

    code = MPI_Type_get_extent(datatype, &lb, &extent);
    if (code == 0) *displacement = lb + extent;
    return code;
