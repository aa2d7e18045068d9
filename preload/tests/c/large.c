/* Tests large-count functions for one-sided operations under an MPI library that has only the
 * functions with int counts. For MPI_Put_c and MPI_Rget_c, prints how often a count that is too
 * large called the window's error handler and with which class, and the number of wrong bytes after
 * a count that is not too large. */
#include "layouts.h"

#include <dlfcn.h>
#include <stdio.h>

typedef int Put(const void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Win);
typedef int Get(void *, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Win, MPI_Request *);
enum { COUNT = 40 };
static int raised, class;

static void handler(MPI_Win *win, int *code, ...)
{
    (void)win;
    raised++;
    MPI_Error_class(*code, &class);
}

static long differ(const struct layout *l, const char *a, const char *b)
{
    long n = 0;
    for (long i = 0; i < COUNT * l->extent; i++) n += a[i] != b[i];
    return n;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    Put *put_c = (Put *)dlsym(RTLD_DEFAULT, "MPI_Put_c");
    Get *rget_c = (Get *)dlsym(RTLD_DEFAULT, "MPI_Rget_c");
    struct layout l = layout(5, 0);
    char *mine = buffer(&l, COUNT), *got = buffer(&l, COUNT), *memory;
    MPI_Errhandler counted;
    MPI_Win win;
    MPI_Request request;
    MPI_Win_allocate(COUNT * l.extent, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win);
    MPI_Win_create_errhandler(handler, &counted);
    MPI_Win_set_errhandler(win, counted);
    memset(memory, 0xa5, COUNT * l.extent);
    put(&l, mine, 0, COUNT, 1, 0, 0);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    put_c(mine, (MPI_Count)1 << 33, l.type, 0, 0, (MPI_Count)1 << 33, l.type, win);
    put_c(mine, COUNT, l.type, 0, 0, COUNT, l.type, win);
    MPI_Win_flush(0, win);
    printf("put: raised %d, class %d, wrong %ld\n", raised, class, differ(&l, memory, mine));
    raised = class = 0;
    rget_c(got, (MPI_Count)1 << 33, l.type, 0, 0, (MPI_Count)1 << 33, l.type, win, &request);
    rget_c(got, COUNT, l.type, 0, 0, COUNT, l.type, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("rget: raised %d, class %d, wrong %ld\n", raised, class, differ(&l, got, mine));
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    MPI_Errhandler_free(&counted);
    MPI_Type_free(&l.type);
    MPI_Finalize();
    return 0;
}
