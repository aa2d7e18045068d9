//! Requests that the program freed while they were active.
//!
//! ddtc does not pass such a call of `MPI_Request_free` on, because it must find out when the
//! received bytes can be unpacked. It tests the requests in later calls of the program ([`drain`]),
//! before a communicator is disconnected, and before the MPI library is finalized.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{FREED, Found, Operation, has_ended, live, me, table};
use crate::host::{HandleWord, Host};
use crate::status::Status;

/// Request that the program freed while it was active. The MPI library still has the request.
pub(super) struct Freed {
    handle: u64,
    operation: Box<Operation>,
    /// Thread ([`me`]) that calls the MPI library to find out whether the request is complete; 0 if
    /// no thread does so. If the program leaves that call by an exception or a jump, the number
    /// stays, and no thread makes such a call for the request again.
    asked_by: usize,
}

/// Records that the program has freed an active request. ddtc frees the request in the MPI library
/// only after the request has completed ([`drain`]), or before finalization ([`finish`]).
pub(crate) fn free(found: Found) {
    let Some(operation) = found.take() else { return };
    let mut table = table();
    let table = table.get_or_insert_default();
    table.freed.push(Freed { handle: found.handle, operation, asked_by: 0 });
    table.count();
}

/// Looks for requests that the program freed while they were active and that have completed since.
/// Unpacks the received bytes of these requests, and frees the requests in the MPI library. Returns
/// the number of freed requests that this call has found to be pending. Requests that another
/// thread is testing meanwhile are not counted. The MPI library may raise the error of a freed
/// request during this call, so the program's error handler may run.
#[inline]
pub(crate) fn drain(host: &'static Host) -> usize {
    if FREED.load(Ordering::Acquire) == 0 { 0 } else { drain_some(host) }
}

/// Searches `RequestTable::freed`, from index `from` on, for the first request about which no
/// thread calls the MPI library. Records that this thread does so from now on, and returns the
/// index, the handle and the serial number.
fn next_freed(from: usize) -> Option<(usize, u64, u64)> {
    let mut table = table();
    let freed = &mut table.as_mut()?.freed;
    let (at, next) = freed.iter_mut().enumerate().skip(from).find(|(_, freed)| freed.asked_by == 0)?;
    next.asked_by = me();
    Some((at, next.handle, next.operation.serial))
}

/// Records whether the freed request with this serial number is pending, according to the MPI
/// library. If the request is pending, another thread may call the MPI library about it again.
/// Otherwise the request is taken out of the table, and its operation is returned.
fn answered(serial: u64, is_pending: bool) -> Option<Box<Operation>> {
    let mut table = table();
    let table = table.as_mut()?;
    let at = table.freed.iter().position(|freed| freed.operation.serial == serial)?;
    if is_pending {
        table.freed[at].asked_by = 0;
        return None;
    }
    let freed = table.freed.swap_remove(at);
    table.count();
    Some(freed.operation)
}

/// Does the work of [`drain`] if there are freed requests.
#[cold]
fn drain_some(host: &'static Host) -> usize {
    let (Some(_), Some(test)) = (host.abi, host.f.test) else {
        // ddtc converts no calls of this MPI library, so the freed requests are those of another
        // MPI library in the process.
        return 0;
    };
    let mut own = Status::new();
    let at: *mut c_void = (&raw mut own).cast();
    let (mut pending, mut from) = (0, 0);
    while let Some((place, handle, serial)) = next_freed(from) {
        let (mut word, mut flag): (HandleWord, c_int) = (handle, 0);
        // SAFETY: the program has freed this request by `MPI_Request_free`, which ddtc did not pass
        // on, so the MPI library still has the request. `word` has room for a handle of any ABI,
        // `at` points to memory for a status of any ABI.
        let code = unsafe { test((&raw mut word).cast(), &raw mut flag, at) };
        let now = word & host.mask;
        let is_pending = code == 0 && flag == 0;
        let Some(operation) = answered(serial, is_pending) else {
            (pending, from) = (pending + 1, place + 1);
            continue;
        };
        from = place;
        if code == 0 {
            // If ddtc refuses the message, no call can return the error to the program, because the
            // program has given the request up.
            // SAFETY: `at` points to the status with which `test` has completed the request. The
            // program's buffer belongs to the operation until the operation has completed.
            let _ = unsafe { operation.unpack_completed(host, at) };
        // SAFETY: `now` is the handle as `test` has left it, so it is null or the handle of a
        // request that is not freed, and no other thread frees the request.
        } else if unsafe { has_ended(host, now, operation.persistent) } {
            // SAFETY: `test` has ended the operation with an error, so the MPI library no longer
            // writes to the staging buffer. The program's buffer belongs to the operation until
            // the operation has completed.
            unsafe { operation.staged.unpack_truncated() };
        } else {
            // The operation goes on after the error. Testing it again would raise the same error
            // again, and the program has given the request up, so no thread tests it any more. The
            // MPI library keeps the request: Open MPI 5.0.11 ends the job if the operation of a
            // freed request completes after such an error.
            operation.staged.retire();
            continue;
        }
        if now != host.request_null {
            // SAFETY: `test` has left the handle valid. The program has given the request up, and
            // `answered` has taken its operation out of the table, so nobody else uses the handle.
            unsafe { release(host, handle) };
        }
    }
    pending
}

