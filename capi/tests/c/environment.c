/* Tests of the functions that a program with datatypes needs in addition to the datatype functions
 * (MPI 5.0, 9.3 to 9.5, 10, 11.6, 19.3): info objects, error handlers, error classes of the
 * program, threads, handles as integers, and the predefined attributes of communicators. */
#include <ddtc/mpi.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

static void info(void)
{
    MPI_Info a, b, gone;
    char value[MPI_MAX_INFO_VAL], key[MPI_MAX_INFO_KEY], longest[MPI_MAX_INFO_VAL + 1];
    int n, flag, length;
    OK(MPI_Info_create(&a));
    OK(MPI_Info_get_nkeys(a, &n));
    EQ(n, 0);
    OK(MPI_Info_set(a, "first", "1"));
    OK(MPI_Info_set(a, "second", ""));
    OK(MPI_Info_set(a, " first", "spaces are part of it"));
    OK(MPI_Info_set(a, "first", "one"));
    OK(MPI_Info_get_nkeys(a, &n));
    EQ(n, 3);
    const char *order[] = {"first", "second", " first"};
    for (int i = 0; i < 3; i++) {
        OK(MPI_Info_get_nthkey(a, i, key));
        EQ(strcmp(key, order[i]), 0);
    }
    FAILS(MPI_ERR_ARG, "n = 3", MPI_Info_get_nthkey(a, 3, key));
    FAILS(MPI_ERR_ARG, "n = -1", MPI_Info_get_nthkey(a, -1, key));

    /* Reads a value into buffers that are too short, empty, exactly long enough, and longer. If the
     * key does not exist, only the flag is written. */
    memset(value, '#', sizeof value);
    length = 3;
    OK(MPI_Info_get_string(a, "first", &length, value, &flag));
    TRUE(flag && length == 4 && !strcmp(value, "on") && value[3] == '#');
    length = 0;
    OK(MPI_Info_get_string(a, "first", &length, NULL, &flag));
    TRUE(flag && length == 4);
    OK(MPI_Info_get_string(a, "first", &length, value, &flag));
    TRUE(flag && length == 4 && !strcmp(value, "one") && value[4] == '#');
    length = 9, value[0] = '#';
    OK(MPI_Info_get_string(a, "second", &length, value, &flag));
    TRUE(flag && length == 1 && !value[0] && value[1] == 'n');
    length = 9, value[0] = '#';
    OK(MPI_Info_get_string(a, "third", &length, value, &flag));
    TRUE(!flag && length == 9 && value[0] == '#');
    FAILS(MPI_ERR_ARG, "buflen = -1", (length = -1, MPI_Info_get_string(a, "first", &length, value, &flag)));
    FAILS(MPI_ERR_ARG, "value", (length = 2, MPI_Info_get_string(a, "first", &length, NULL, &flag)));
    OK(MPI_Info_get(a, "first", 2, value, &flag));
    TRUE(flag && !strcmp(value, "on"));
    OK(MPI_Info_get(a, "first", INT_MAX, value, &flag));
    TRUE(flag && !strcmp(value, "one"));
    FAILS(MPI_ERR_ARG, "buflen", MPI_Info_get(a, "first", -2, value, &flag));
    length = 77;
    OK(MPI_Info_get_valuelen(a, "third", &length, &flag));
    TRUE(!flag && length == 77);
    OK(MPI_Info_get_valuelen(a, "first", &length, &flag));
    TRUE(flag && length == 3);

    /* A duplicate is a separate object. */
    OK(MPI_Info_dup(a, &b));
    OK(MPI_Info_delete(a, "first"));
    FAILS(MPI_ERR_INFO_NOKEY, "key = first", MPI_Info_delete(a, "first"));
    OK(MPI_Info_get_nthkey(a, 0, key));
    EQ(strcmp(key, "second"), 0);
    OK(MPI_Info_get_nthkey(b, 0, key));
    EQ(strcmp(key, "first"), 0);

    /* Tests the limits on the lengths of keys and values. */
    memset(longest, 'x', sizeof longest);
    longest[MPI_MAX_INFO_VAL] = 0;
    FAILS(MPI_ERR_INFO_VALUE, "value", MPI_Info_set(b, "long", longest));
    longest[MPI_MAX_INFO_VAL - 1] = 0;
    OK(MPI_Info_set(b, "long", longest));
    OK(MPI_Info_get(b, "long", MPI_MAX_INFO_VAL - 1, value, &flag));
    EQ(strcmp(value, longest), 0);
    longest[MPI_MAX_INFO_KEY] = 0;
    FAILS(MPI_ERR_INFO_KEY, "key", MPI_Info_set(b, longest, "v"));
    longest[MPI_MAX_INFO_KEY - 1] = 0;
    OK(MPI_Info_set(b, longest, "v"));
    OK(MPI_Info_get_nthkey(b, 4, key));
    EQ(strcmp(key, longest), 0);
    FAILS(MPI_ERR_INFO_KEY, "key", MPI_Info_set(b, "", "v"));

    /* Tests valid and invalid handles of info objects. */
    EQ(MPI_Info_f2c(MPI_Info_c2f(b)), b);
    gone = b;
    OK(MPI_Info_free(&b));
    EQ(b, MPI_INFO_NULL);
    FAILS(MPI_ERR_INFO, "not freed", MPI_Info_free(&gone));
    OK(MPI_Info_free(&a));
    OK(MPI_Info_create(&a));
    TRUE(a != gone);
    FAILS(MPI_ERR_INFO, "not freed", MPI_Info_get_nkeys(gone, &n));
    FAILS(MPI_ERR_INFO, "MPI_INFO_NULL", MPI_Info_set(MPI_INFO_NULL, "k", "v"));
    OK(MPI_Info_free(&a));
    OK(MPI_Info_get_nkeys(MPI_INFO_ENV, &n));
    EQ(n, 0);
    FAILS(MPI_ERR_INFO, "MPI_INFO_ENV", MPI_Info_set(MPI_INFO_ENV, "k", "v"));
    a = MPI_INFO_ENV;
    FAILS(MPI_ERR_INFO, "MPI_INFO_ENV", MPI_Info_free(&a));
    OK(MPI_Info_create_env(0, NULL, &a));
    OK(MPI_Info_set(a, "k", "v"));
    OK(MPI_Info_free(&a));
}

