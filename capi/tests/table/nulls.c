/* Calls the functions of ddtc_mpi.h. In each call, one pointer or handle is null. programs.rs
 * generates the list of calls. A call must fail if null is not legal for that argument, and succeed
 * otherwise. A call with valid arguments must succeed, unless it asks for something that does not
 * exist in this library. The name of each call is printed before the call, so that a crash can be
 * attributed. */
#include <mpi.h>
#include <stdint.h>

static char buffer[4096] __attribute__((aligned(16)));
static int failures;

static void handler(void) {}

/* Each call gets new objects, so that a call that frees its argument does not affect the next. */
static MPI_Datatype fresh_MPI_Datatype(void)
{
    MPI_Datatype t;
    MPI_Type_vector(2, 1, 2, MPI_INT, &t);
    MPI_Type_commit(&t);
    return t;
}
static MPI_Comm fresh_MPI_Comm(void) { return MPI_COMM_WORLD; }
static MPI_File fresh_MPI_File(void) { return MPI_FILE_NULL; }
static MPI_Win fresh_MPI_Win(void) { return MPI_WIN_NULL; }
static MPI_Session fresh_MPI_Session(void) { return MPI_SESSION_NULL; }
static MPI_Info fresh_MPI_Info(void)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    return info;
}
static MPI_Errhandler fresh_MPI_Errhandler(void) { return MPI_ERRORS_RETURN; }
static MPI_Status *fresh_status(void)
{
    static MPI_Status status;
    MPI_Status_set_elements(&status, MPI_BYTE, 16);
    return &status;
}
static int keyval;
static int fresh_keyval(void)
{
    int fresh;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &fresh, 0);
    return fresh;
}
/* Returns a type that has an attribute. */
static MPI_Datatype attributed(void)
{
    MPI_Datatype t = fresh_MPI_Datatype();
    MPI_Type_set_attr(t, keyval, buffer);
    return t;
}
static int added(void)
{
    int errorclass;
    MPI_Add_error_class(&errorclass);
    return errorclass;
}
/* Returns the enumeration of the variable ddtc_mode. */
static MPI_T_enum fresh_MPI_T_enum(void)
{
    MPI_T_enum e = MPI_T_ENUM_NULL;
    int index = 0;
    MPI_T_cvar_get_index("ddtc_mode", &index);
    MPI_T_cvar_get_info(index, 0, 0, 0, 0, &e, 0, 0, 0, 0);
    return e;
}
static MPI_T_cvar_handle fresh_MPI_T_cvar_handle(void)
{
    MPI_T_cvar_handle handle;
    int index = 0, count;
    MPI_T_cvar_get_index("ddtc_mode", &index);
    MPI_T_cvar_handle_alloc(index, 0, &handle, &count);
    return handle;
}
static MPI_T_pvar_session another_session(void)
{
    MPI_T_pvar_session session;
    MPI_T_pvar_session_create(&session);
    return session;
}
static MPI_T_pvar_session fresh_MPI_T_pvar_session(void)
{
    static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    if (session == MPI_T_PVAR_SESSION_NULL) session = another_session();
    return session;
}
/* Returns a new handle of a counter in the common session. */
static MPI_T_pvar_handle fresh_MPI_T_pvar_handle(void)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int index, all, class, readonly, count;
    MPI_T_pvar_get_num(&all);
    for (index = 0; index < all; index++) {
        MPI_T_pvar_get_info(index, 0, 0, 0, &class, 0, 0, 0, 0, 0, &readonly, 0, 0);
        if (class != MPI_T_PVAR_CLASS_COUNTER || readonly) continue;
        MPI_T_pvar_handle_alloc(fresh_MPI_T_pvar_session(), index, 0, &handle, &count);
        break;
    }
    return handle;
}
/* Returns a handle of a counter that was started. */
static MPI_T_pvar_handle started(void)
{
    MPI_T_pvar_handle handle = fresh_MPI_T_pvar_handle();
    MPI_T_pvar_start(fresh_MPI_T_pvar_session(), handle);
    return handle;
}
static MPI_T_event_registration fresh_MPI_T_event_registration(void) { return 0; }
static MPI_T_event_instance fresh_MPI_T_event_instance(void) { return 0; }

enum { ACCEPTED, REFUSED };

static void announce(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
}
static void check(const char *what, int expected, int code)
{
    if ((code != 0) == expected) return;
    fprintf(stderr, "%s: %d\n", what, code);
    failures++;
}
#define CALL(what, expected, call) check(what, expected, (announce(what), call))

int main(void)
{
    int provided;
    MPI_Init(0, 0);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    keyval = fresh_keyval();
#include CALLS
    return failures != 0;
}
