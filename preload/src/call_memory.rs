//! Memory that converted calls keep while they are in the MPI library, in one [`Record`] for each
//! call. A call takes its memory out of the record after the MPI library has returned. The memory
//! of an abandoned call (left by an exception, a jump or the end of its thread; see
//! [`crate::calls`]) is disposed of later.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use ddtc::internal::process::Mutex;
use ddtc_hosts::abi::Abi;

use crate::calls::{Calls, Kept, Record};
use crate::completing::{Answer, Batch};
use crate::handles::{handle_at, set_handle};
use crate::host::{HandleWord, Host};
use crate::requests::{self, Operation};
use crate::stack::here;
use crate::staged::Staged;
use crate::status::{Marked, Status};
use crate::windows::{self, Ending, Freeing};

/// Memory that a converted call keeps while the MPI library carries the call out.
enum CallMemory {
    /// Staging buffers of a blocking call or a put, and the status if the call receives a message
    /// or reads from a file.
    Blocking { staged: Staged, status: Option<MarkedStatus> },
    /// Operation for which the call makes a request.
    Starting(Box<Operation>),
    /// Operations that a call such as `MPI_Wait` or `MPI_Request_get_status` completes or reports
    /// on.
    Completing(Batch),
    /// One-sided operations that a call which synchronizes a window completes.
    Epoch(Ending),
    /// One-sided operations on the window that `MPI_Win_free` frees.
    Freeing(Freeing),
}

/// Status of a receive or of a read from a file. The status is marked, so that ddtc can find out
/// whether the MPI library has written it.
#[derive(Clone, Copy)]
struct MarkedStatus {
    marked: Marked,
    abi: &'static Abi,
    at: *mut c_void,
}

// SAFETY: `at` points to the status of a call. Only the thread that runs the call follows the
// pointer. If the call is abandoned, no thread follows it.
unsafe impl Send for MarkedStatus {}

impl MarkedStatus {
    /// Returns true if the MPI library has written the status. If not, restores the old contents of
    /// the status.
    ///
    /// # Safety
    /// The call must be under way, or its wrapper must not have returned yet.
    unsafe fn is_written(&self, host: &Host) -> bool {
        // SAFETY: `at` points to the status that was marked. The status is the program's argument
        // or in the wrapper's frame, so it exists until the wrapper returns.
        unsafe { self.marked.written(host, self.abi, self.at) }
    }
}

impl Kept for CallMemory {
    fn spare() -> &'static Mutex<Vec<&'static Record<CallMemory>>> {
        static SPARE: Mutex<Vec<&Record<CallMemory>>> = Mutex::new(Vec::new());
        &SPARE
    }

    fn abandoned(self) {
        match self {
            // The MPI library may still use the buffers, so ddtc never uses them for another call.
            CallMemory::Blocking { staged, .. } => staged.retire(),
            CallMemory::Starting(operation) => operation.staged.retire(),
            // The operations are still in the table of requests, and pending as before the call.
            // Dropping the batch lets calls of other threads find them again.
            CallMemory::Completing(batch) => drop(batch),
            CallMemory::Epoch(ending) => ending.failed(),
            CallMemory::Freeing(freeing) => freeing.failed(),
        }
    }
}

thread_local! {
    static CALLS: Calls<CallMemory> = const { Calls::new() };
    /// Number of the program's error handlers that have begun on this thread.
    static HANDLERS_BEGUN: Cell<u64> = const { Cell::new(0) };
}

/// Returns how often an error handler of the program was called on this thread. If the number
/// changes during an MPI call, the call had an error, even if it has returned `MPI_SUCCESS`.
pub(crate) fn handlers_begun() -> u64 {
    HANDLERS_BEGUN.try_with(Cell::get).unwrap_or(0)
}

/// Keeps memory in a record while `call` calls the MPI library. Returns three values: the return
/// value of `call`; the memory; and true if an error handler of the program has run during the
/// call, in which case the received bytes were unpacked before the handler ran. The memory is
/// `None` if the call was mistaken for an abandoned one ([`Calls::leave`]).
#[inline]
fn during(memory: CallMemory, call: impl FnOnce() -> c_int) -> (c_int, Option<CallMemory>, bool) {
    let (place, mut memory) = (here(), Some(memory));
    let entered = CALLS.try_with(|calls| memory.take().map(|memory| calls.enter(place, memory)));
    // If the thread is ending and its thread-local storage is already destroyed, the thread has no
    // list of its calls. Then the memory is kept in a record that is in no list.
    let record = entered.ok().flatten().or_else(|| memory.take().map(Record::alone));
    let code = call();
    let is_unpacked = record.is_some_and(Record::is_inspected);
    (code, record.and_then(leave), is_unpacked)
}

