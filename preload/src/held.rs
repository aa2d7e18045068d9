//! Converted calls while they are in the MPI library: the memory that each kind of call keeps in a
//! [`Record`], and what happens to it after the call has returned or was abandoned.

use std::ffi::{c_int, c_void};

use ddtc::process::Mutex;
use ddtc_hosts::abi::Abi;

use crate::calls::{Calls, Kept, Record};
use crate::completing::{Answer, Batch};
use crate::handles::{handle_at, set_handle};
use crate::host::Host;
use crate::requests::{self, Operation};
use crate::stack::here;
use crate::staged::Staged;
use crate::status::{Marked, Status};
use crate::windows::{self, Ending, Freeing};

/// What a call keeps while it is in the library.
enum Held {
    /// Staging buffers of a blocking call, and the status of what it receives.
    Blocking { staged: Staged, status: Option<MarkedStatus> },
    /// An operation that the call starts.
    Starting(Box<Operation>),
    /// Operations that the call completes.
    Completing(Batch),
    /// Operations on a window that the call completes.
    Epoch(Ending),
    /// Operations on a window that the call frees.
    Freeing(Freeing),
}

/// The status of a receive, which is marked while the call is in the library.
#[derive(Clone, Copy)]
struct MarkedStatus {
    marked: Marked,
    abi: &'static Abi,
    at: *mut c_void,
}

// SAFETY: the pointer is an argument of the call, and used by the thread that the call runs on.
unsafe impl Send for MarkedStatus {}

impl MarkedStatus {
    /// As [`Marked::written`].
    ///
    /// # Safety
    /// The call must be under way, or have returned just now.
    unsafe fn is_written(&self, host: &Host) -> bool {
        // SAFETY: the status that was marked, which lives as long as the call.
        unsafe { self.marked.written(host, self.abi, self.at) }
    }
}

impl Kept for Held {
    fn spare() -> &'static Mutex<Vec<&'static Record<Held>>> {
        static SPARE: Mutex<Vec<&Record<Held>>> = Mutex::new(Vec::new());
        &SPARE
    }

    fn abandoned(self) {
        match self {
            // The library may still use the buffers.
            Held::Blocking { staged, .. } => staged.retire(),
            Held::Starting(operation) => operation.staged.retire(),
            // The operations are in the table, where they are as pending as before.
            Held::Completing(batch) => drop(batch),
            Held::Epoch(ending) => ending.failed(),
            Held::Freeing(freeing) => freeing.failed(),
        }
    }
}

thread_local! {
    static CALLS: Calls<Held> = const { Calls::new() };
}

/// Keeps memory while `call` is in the MPI library. Returns the code of the call, the memory (none if
/// the call was believed to be abandoned), and whether it was unpacked for an error handler.
#[inline]
fn during(held: Held, call: impl FnOnce() -> c_int) -> (c_int, Option<Held>, bool) {
    let (place, mut held) = (here(), Some(held));
    let entered = CALLS.try_with(|calls| held.take().map(|held| calls.enter(place, held)));
    // Late in the end of a thread there is no list of its calls.
    let record = entered.ok().flatten().or_else(|| held.take().map(Record::alone));
    let code = call();
    let is_unpacked = record.is_some_and(Record::is_inspected);
    (code, record.and_then(leave), is_unpacked)
}

/// As [`Calls::leave`], also late in the end of a thread.
fn leave(record: &'static Record<Held>) -> Option<Held> {
    CALLS.try_with(|calls| calls.leave(record)).unwrap_or_else(|_| record.take())
}

/// Unpacks the received bytes of the innermost call and settles its completed operations, before an
/// error handler of the program runs in that call: the handler finds what it would find without ddtc.
pub(crate) fn before_a_handler() {
    let _ = CALLS.try_with(|calls| {
        calls.inspect_innermost(|held| match held {
            // SAFETY: the call is under way, so the program's buffers and its status belong to it.
            // The library may still write to a staging buffer, for other receives of a collective
            // call. What is copied from there meanwhile is as unfinished as it would be in the
            // program's buffer.
            Held::Blocking { staged, status } => unsafe {
                staged.unpack_truncated();
                // A status that the library has not written gets its old value back.
                status.iter().for_each(|status| _ = status.is_written(staged.host()));
            },
            // SAFETY: the call is under way.
            Held::Completing(batch) => unsafe { batch.settle_for_a_handler() },
            _ => {}
        });
    });
}

