/* The interface of the small MPI library in endings_library.c: functions of MPI in MPICH's ABI,
 * and functions that control how its next call ends. */
#include <stddef.h>

typedef int Handle;
typedef struct { int bytes, unused, source, tag, error; } Status;
typedef long long Offset;

enum { INT = 0x4c000405, BYTE = 0x4c00010d, PACKED = 0x4c00010f, WORLD = 0x44000000, SELF, NO_REQUEST = 0x2c000000 };
enum { IN_STATUS = 17, PENDING = 18, ANY_SOURCE = -2, UNDEFINED = -32766 };
#define IGNORED ((Status *)1)

/* How a call ends. WELL: without an error. ENDED: with an error, and its operation has ended.
 * ALIVE: with an error, and its operation goes on. */
enum { WELL, ENDED, ALIVE };

/* Decides how the next communication call ends, and with which error code. Of several requests, the
 * one with index `which` fails. If `in_status` is true, a call that completes all or some of
 * several requests returns IN_STATUS, and the code is in the status of the request. Otherwise, and
 * in all other calls, the call returns the code and writes no status. */
void next_ends(int how, int code, int which, int in_status);
/* Writes to every buffer into which the library still receives, and reads every buffer from
 * which it still sends. */
void touch_what_is_alive(void);
/* Does what touch_what_is_alive does, and then ends all operations without a request. */
void end_what_has_no_request(void);
/* If `on` is true, the library moves the blocks of an instance in reverse order from now on, so
 * that it moves bytes to other places than the type map says. */
void move_elsewhere(int on);

int MPI_Init(void *, void *);
int MPI_Finalize(void);
int MPI_Type_vector(int, int, int, Handle, Handle *);
int MPI_Type_commit(Handle *);
int MPI_Pack(const void *, int, Handle, void *, int, int *, Handle);
int MPI_Unpack(const void *, int, int *, void *, int, Handle, Handle);
int MPI_Send(const void *, int, Handle, int, int, Handle);
int MPI_Recv(void *, int, Handle, int, int, Handle, Status *);
int MPI_Sendrecv(const void *, int, Handle, int, int, void *, int, Handle, int, int, Handle, Status *);
int MPI_Sendrecv_replace(void *, int, Handle, int, int, int, int, Handle, Status *);
int MPI_Isend(const void *, int, Handle, int, int, Handle, Handle *);
int MPI_Irecv(void *, int, Handle, int, int, Handle, Handle *);
int MPI_Send_init(const void *, int, Handle, int, int, Handle, Handle *);
int MPI_Recv_init(void *, int, Handle, int, int, Handle, Handle *);
int MPI_Start(Handle *);
int MPI_Wait(Handle *, Status *);
int MPI_Test(Handle *, int *, Status *);
int MPI_Waitany(int, Handle *, int *, Status *);
int MPI_Testany(int, Handle *, int *, int *, Status *);
int MPI_Waitall(int, Handle *, Status *);
int MPI_Testall(int, Handle *, int *, Status *);
int MPI_Waitsome(int, Handle *, int *, int *, Status *);
int MPI_Testsome(int, Handle *, int *, int *, Status *);
int MPI_Request_free(Handle *);
int MPI_Bcast(void *, int, Handle, int, Handle);
int MPI_Alltoall(const void *, int, Handle, void *, int, Handle, Handle);
int MPI_File_open(Handle, const char *, int, Handle, void **);
int MPI_File_read_at(void *, Offset, void *, int, Handle, Status *);
int MPI_File_write_at(void *, Offset, const void *, int, Handle, Status *);
int MPI_Put(const void *, int, Handle, int, ptrdiff_t, int, Handle, Handle);
int MPI_Rget(void *, int, Handle, int, ptrdiff_t, int, Handle, Handle, Handle *);
int MPI_Win_fence(int, Handle);