/// Takes the memory of a call out of its record ([`Calls::leave`]). This is possible even if the
/// thread-local storage of the thread is already destroyed.
fn leave(record: &'static Record<CallMemory>) -> Option<CallMemory> {
    CALLS.try_with(|calls| calls.leave(record)).unwrap_or_else(|_| record.take())
}

/// Unpacks the received bytes of the innermost converted call of this thread, and finishes the
/// operations that this call has completed ([`requests::finish_operation`]). Called before an error
/// handler of the program runs in that call, so that the handler finds the program's buffers and
/// statuses as it would find them without ddtc.
pub(crate) fn before_a_handler() {
    let _ = HANDLERS_BEGUN.try_with(|begun| begun.set(begun.get() + 1));
    let _ = CALLS.try_with(|calls| {
        calls.inspect_innermost(|memory| match memory {
            // SAFETY: the call is under way, so the program's buffers and its status belong to the
            // call. If the call is collective, receives of the call that have not ended may still
            // write to a staging buffer. Bytes that are copied from there meanwhile are as
            // unfinished as they would be in the program's buffer.
            CallMemory::Blocking { staged, status } => unsafe {
                staged.unpack_truncated();
                // `is_written` restores the old contents of a status that the MPI library has not
                // written.
                status.iter().for_each(|status| _ = status.is_written(staged.host()));
            },
            // SAFETY: `inspect_innermost` passes only the memory of a call that is under way.
            CallMemory::Completing(batch) => unsafe { batch.finish_for_handler() },
            _ => {}
        });
    });
}

impl Staged {
    /// Runs a blocking call that leaves nothing to unpack after a success, because the call only
    /// sends, only writes to a file, or is bypassed. Returns the return value of the call.
    #[inline]
    pub(crate) fn sending(self, call: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: the function that runs after a success unpacks nothing.
        unsafe { self.blocking(call, |_| ()) }
    }

    /// Runs a blocking collective call, and unpacks all received bytes after a success. Returns the
    /// return value of the call.
    ///
    /// # Safety
    /// `call` must call the MPI library with the staging buffers.
    #[inline]
    pub(crate) unsafe fn collective(self, call: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: the caller promises that `call` receives into the staging buffers. Collective
        // calls stage no receive of a message, so `unpack` reads no status.
        unsafe { self.blocking(call, |staged| _ = staged.unpack(std::ptr::null_mut())) }
    }

    /// Runs a blocking call, and runs `unpack` after a success. Returns the return value of the
    /// call.
    ///
    /// # Safety
    /// `unpack` must unpack only bytes that `call` has received.
    #[inline]
    unsafe fn blocking(self, call: impl FnOnce() -> c_int, unpack: impl FnOnce(&Staged)) -> c_int {
        if self.is_empty() {
            // Dropping an empty value would do nothing but cost time.
            std::mem::forget(self);
            return call();
        }
        let (code, memory, is_unpacked) = during(CallMemory::Blocking { staged: self, status: None }, call);
        if let Some(CallMemory::Blocking { staged, .. }) = memory {
            match code {
                0 => unpack(&staged),
                // SAFETY: the call has failed, and the program's buffers belong to the call until
                // the wrapper returns. If the call is collective, its other receives may still
                // write to a staging buffer; bytes that are copied meanwhile are as unfinished as
                // they would be in the program's buffer.
                _ => unsafe { failed(staged, is_unpacked) },
            }
        }
        code
    }