static int handled, handled_code;
static MPI_Comm handled_comm;

/* An error handler that reads only the two arguments that MPI guarantees, and calls MPI. */
static void handler(MPI_Comm *comm, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING];
    int n;
    handled++;
    handled_comm = *comm;
    handled_code = *code;
    OK(MPI_Error_string(*code, text, &n));
    TRUE(n > 0);
    *code = 0; /* Changes a variable of the library, but not the code that the call returns. */
}

static void of_files(MPI_File *file, int *code, ...)
{
    handled++;
    TRUE(*file == MPI_FILE_NULL && *code == MPI_ERR_IO);
}

static void handlers(void)
{
    MPI_Errhandler mine, files, other, gone;
    MPI_Datatype t;
    void *value;
    char out[8];
    int position = 0, flag;
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine));
    OK(MPI_Comm_get_errhandler(MPI_COMM_SELF, &other));
    EQ(other, mine);
    OK(MPI_Errhandler_free(&other));
    EQ(other, MPI_ERRHANDLER_NULL);

    /* The handler gets the communicator of the call, or MPI_COMM_SELF if there is none, and the
     * call returns the code. */
    EQ(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
    TRUE(handled == 1 && handled_code == MPI_ERR_COUNT && handled_comm == MPI_COMM_SELF);
    EQ(MPI_Pack(NULL, -1, MPI_INT, out, 8, &position, MPI_COMM_WORLD), MPI_ERR_COUNT);
    TRUE(handled == 2 && handled_comm == MPI_COMM_WORLD);
    EQ(MPI_Pack(NULL, -1, MPI_INT, out, 8, &position, MPI_COMM_NULL), MPI_ERR_COMM);
    TRUE(handled == 3 && handled_comm == MPI_COMM_SELF);
    OK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_TOPOLOGY));
    TRUE(handled == 4 && handled_code == MPI_ERR_TOPOLOGY && handled_comm == MPI_COMM_WORLD);
    EQ(MPI_Comm_rank(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    EQ(handled, 5);
    EQ(MPI_Comm_get_attr(MPI_COMM_WORLD, 7, &value, &flag), MPI_ERR_KEYVAL);
    TRUE(handled == 6 && handled_comm == MPI_COMM_WORLD);

    /* If a handler is freed while it is in force, it is still called, and the program can get a new
     * reference to it. */
    gone = mine;
    OK(MPI_Errhandler_free(&mine));
    EQ(mine, MPI_ERRHANDLER_NULL);
    EQ(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
    EQ(handled, 7);
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &mine));
    EQ(mine, gone);
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_ERRHANDLER, "not freed", MPI_Errhandler_free(&gone));
    FAILS(MPI_ERR_ERRHANDLER, "not freed", MPI_Comm_set_errhandler(MPI_COMM_WORLD, gone));
    EQ(handled, 7);
    /* Freeing a predefined handler succeeds, and only sets the variable to null. */
    other = MPI_ERRORS_RETURN;
    OK(MPI_Errhandler_free(&other));
    EQ(other, MPI_ERRHANDLER_NULL);
    FAILS(MPI_ERR_ERRHANDLER, "MPI_ERRHANDLER_NULL", MPI_Errhandler_free(&other));

    /* The initial error handler of files is MPI_ERRORS_RETURN. An error handler for files cannot be
     * set on a communicator. */
    OK(MPI_File_get_errhandler(MPI_FILE_NULL, &other));
    EQ(other, MPI_ERRORS_RETURN);
    OK(MPI_File_create_errhandler(of_files, &files));
    FAILS(MPI_ERR_ERRHANDLER, "for such objects", MPI_Comm_set_errhandler(MPI_COMM_WORLD, files));
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, files));
    OK(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_IO));
    EQ(handled, 8);
    OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    EQ(MPI_Errhandler_f2c(MPI_Errhandler_c2f(files)), files);
    OK(MPI_Errhandler_free(&files));
    /* There are no windows and no sessions, so no error handler can be set on or called for a
     * window or a session. */
    OK(MPI_Win_create_errhandler((MPI_Win_errhandler_function *)handler, &other));
    FAILS(MPI_ERR_WIN, "win", MPI_Win_set_errhandler(MPI_WIN_NULL, other));
    OK(MPI_Errhandler_free(&other));
    FAILS(MPI_ERR_SESSION, "session", MPI_Session_call_errhandler(MPI_SESSION_NULL, 1));
    FAILS(MPI_ERR_COMM, "comm", MPI_Comm_call_errhandler(MPI_COMM_NULL, 1));
    /* Creates, sets and calls an error handler with the function names of MPI-1. */
    OK(MPI_Errhandler_create(handler, &mine));
    OK(MPI_Errhandler_set(MPI_COMM_WORLD, mine));
    OK(MPI_Errhandler_free(&mine));
    EQ(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
    EQ(handled, 9);
    OK(MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_RETURN));

    /* Both error handlers that end the program use the error code as the exit status of the
     * program, as far as the code fits in a status. */
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            fclose(stderr);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, i ? MPI_ERRORS_ABORT : MPI_ERRORS_ARE_FATAL);
            MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_DIMS);
            _exit(99);
        }
        EQ(waitpid(child, &status, 0), child);
        TRUE(WIFEXITED(status) && WEXITSTATUS(status) == MPI_ERR_DIMS);
    }
}