/// Frees a request in the MPI library by its `MPI_Request_free`.
///
/// # Safety
/// The handle must be that of a request of the MPI library that is not freed, and nobody else may
/// use the handle any more.
unsafe fn release(host: &Host, handle: u64) {
    let mut handle: HandleWord = handle;
    if let Some(request_free) = host.f.request_free {
        // SAFETY: the caller promises the handle; a `HandleWord` has room for a handle of any ABI.
        unsafe { request_free((&raw mut handle).cast()) };
    }
}

/// Completes the requests of a communicator that the program freed while they were active. Called
/// before the program disconnects the communicator: the MPI library would wait for the requests,
/// which are complete for it only after [`drain`] has freed them.
///
/// Some requests are waited for during [`MAX_DRAIN_TIME`] at most. One of `MPI_Imrecv` may belong to
/// another communicator. One that another thread is testing may have been left by a jump. One that
/// this thread is testing was left by a jump, or its test has called this function, so it is not
/// waited for.
pub(crate) fn finish_freed(host: &'static Host, comm: u64) {
    let start = Instant::now();
    let is_left = || {
        let has_time = start.elapsed() < MAX_DRAIN_TIME;
        let is_due = |freed: &Freed| match (freed.operation.comm, freed.asked_by) {
            (of, 0) if of == comm => true,
            (of, asker) => has_time && [0, comm].contains(&of) && asker != me(),
        };
        table().as_ref().is_some_and(|table| table.freed.iter().any(is_due))
    };
    while is_left() {
        drain(host);
    }
}

/// Maximum time that finalization waits for requests that the program freed while they were active.
/// The wait is limited because their messages may never come. The MPI library's own finalization
/// may return all the same.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(2);

/// Completes the requests that the program freed while they were active. Called before the MPI
/// library is finalized. After [`MAX_DRAIN_TIME`] the requests that are still pending are left to
/// the MPI library.
pub(crate) fn finish(host: &'static Host) {
    if !live() {
        return;
    }
    let start = Instant::now();
    while drain(host) > 0 {
        if start.elapsed() > MAX_DRAIN_TIME {
            leave(host);
        }
    }
}

/// Frees the requests that have not completed in the MPI library, as the program wanted, and keeps
/// their operations. The MPI library still receives their messages, as far as it does so without
/// ddtc, and [`unpack_left`] unpacks them after the finalization. The receives are not cancelled,
/// because their senders would then wait for ever. Requests that another thread is testing are left
/// as they are.
#[cold]
fn leave(host: &'static Host) {
    while let Some((_, handle, serial)) = next_freed(0) {
        let Some(operation) = answered(serial, false) else { continue };
        table().get_or_insert_default().left.push(*operation);
        // SAFETY: the program has freed the request, and ddtc has not freed it in the MPI library,
        // so the handle is valid. `answered` has taken the request out of `RequestTable::freed`, so
        // nobody else uses the handle.
        unsafe { release(host, handle) };
    }
}

/// Unpacks the messages of requests that the program freed and that have come completely while the
/// MPI library was finalized. Called after that.
pub(crate) fn unpack_left() {
    let left = table().as_mut().map(|table| std::mem::take(&mut table.left));
    for operation in left.into_iter().flatten() {
        // SAFETY: the MPI library was finalized, so the operation has ended or may have failed. The
        // program's buffer belongs to the operation until the finalization returns, because the
        // program cannot find out earlier that the message has come.
        unsafe { operation.staged.unpack_truncated() };
        // A session whose opening ddtc has not seen may go on, and the operation may still use its
        // staging buffers. So the buffers are never freed.
        std::mem::forget(operation);
    }
}

/// Forgets the requests of all operations up to this serial number, as [`super::end_epoch`] does.
pub(super) fn forget(freed: &mut Vec<Freed>, last: u64) {
    std::mem::forget(freed.extract_if(.., |freed| freed.operation.serial <= last).collect::<Vec<_>>());
}