    /// Runs a receive, as [`Staged::reading`] does, and leaves `MPI_ERROR` of the status unchanged
    /// after a success.
    ///
    /// # Safety
    /// As for [`Staged::reading`].
    #[inline]
    pub(crate) unsafe fn receiving(
        self,
        status: *mut c_void,
        call: impl FnOnce(*mut c_void) -> c_int,
    ) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { self.with_status(status, true, call) }
    }

    /// Runs a read from a file, or `MPI_Sendrecv_replace`. In the status of these calls MPICH sets
    /// `MPI_ERROR` to 0 whatever the type is. Passes the program's status to `call`, or a status of
    /// ddtc if the program passes `MPI_STATUS_IGNORE`. After a success, unpacks as many bytes as
    /// the status reports. Returns the value that the wrapper returns to the program.
    ///
    /// # Safety
    /// `status` must be null, `MPI_STATUS_IGNORE`, or point to a status. `call` must receive into
    /// the staging buffer and write the status that is passed to it.
    #[inline]
    pub(crate) unsafe fn reading(
        self,
        status: *mut c_void,
        call: impl FnOnce(*mut c_void) -> c_int,
    ) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { self.with_status(status, false, call) }
    }

    /// Runs a call that writes a status. `keeps_error`: `MPI_ERROR` of the status is restored after
    /// a success.
    ///
    /// # Safety
    /// As for [`Staged::reading`].
    #[inline]
    unsafe fn with_status(
        self,
        status: *mut c_void,
        keeps_error: bool,
        call: impl FnOnce(*mut c_void) -> c_int,
    ) -> c_int {
        let (Some(abi), Some(mark)) = (self.host().abi, self.mark()) else {
            return self.sending(|| call(status));
        };
        if status.is_null() && abi.status_ignore != 0 {
            // A null pointer that does not mean `MPI_STATUS_IGNORE` is an error, which the MPI
            // library raises.
            return self.sending(|| call(status));
        }
        let host = self.host();
        let mut own = Status::new();
        let status = own.unless(abi, status);
        // SAFETY: `status` is not `MPI_STATUS_IGNORE` here, because `unless` has replaced that by
        // `own`, and not null. So it points to the program's status or to `own`.
        let marked = MarkedStatus { marked: unsafe { mark.set(host, abi, status) }, abi, at: status };
        let memory = CallMemory::Blocking { staged: self, status: Some(marked) };
        let (code, memory, is_unpacked) = during(memory, || call(status));
        let Some(CallMemory::Blocking { staged, .. }) = memory else { return code };
        // SAFETY: `status` is the status that was marked. The program's buffer belongs to the
        // receive until the wrapper returns. If the MPI library has written the status and returned
        // success, the receive has succeeded with this status.
        let refused = unsafe {
            // If an error handler has run, the mark is gone: the status has its old contents or
            // those that the MPI library has written. Then the receive counts as failed.
            if !is_unpacked && marked.is_written(host) && code == 0 {
                if keeps_error {
                    marked.marked.restore_error(abi, status);
                }
                let refused = staged.unpack(status);
                drop(staged);
                refused
            } else {
                // The receive has failed. The return value alone does not show a failure, because
                // MPICH returns success after an error handler of the program has returned. MPICH
                // has not written the status then.
                failed(staged, is_unpacked);
                None
            }
        };
        refused.map_or(code, |refused| refused.raise(host))
    }

    /// Runs a call that returns before its operation is complete and makes no request (`MPI_Put`).
    /// Returns the return value of the call and, after a success, the staging buffers, which must
    /// live until the operation is complete.
    pub(crate) fn putting(self, call: impl FnOnce() -> c_int) -> (c_int, Option<Staged>) {
        if self.is_empty() {
            return (self.sending(call), None);
        }
        match during(CallMemory::Blocking { staged: self, status: None }, call) {
            (0, Some(CallMemory::Blocking { staged, .. }), _) => (0, Some(staged)),
            (code, memory, _) => {
                memory.into_iter().for_each(CallMemory::abandoned);
                (code, None)
            }
        }
    }
}

/// Disposes of the staging buffers of a blocking call that has ended with an error. Unpacks the
/// received bytes, unless they were already unpacked for an error handler (`is_unpacked`). Then
/// takes the buffers out of use, because the MPI library may still use them.
///
/// # Safety
/// If `is_unpacked` is false, the caller must keep the contract of [`Staged::unpack_truncated`].
unsafe fn failed(staged: Staged, is_unpacked: bool) {
    if !is_unpacked {
        // SAFETY: the caller promises what `unpack_truncated` requires if `is_unpacked` is false.
        unsafe { staged.unpack_truncated() };
    }
    staged.retire();
}