static int last_used(void)
{
    int *value = NULL, flag = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    TRUE(flag);
    return *value;
}

static int refuse(MPI_Datatype t, int keyval, void *value, void *extra)
{
    (void)t, (void)keyval, (void)value;
    return *(int *)extra;
}

static void codes(void)
{
    int class, code, another, n, keyval;
    char text[MPI_MAX_ERROR_STRING], longest[2 * MPI_MAX_ERROR_STRING];
    MPI_Datatype t;
    EQ(last_used(), MPI_ERR_LASTCODE);
    OK(MPI_Add_error_class(&class));
    TRUE(class > MPI_ERR_LASTCODE && last_used() == class);
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Add_error_code(MPI_ERR_IO, &another));
    TRUE(code > class && another > code && last_used() == another);
    OK(MPI_Error_class(class, &n));
    EQ(n, class);
    OK(MPI_Error_class(code, &n));
    EQ(n, class);
    OK(MPI_Error_class(another, &n));
    EQ(n, MPI_ERR_IO);
    OK(MPI_Error_string(code, text, &n));
    TRUE(n == 0 && !text[0]);
    OK(MPI_Add_error_string(code, "mine"));
    OK(MPI_Add_error_string(code, "my own"));
    OK(MPI_Error_string(code, text, &n));
    TRUE(n == 6 && !strcmp(text, "my own"));
    memset(longest, 'y', sizeof longest);
    longest[sizeof longest - 1] = 0;
    OK(MPI_Add_error_string(class, longest));
    OK(MPI_Error_string(class, text, &n));
    TRUE(n == MPI_MAX_ERROR_STRING - 1 && (int)strlen(text) == n);

    /* If a callback returns a code that the program added, the error string is the string that the
     * program gave to this code. */
    OK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, refuse, &keyval, &code));
    OK(MPI_Type_contiguous(2, MPI_INT, &t));
    OK(MPI_Type_set_attr(t, keyval, NULL));
    EQ(MPI_Type_free(&t), code);
    OK(MPI_Error_string(code, text, &n));
    EQ(strcmp(text, "my own"), 0);
    int kept = code;
    code = 0;
    OK(MPI_Type_free(&t));
    code = kept;
    OK(MPI_Type_free_keyval(&keyval));

    /* Predefined codes and classes cannot be changed. Codes and classes that are in use cannot be
     * removed. */
    FAILS(MPI_ERR_ARG, "errorcode", MPI_Add_error_string(MPI_ERR_IO, "no"));
    FAILS(MPI_ERR_ARG, "errorclass", MPI_Add_error_code(code, &n));
    FAILS(MPI_ERR_ARG, "errorclass", MPI_Add_error_code(MPI_ERR_LASTCODE, &n));
    FAILS(MPI_ERR_ARG, "string", MPI_Remove_error_class(class));
    OK(MPI_Remove_error_string(class));
    FAILS(MPI_ERR_ARG, "errorcode", MPI_Remove_error_string(class));
    FAILS(MPI_ERR_ARG, "codes", MPI_Remove_error_class(class));
    FAILS(MPI_ERR_ARG, "string", MPI_Remove_error_code(code));
    OK(MPI_Remove_error_string(code));
    FAILS(MPI_ERR_ARG, "errorclass", MPI_Remove_error_class(code));
    FAILS(MPI_ERR_ARG, "errorcode", MPI_Remove_error_code(class));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_code(another));
    OK(MPI_Remove_error_class(class));
    FAILS(MPI_ERR_ARG, "errorclass", MPI_Remove_error_class(class));
    FAILS(MPI_ERR_ARG, "errorclass", MPI_Remove_error_class(MPI_ERR_IO));
    OK(MPI_Error_class(code, &n));
    EQ(n, MPI_ERR_OTHER);
    EQ(last_used(), another);

    /* MPI_Error_class returns every error class of MPI unchanged, and every error class has a
     * description. */
    for (int c = 0; c <= MPI_T_ERR_PVAR_NO_ATOMIC; c++) {
        if (c == MPI_ERR_ABI + 1) c = MPI_T_ERR_CANNOT_INIT;
        OK(MPI_Error_class(c, &n));
        EQ(n, c);
        OK(MPI_Error_string(c, text, &n));
        TRUE(n > 0 && !strstr(text, "user"));
    }
}