impl Staged {
    /// Runs a call that only sends, or writes to a file.
    #[inline]
    pub(crate) fn sending(self, call: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: nothing is unpacked after a success.
        unsafe { self.blocking(call, |_| ()) }
    }

    /// Runs a blocking collective call, and unpacks after its success all that was received.
    ///
    /// # Safety
    /// `call` must be that of the host with what was staged.
    #[inline]
    pub(crate) unsafe fn collective(self, call: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: as the caller promises; no message is received, so no status is read.
        unsafe { self.blocking(call, |staged| _ = staged.unpack(std::ptr::null_mut())) }
    }

    /// Runs a blocking call, and `unpack` after its success.
    ///
    /// # Safety
    /// `unpack` must only unpack what `call` has received.
    #[inline]
    unsafe fn blocking(self, call: impl FnOnce() -> c_int, unpack: impl FnOnce(&Staged)) -> c_int {
        if self.is_empty() {
            // There is nothing to drop.
            std::mem::forget(self);
            return call();
        }
        let (code, held, is_unpacked) = during(Held::Blocking { staged: self, status: None }, call);
        if let Some(Held::Blocking { staged, .. }) = held {
            match code {
                0 => unpack(&staged),
                // SAFETY: the call is over, and the program's buffers are its own until the wrapper
                // returns. Receives inside of a collective call that has failed may still write to
                // a staging buffer, as in `before_a_handler`.
                _ => unsafe { failed(staged, is_unpacked) },
            }
        }
        code
    }

    /// Runs a receive, or a read from a file, with a status that can be read, and unpacks after its success as much as that says.
    ///
    /// # Safety
    /// `status` must be null, the host's mark for none, or a status; `call` must be a receive into the staged buffer.
    #[inline]
    pub(crate) unsafe fn receiving(
        self,
        status: *mut c_void,
        call: impl FnOnce(*mut c_void) -> c_int,
    ) -> c_int {
        let (Some(abi), Some(mark)) = (self.host().abi, self.mark()) else {
            return self.sending(|| call(status));
        };
        if status.is_null() && abi.status_ignore != 0 {
            // An error, and the host's to raise.
            return self.sending(|| call(status));
        }
        let host = self.host();
        let mut own = Status::new();
        let status = own.unless(abi, status);
        // SAFETY: a status, the user's or ours.
        let marked = MarkedStatus { marked: unsafe { mark.set(host, abi, status) }, abi, at: status };
        let held = Held::Blocking { staged: self, status: Some(marked) };
        let (code, held, is_unpacked) = during(held, || call(status));
        let Some(Held::Blocking { staged, .. }) = held else { return code };
        // SAFETY: `status` is the one above. If the receive has succeeded, it is that of the receive.
        let refused = unsafe {
            // After an error handler has run, the status has its old value or the MPI library's.
            if !is_unpacked && marked.is_written(host) && code == 0 {
                let refused = staged.unpack(status);
                drop(staged);
                refused
            } else {
                // MPICH returns success after an error handler of the program has returned. Then
                // the status is not written.
                failed(staged, is_unpacked);
                None
            }
        };
        refused.map_or(code, |refused| refused.raise(host))
    }

    /// Runs a call that returns before its operation is complete and makes no request (`MPI_Put`).
    /// Returns the staging buffers, which must live until the operation is complete.
    pub(crate) fn putting(self, call: impl FnOnce() -> c_int) -> (c_int, Option<Staged>) {
        if self.is_empty() {
            return (self.sending(call), None);
        }
        match during(Held::Blocking { staged: self, status: None }, call) {
            (0, Some(Held::Blocking { staged, .. }), _) => (0, Some(staged)),
            (code, held, _) => {
                held.into_iter().for_each(Held::abandoned);
                (code, None)
            }
        }
    }
}