/// Runs a call that makes a request: a nonblocking call, which starts an operation, or an `_init`
/// call, which makes a persistent operation. `make` makes the [`Operation`] from the staged
/// buffers. If ddtc must find out whether the operation is complete right after the call
/// ([`Operation::may_be_done_at_once`]), and it is, the received bytes are unpacked here. Otherwise
/// the operation is put into the table of requests. `comm` is the communicator of the operation, 0
/// if it is not known, or [`requests::NO_COMM`]. Returns the return value of the call.
///
/// # Safety
/// If anything is staged, `request` must point to writable memory for a handle. `call` must call
/// the MPI library for the operation, with the staging buffers, and write the handle to `request`.
pub(crate) unsafe fn start(
    host: &'static Host,
    (request, comm): (*mut c_void, HandleWord),
    staged: Staged,
    make: impl FnOnce(Staged) -> Box<Operation>,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if staged.is_empty() {
        return staged.sending(call);
    }
    let mut operation = make(staged);
    operation.comm = if comm == requests::NO_COMM { comm } else { comm & host.mask };
    let may_be_done = operation.may_be_done_at_once();
    // The program's handle is set to null before the call. If the handle is still null after the
    // call, the MPI library has made no request, and the handle gets its old value back. The return
    // value alone does not show that there is no request, because MPICH returns success after an
    // error handler of the program has returned.
    // SAFETY: something is staged, so `request` points to memory for a handle, as the caller
    // promises. The old value may be anything; it is not used as a handle.
    let before = unsafe { handle_at(host, request) };
    // SAFETY: `request` points to writable memory for a handle, as the caller promises.
    unsafe { set_handle(host, request, host.request_null) };
    let (mut handle, mut is_done) = (host.request_null, false);
    let (code, memory, _) = during(CallMemory::Starting(operation), || {
        let code = call();
        // SAFETY: `request` points to memory for a handle, as the caller promises. `complete` is
        // called only if the MPI library has returned success and a handle that is not null, so the
        // handle is that of the new request.
        unsafe {
            handle = handle_at(host, request) & host.mask;
            is_done =
                code == 0 && may_be_done && handle != host.request_null && requests::complete(host, handle);
        }
        code
    });
    if handle == host.request_null {
        // SAFETY: `request` points to writable memory for a handle, as the caller promises.
        unsafe { set_handle(host, request, before) };
    }
    let Some(CallMemory::Starting(operation)) = memory else { return code };
    if handle == host.request_null || code != 0 {
        // Without a request ddtc cannot find out when the MPI library has finished with the staging
        // buffers. If the call has returned a handle together with an error, the handle is not
        // used, because the MPI library may have freed the request already, and a later request may
        // get the same handle.
        operation.staged.retire();
        return code;
    }
    if is_done {
        // SAFETY: `may_be_done_at_once` is false for all operations that receive a message, so
        // `unpack` reads no status. The program's buffers belong to the operation until the program
        // completes the request.
        let _ = unsafe { operation.staged.unpack(std::ptr::null_mut()) };
    } else {
        if let Some(fetched) = operation.staged.fetched() {
            windows::fetching(fetched);
        }
        requests::put(handle, operation);
    }
    code
}

/// Runs a call that completes operations or reports on them. Then runs `after` with the operations
/// and the return value of the call; `after` returns the value for the program. `answer` is the
/// place where the call reports how the operations have ended. If the call was mistaken for an
/// abandoned one ([`Calls::leave`]), `after` does not run, and the return value of the call is
/// returned.
pub(crate) fn completing(
    mut batch: Batch,
    answer: Answer,
    call: impl FnOnce() -> c_int,
    after: impl FnOnce(Batch, c_int) -> c_int,
) -> c_int {
    batch.expect(answer);
    match during(CallMemory::Completing(batch), call) {
        (code, Some(CallMemory::Completing(batch)), _) => after(batch, code),
        (code, ..) => code,
    }
}

/// Runs a call that synchronizes a window and so completes the one-sided operations `ending`.
/// Returns the return value of the call.
///
/// # Safety
/// If `call` succeeds, it must have completed these operations.
pub(crate) unsafe fn epoch(host: &'static Host, ending: Ending, call: impl FnOnce() -> c_int) -> c_int {
    match during(CallMemory::Epoch(ending), call) {
        (0, Some(CallMemory::Epoch(ending)), _) => {
            // SAFETY: the call has succeeded, so the operations are complete, as the caller
            // promises.
            unsafe { ending.succeeded(host) };
            0
        }
        (code, memory, _) => {
            memory.into_iter().for_each(CallMemory::abandoned);
            code
        }
    }
}

/// Runs a call that frees a window. If the call fails, the one-sided operations `freeing` of the
/// window are kept. Returns the return value of the call.
pub(crate) fn freeing(freeing: Freeing, call: impl FnOnce() -> c_int) -> c_int {
    let (code, memory, _) = during(CallMemory::Freeing(freeing), call);
    if code != 0 {
        memory.into_iter().for_each(CallMemory::abandoned);
    }
    code
}