static void attributes(void)
{
    int *value, flag;
    const int expected[][2] = {{MPI_TAG_UB, INT_MAX}, {MPI_IO, MPI_ANY_SOURCE}, {MPI_HOST, MPI_PROC_NULL},
                               {MPI_WTIME_IS_GLOBAL, 1}};
    for (int i = 0; i < LENGTH(expected); i++) {
        OK(MPI_Comm_get_attr(MPI_COMM_WORLD, expected[i][0], &value, &flag));
        TRUE(flag && *value == expected[i][1]);
    }
    OK(MPI_Attr_get(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    EQ(flag, 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    EQ(flag, 0);
    FAILS(MPI_ERR_KEYVAL, "comm_keyval = 77", MPI_Comm_get_attr(MPI_COMM_WORLD, 77, &value, &flag));
}

static void *another_thread(void *flag)
{
    OK(MPI_Is_thread_main(flag));
    return NULL;
}

/* Thread function that uses objects of its own, and one object that all threads share. */
static void *busy(void *shared)
{
    for (int i = 0; i < 2000; i++) {
        MPI_Info own, copy;
        MPI_Errhandler h;
        int n, code;
        char key[32];
        OK(MPI_Info_create(&own));
        snprintf(key, sizeof key, "%d", i % 10);
        OK(MPI_Info_set(own, key, "v"));
        OK(MPI_Info_set(*(MPI_Info *)shared, key, "v"));
        OK(MPI_Info_dup(own, &copy));
        OK(MPI_Info_get_nkeys(copy, &n));
        EQ(n, 1);
        OK(MPI_Info_free(&own));
        OK(MPI_Info_free(&copy));
        OK(MPI_Comm_create_errhandler(handler, &h));
        OK(MPI_Errhandler_free(&h));
        OK(MPI_Add_error_code(MPI_ERR_IO, &code));
        OK(MPI_Remove_error_code(code));
    }
    return NULL;
}

static void threads(void)
{
    int flag = -1, provided;
    pthread_t thread[4];
    MPI_Info shared;
    OK(MPI_Query_thread(&provided));
    EQ(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&flag));
    EQ(flag, 1);
    EQ(pthread_create(&thread[0], NULL, another_thread, &flag), 0);
    EQ(pthread_join(thread[0], NULL), 0);
    EQ(flag, 0);
    OK(MPI_Info_create(&shared));
    for (int i = 0; i < 4; i++) EQ(pthread_create(&thread[i], NULL, busy, &shared), 0);
    for (int i = 0; i < 4; i++) EQ(pthread_join(thread[i], NULL), 0);
    OK(MPI_Info_get_nkeys(shared, &flag));
    EQ(flag, 10);
    OK(MPI_Info_free(&shared));
}

/* A process can return only the low 8 bits of an error code. An error is never returned as 0, which
 * means success. */
static void aborts(void)
{
    const int codes[][2] = {{0, 0}, {7, 7}, {256, 1}, {263, 7}, {-256, 1}, {-1, 255}};
    for (int i = 0; i < LENGTH(codes); i++) {
        int status;
        pid_t child = fork();
        if (child == 0) MPI_Abort(MPI_COMM_WORLD, codes[i][0]);
        EQ(waitpid(child, &status, 0), child);
        TRUE(WIFEXITED(status));
        EQ(WEXITSTATUS(status), codes[i][1]);
    }
}

int main(void)
{
    int provided, flag;
    OK(MPI_Is_thread_main(&flag));
    EQ(flag, 0);
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided));
    EQ(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    info();
    handlers();
    codes();
    attributes();
    threads();

    /* Predefined handles have the integer values of the ABI. */
    EQ(MPI_Comm_c2f(MPI_COMM_WORLD), 0x101);
    EQ(MPI_Comm_f2c(0x102), MPI_COMM_SELF);
    EQ(MPI_Request_toint(MPI_REQUEST_NULL), 0x180);
    EQ(MPI_Group_fromint(0x109), MPI_GROUP_EMPTY);
    EQ(MPI_Op_f2c(MPI_Op_c2f(MPI_OP_NULL)), MPI_OP_NULL);
    EQ(MPI_Info_fromint(0x131), MPI_INFO_ENV);

    /* If a type has two names in C, MPI_Type_get_name always returns the same one. */
    char name[MPI_MAX_OBJECT_NAME];
    int n;
    OK(MPI_Type_get_name(MPI_LONG_LONG, name, &n));
    EQ(strcmp(name, "MPI_LONG_LONG_INT"), 0);
    OK(MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &n));
    EQ(strcmp(name, "MPI_C_COMPLEX"), 0);
    aborts();
    OK(MPI_Finalize());
    return 0;
}