/// Handles the buffers of a blocking call that ended with an error: unpacks what came, unless that was
/// done for an error handler, and keeps them from further use.
///
/// # Safety
/// As [`Staged::unpack_truncated`], if that was not done for an error handler.
unsafe fn failed(staged: Staged, is_unpacked: bool) {
    if !is_unpacked {
        // SAFETY: as the caller promises.
        unsafe { staged.unpack_truncated() };
    }
    staged.retire();
}

/// Runs a call that makes a request for an operation, and keeps the operation, which `make` makes of what is staged, while it is not complete.
///
/// # Safety
/// `request` must be writable where anything is staged; `call` must start the operation.
pub(crate) unsafe fn start(
    host: &'static Host,
    request: *mut c_void,
    staged: Staged,
    make: impl FnOnce(Staged) -> Box<Operation>,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if staged.is_empty() {
        return staged.sending(call);
    }
    let operation = make(staged);
    let may_be_done = operation.may_be_done_at_once();
    // The code alone does not tell: after an error handler of the program that returns, MPICH returns success.
    // SAFETY: something is staged, so `request` is a place for a handle, as the caller promises.
    // The value, which may be anything, is only put back.
    let before = unsafe { handle_at(host, request) };
    // SAFETY: as above.
    unsafe { set_handle(host, request, host.request_null) };
    let (mut handle, mut is_done) = (host.request_null, false);
    let (code, held, _) = during(Held::Starting(operation), || {
        let code = call();
        // SAFETY: as above; the host made this request for the operation.
        unsafe {
            handle = handle_at(host, request) & host.mask;
            is_done =
                code == 0 && may_be_done && handle != host.request_null && requests::complete(host, handle);
        }
        code
    });
    if handle == host.request_null {
        // SAFETY: as above.
        unsafe { set_handle(host, request, before) };
    }
    let Some(Held::Starting(operation)) = held else { return code };
    if handle == host.request_null || code != 0 {
        // No request will say when the MPI library is done with the buffers. A handle that came
        // with an error is not believed: the library may have given its value back already, and a
        // later request may have it.
        operation.staged.retire();
        return code;
    }
    if is_done {
        // SAFETY: no message is received, so no status is read; the buffers are the operation's.
        let _ = unsafe { operation.staged.unpack(std::ptr::null_mut()) };
    } else {
        if let Some(fetched) = operation.staged.fetched() {
            windows::fetching(fetched);
        }
        requests::put(handle, operation);
    }
    code
}

/// Runs a call that completes operations or reports on them, and then `after` with its code. `answer`
/// is where the call reports how the operations have ended.
pub(crate) fn completing(
    mut batch: Batch,
    answer: Answer,
    call: impl FnOnce() -> c_int,
    after: impl FnOnce(Batch, c_int) -> c_int,
) -> c_int {
    batch.expect(answer);
    match during(Held::Completing(batch), call) {
        (code, Some(Held::Completing(batch)), _) => after(batch, code),
        (code, ..) => code,
    }
}

/// Runs a call that completes operations on a window.
///
/// # Safety
/// `call` must complete them if it succeeds.
pub(crate) unsafe fn epoch(host: &'static Host, ending: Ending, call: impl FnOnce() -> c_int) -> c_int {
    match during(Held::Epoch(ending), call) {
        (0, Some(Held::Epoch(ending)), _) => {
            // SAFETY: as the caller promises.
            unsafe { ending.succeeded(host) };
            0
        }
        (code, held, _) => {
            held.into_iter().for_each(Held::abandoned);
            code
        }
    }
}

/// Runs a call that frees a window.
pub(crate) fn freeing(freeing: Freeing, call: impl FnOnce() -> c_int) -> c_int {
    let (code, held, _) = during(Held::Freeing(freeing), call);
    if code != 0 {
        held.into_iter().for_each(Held::abandoned);
    }
    code
}
