//! The converted operations whose requests one call completes or reports on.
//!
//! The handle of a request shows whether its operation has ended, because the MPI library then
//! makes the handle null, or makes a persistent request inactive. The error code and the statuses
//! of the call show only how the operation has ended: with success and a status, or with an error.
//!
//! The program's error handler runs inside the call. The operations that have ended are finished
//! before the handler runs: their received bytes are unpacked, and ddtc no longer treats them as
//! pending. So the handler finds the received bytes where it would find them without ddtc. If the
//! handler leaves the call by an exception or a jump, all other operations stay pending.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use ddtc_hosts::abi::Abi;
use smallvec::SmallVec;

use crate::handles::{handle_at, set_handle};
use crate::host::Host;
use crate::partial_element::{RefusedMessage, raise_in_status};
use crate::requests::{self, Asks, Completion, Found, Operations, finish_operation, in_status};
use crate::status::{self, Status, Statuses};

/// Memory in which a completion call reports how its operations have ended.
pub(crate) enum Answer {
    /// The call completes no request, so it reports no end of an operation. If it reports on an
    /// array of requests (`MPI_Request_get_status_all` and similar calls), the value contains the
    /// statuses of the call.
    Nowhere(Option<Statuses>),
    /// The call completes at most one operation, and reports by its error code and one status.
    One,
    /// The call reports by one status for each of its requests.
    All(Statuses),
    /// The call reports by one status for each request that has completed. `count` and `indices`
    /// are outputs of the call: the number and the indices of these requests.
    Some { statuses: Statuses, count: *const c_int, indices: *const c_int },
}

/// Output integer of a call that changes no request, such as `flag` of `MPI_Request_get_status`.
/// The MPI library gets a pointer to an integer of ddtc, with a value that no call writes. If the
/// value is still there after the call, the MPI library has refused the call. The error code alone
/// does not show the refusal, because MPICH may return success after an error handler of the
/// program has returned. The program's own integer does not show the refusal either, because it may
/// have any value before the call.
pub(crate) struct Output {
    own: Cell<c_int>,
    user: *mut c_int,
}

impl Output {
    /// Value of ddtc's integer before the call. No call writes this value, because it is neither a
    /// flag nor a number of requests nor `MPI_UNDEFINED`.
    const UNWRITTEN: c_int = -0x0dd7_c000;

    pub(crate) fn new(user: *mut c_int) -> Output {
        Output { own: Cell::new(Output::UNWRITTEN), user }
    }

    /// Runs `call` with a pointer to ddtc's integer, or with null if the program has passed null.
    /// Copies the integer that the call has written to the program's integer. Returns the error
    /// code of the call.
    ///
    /// # Safety
    /// The program's pointer must be null or point to a number.
    pub(crate) unsafe fn written_by(&self, call: impl FnOnce(*mut c_int) -> c_int) -> c_int {
        let code = call(if self.user.is_null() { self.user } else { self.own.as_ptr() });
        if let Some(written) = self.get() {
            // SAFETY: the MPI library has written ddtc's integer, so the program's pointer is not
            // null. The caller promises that it then points to a number.
            unsafe { self.user.write(written) };
        }
        code
    }

    /// Returns the integer that the call has written, or `None` if the call has written nothing.
    pub(crate) fn get(&self) -> Option<c_int> {
        Some(self.own.get()).filter(|&own| own != Output::UNWRITTEN)
    }

    /// Writes an integer in place of the call's. Returns false, and writes nothing, if the program
    /// has passed null.
    ///
    /// # Safety
    /// The program's pointer must be null or point to a number.
    pub(crate) unsafe fn answer(&self, answer: c_int) -> bool {
        if self.user.is_null() {
            return false;
        }
        self.own.set(answer);
        // SAFETY: the pointer is not null, so it points to a number, as the caller promises.
        unsafe { self.user.write(answer) };
        true
    }

    /// Returns true if the call has written a flag that is not 0.
    pub(crate) fn is_set(&self) -> bool {
        self.get().is_some_and(|flag| flag != 0)
    }
}

/// Converted operations of one call that completes, frees or reports on their requests.
pub(crate) struct Batch {
    pub(crate) host: &'static Host,
    pub(crate) abi: &'static Abi,
    /// Number of requests of the call, converted or not.
    pub(crate) count: usize,
    /// The array of request handles, an argument of the call.
    handles: *const c_void,
    /// Converted operations of the call that are not finished yet.
    operations: Operations,
    /// For a call that reports on requests: the array of its handles, with the null handle in place
    /// of those whose operation a call of another thread holds. `None` if there are none of these.
    others: Option<Vec<u64>>,
    /// Number of the thread on which the call began ([`requests::me`]). 0 once the operations were
    /// released for an error handler, after which the thread may hold them in another call.
    asker: usize,
    answer: Answer,
    /// Errors of messages that ddtc refuses, each with the index of the message's request.
    refused: Vec<(usize, RefusedMessage)>,
}

// SAFETY: the pointers are arguments of the call. Only the thread that runs the call follows them:
// another thread may drop a `Batch` whose call was abandoned, but `drop` follows no pointer.
unsafe impl Send for Batch {}

impl Drop for Batch {
    /// Releases the operations that are not finished, because the call has ended or was abandoned,
    /// and these operations are as pending as before the call.
    fn drop(&mut self) {
        self.release();
    }
}

/// Result of a completion call for one operation, found from the error code, the outputs and the
/// statuses of the call.
pub(crate) enum Said {
    /// The call reports that the operation has succeeded with this status. The report may be wrong,
    /// because MPICH returns success after an error handler of the program has returned.
    Success(*mut c_void),
    /// The call reports that the operation has ended with an error.
    Error,
    /// The call reports that the operation is not complete.
    Pending,
    /// The call reports nothing about the operation, because the call has failed as a whole or
    /// because of another operation.
    Nothing,
}

impl Said {
    /// Returns true if ddtc may query the MPI library whether a persistent request is inactive.
    /// ddtc must not do so for a receive about which the call has reported nothing
    /// ([`Said::Nothing`]). That receive may have failed, and the query would raise its error
    /// before the program completes the request.
    fn asks(&self, found: &Found) -> bool {
        match self {
            Said::Success(_) | Said::Error => true,
            Said::Pending => false,
            Said::Nothing => !found.receives,
        }
    }

    /// Returns the result for the operation of a call on a single request, by the error code of the
    /// call.
    pub(crate) fn alone(code: c_int, status: *mut c_void) -> Said {
        if code == 0 { Said::Success(status) } else { Said::Error }
    }

    /// Returns the result for one operation of a call that completes at most one of several
    /// requests. `done` is true if the call has returned the index of this operation's request.
    pub(crate) fn any(code: c_int, done: bool, status: *mut c_void) -> Said {
        match (code, done) {
            (0, true) => Said::Success(status),
            (0, false) => Said::Pending,
            (_, true) => Said::Error,
            (_, false) => Said::Nothing,
        }
    }
}

/// Returns the result for an operation after a call that has failed. Reads it from the `MPI_ERROR`
/// of the status with index `place`. Returns [`Said::Nothing`] if the operation has no status
/// (`place` is `None`) or if the program gave no statuses.
///
/// # Safety
/// If `place` is an index, and `all` is neither null nor `MPI_STATUSES_IGNORE`, `all` must have a
/// status with this index.
unsafe fn by_status(abi: &Abi, all: &Statuses, place: Option<usize>) -> Said {
    let Some(place) = place.filter(|_| !all.at.is_null() && all.at.addr() != abi.status_ignore) else {
        return Said::Nothing;
    };
    let at = all.get(place);
    // SAFETY: the caller promises that `all` has this status. It was checked above that the address
    // of the statuses is neither null nor `MPI_STATUSES_IGNORE`.
    match unsafe { status::error(abi, at) } {
        0 => Said::Success(at),
        pending if pending == abi.err_pending => Said::Pending,
        _ => Said::Error,
    }
}

impl Batch {
    /// Returns the converted operations whose requests a call starts, completes, frees or reports
    /// on. Returns `None` if the call has none, and is therefore bypassed.
    ///
    /// # Safety
    /// `handles` must be null or point to `count` handles, which must stay there until the call
    /// returns.
    pub(crate) unsafe fn find(
        host: &'static Host,
        count: c_int,
        handles: *const c_void,
        asks: Asks,
    ) -> Option<Batch> {
        let abi = host.abi.filter(|_| requests::live() && !handles.is_null())?;
        requests::drain(host);
        let mut held = SmallVec::<[usize; 2]>::new();
        // SAFETY: the caller promises that `handles` points to `count` handles.
        let masked = unsafe { masked_handles(host, count, handles) };
        let operations = requests::find_all(masked, asks, |index| held.push(index));
        let count = usize::try_from(count).unwrap_or(0);
        let (answer, refused) = (Answer::Nowhere(None), Vec::new());
        if operations.is_empty() && held.is_empty() {
            return None;
        }
        // SAFETY: the caller promises that `handles` points to `count` handles.
        let others = (!held.is_empty()).then(|| unsafe { without(host, abi, count, handles, &held) });
        Some(Batch { host, abi, count, handles, operations, others, asker: requests::me(), answer, refused })
    }

    /// Returns the operations that are not finished.
    pub(crate) fn operations(&self) -> &[Found] {
        &self.operations
    }

    /// Returns true if the call reports on an operation that a call of another thread holds. The
    /// operation counts as not complete.
    pub(crate) fn is_held(&self) -> bool {
        self.others.is_some()
    }

    /// Returns the array of handles for the MPI library, without those of operations that a call of
    /// another thread holds. It may be used as long as the `Batch` lives.
    pub(crate) fn others(&self) -> *mut c_void {
        self.others.as_ref().map_or(self.handles, |others| others.as_ptr().cast()).cast_mut()
    }

    fn release(&mut self) {
        requests::release_all(&self.operations, std::mem::take(&mut self.asker));
    }

    /// Sets the memory in which the call will report how its operations have ended.
    pub(crate) fn expect(&mut self, answer: Answer) {
        self.answer = answer;
    }

    fn take_answer(&mut self) -> Answer {
        std::mem::replace(&mut self.answer, Answer::Nowhere(None))
    }

    /// Returns the status that the MPI library is to write in a call that completes at most one
    /// operation. This is the program's status `user`, or `own` if the program gave
    /// `MPI_STATUS_IGNORE` and any operation of the call is a receive, because ddtc reads the
    /// length of a receive from the status.
    pub(crate) fn status(&self, own: &mut Status, user: *mut c_void) -> *mut c_void {
        let needed = self.operations.iter().any(|found| found.receives);
        if needed { own.unless(self.abi, user) } else { user }
    }

    /// Returns the statuses that the MPI library is to write in a call on an array of requests.
    /// These are the program's, or statuses of ddtc if the program gave `MPI_STATUSES_IGNORE` and
    /// any operation of the call unpacks bytes, because only the statuses show which requests have
    /// failed.
    pub(crate) fn statuses(&self, user: *mut c_void) -> Statuses {
        let needed = self.operations.iter().any(|found| found.unpacks);
        Statuses::new(self.abi, user, self.count, needed)
    }

    /// Returns the value that a request's handle has now in the program's array.
    ///
    /// # Safety
    /// The array of handles that [`Batch::find`] was given must still be there.
    unsafe fn now(&self, found: &Found) -> u64 {
        let at = self.handles.wrapping_byte_add(found.index * self.abi.handle_bytes);
        // SAFETY: `found.index` is an index in the array of handles, which is still there as the
        // caller promises. The MPI library may have changed the handle, but not freed its memory.
        unsafe { handle_at(self.host, at) & self.host.mask }
    }

    /// Returns the state of an operation after the call. The handle of its request shows whether
    /// the operation has ended, and `said` shows how.
    ///
    /// # Safety
    /// The array of handles that [`Batch::find`] was given must still be there. A status in `said`
    /// must be one of the statuses of the call.
    unsafe fn end(&self, found: &Found, said: &Said) -> Completion {
        // SAFETY: the caller promises the array of handles. If the request is persistent, its
        // handle in the array is null or that of a request that is not freed, since the program may
        // not free the request during the call. For any other request the handle is only compared
        // with the null handle.
        let ended =
            unsafe { requests::has_ended(self.host, self.now(found), found.persistent && said.asks(found)) };
        // A success with an empty status shows that the persistent receive was already inactive
        // before this call, because an earlier call that failed as a whole has ended it without
        // reporting on it. The receive's own status is lost, so the reported success is not that of
        // the receive.
        let may_be_late = found.persistent && found.receives;
        // SAFETY: `at` is the status in `said`. The caller promises that it is a status of the
        // call.
        let late = |at| may_be_late && unsafe { status::is_empty(self.abi, at) };
        match *said {
            Said::Success(at) if ended && !late(at) => Completion::Done(at),
            _ if ended => Completion::Failed,
            _ => Completion::Pending,
        }
    }

    /// Finishes one operation by [`finish_operation`]. If ddtc refuses the message of the
    /// operation, keeps the error in `refused`.
    ///
    /// # Safety
    /// As [`finish_operation`].
    unsafe fn finish_operation(&mut self, found: Found, end: Completion) {
        // SAFETY: the caller promises all that `finish_operation` requires.
        let refused = unsafe { finish_operation(self.host, found, end) };
        self.refused.extend(refused.map(|refused| (found.index, refused)));
    }

    /// Finishes every operation that has ended, with the result that `said` returns for the
    /// operation. Releases the operations that have not ended.
    ///
    /// # Safety
    /// As [`Batch::end`]. If `said` reports a success, its status must be that of the operation.
    /// The program's buffers must still belong to the operations.
    unsafe fn finish_ended(&mut self, mut said: impl FnMut(&Found) -> Said) {
        let mut pending = Operations::new();
        for found in std::mem::take(&mut self.operations) {
            // SAFETY: the caller promises statuses and buffers. `Batch::end` returns
            // `Completion::Failed` only if the handle shows that the operation has ended.
            unsafe {
                match self.end(&found, &said(&found)) {
                    Completion::Pending => pending.push(found),
                    end => self.finish_operation(found, end),
                }
            }
        }
        requests::release_all(&pending, self.asker);
    }

    /// Finishes the operations of a call that completes at most one request. `code` is the error
    /// code that the MPI library has returned. Returns the error code for the program.
    ///
    /// # Safety
    /// As [`Batch::finish_ended`].
    pub(crate) unsafe fn finish_one(mut self, code: c_int, said: impl FnMut(&Found) -> Said) -> c_int {
        // SAFETY: the caller promises all that `Batch::finish_ended` requires.
        unsafe { self.finish_ended(said) };
        self.raise_one(code)
    }

    /// Returns the error code for the program, for a call that completes or reports on at most one
    /// request. If ddtc has refused the message of that request, raises the error of the message
    /// and returns it. Otherwise returns `code`.
    fn raise_one(self, code: c_int) -> c_int {
        let (host, refused) = (self.host, self.refused.first().map(|&(_, refused)| refused));
        // An error handler of the program may leave this call by a jump, which skips destructors.
        // So every value with memory is dropped before the error is raised.
        drop(self);
        refused.map_or(code, |refused| refused.raise(host))
    }

    /// Unpacks the messages of requests that the call reports as complete but does not complete,
    /// because the program may read the received bytes after such a report. `status` is called with
    /// the index of a request, and returns the request's status if the call reports it as complete,
    /// otherwise `None`.
    ///
    /// # Safety
    /// `status` must return only statuses with which the call has reported that request as
    /// complete, and the program's buffers must still belong to the operations.
    unsafe fn unpack_reported(&mut self, mut status: impl FnMut(usize) -> Option<*mut c_void>) {
        let mut pending = Operations::new();
        for found in std::mem::take(&mut self.operations) {
            match status(found.index) {
                None => pending.push(found),
                // SAFETY: the caller promises status and buffer.
                Some(status) => unsafe { self.finish_operation(found, Completion::Seen(status)) },
            }
        }
        requests::release_all(&pending, self.asker);
    }

    /// Unpacks the messages of a call that reports whether all its requests are complete. `done` is
    /// true if all of them are complete. Returns the error code for the program.
    ///
    /// # Safety
    /// The statuses of [`Answer::Nowhere`] must be those that the call has written, and the
    /// program's buffers must still belong to the operations.
    pub(crate) unsafe fn unpack_all_reported(mut self, code: c_int, done: bool) -> c_int {
        let Answer::Nowhere(Some(all)) = self.take_answer() else { return code };
        // SAFETY: the caller promises statuses and buffers. If `done`, every request is complete,
        // and its status is that with its own index.
        unsafe {
            self.unpack_reported(|i| done.then_some(all.get(i)));
            self.raise_all(all, code)
        }
    }

    /// Unpacks the messages of a call that reports which requests are complete: those whose indices
    /// are the first `count` of `indices`. Returns the error code for the program.
    ///
    /// # Safety
    /// The statuses of [`Answer::Nowhere`] must be those that the call has written, `indices` must
    /// be as in [`Places::new`], and the program's buffers must still belong to the operations.
    pub(crate) unsafe fn unpack_some_reported(
        mut self,
        code: c_int,
        count: c_int,
        indices: *const c_int,
    ) -> c_int {
        let Answer::Nowhere(Some(all)) = self.take_answer() else { return code };
        // SAFETY: the caller promises statuses, indices and buffers.
        unsafe {
            let places = Places::new(&raw const count, indices, self.count);
            self.unpack_reported(|i| places.status_index(i).map(|k| all.get(k)));
            self.raise_some(all, code, &places)
        }
    }

    /// Unpacks the message of a call that reports at most one request as complete. `status` returns
    /// the status of that request if it is called with the index of the request, and `None` for any
    /// other index. `code` is the error code of the call. Returns the error code for the program.
    ///
    /// # Safety
    /// As [`Batch::unpack_reported`].
    pub(crate) unsafe fn unpack_one_reported(
        mut self,
        code: c_int,
        status: impl FnMut(usize) -> Option<*mut c_void>,
    ) -> c_int {
        // SAFETY: the caller promises all that `Batch::unpack_reported` requires.
        unsafe { self.unpack_reported(status) };
        self.raise_one(code)
    }

    /// Finishes the operations of a call that completes either all its requests (`done` is true) or
    /// none of them. If the call has failed with `MPI_ERR_IN_STATUS`, the statuses show which
    /// requests have failed. Returns the error code for the program.
    ///
    /// # Safety
    /// The statuses of [`Answer::All`] must be those of the call, the array of handles must still
    /// be there, and the program's buffers must still belong to the operations.
    pub(crate) unsafe fn finish_all(mut self, code: c_int, done: bool) -> c_int {
        let Answer::All(all) = self.take_answer() else { return code };
        let abi = self.abi;
        let in_status = in_status(self.host, code);
        // SAFETY: the caller promises statuses, handles and buffers. The status of each request is
        // that with its own index.
        unsafe {
            self.finish_ended(|found| match code {
                0 if done => Said::Success(all.get(found.index)),
                0 => Said::Pending,
                _ if in_status && (found.persistent || found.unpacks) => {
                    by_status(abi, &all, Some(found.index))
                }
                _ => Said::Nothing,
            });
            self.raise_all(all, code)
        }
    }

    /// Returns the error code for the program, for a call in which every request has a status.
    /// Before that, writes the errors of refused messages to these statuses and raises them
    /// ([`Batch::with_refused`]).
    ///
    /// # Safety
    /// As [`Batch::with_refused`].
    unsafe fn raise_all(mut self, all: Statuses, code: c_int) -> c_int {
        let (count, refused) = (self.count, std::mem::take(&mut self.refused));
        // SAFETY: the caller promises the statuses. There is one for each of `count` requests, and
        // a refused message has the index of its request.
        unsafe { self.with_refused(all, code, count, refused) }
    }

    /// Finishes the operations of a call that returns the indices of the requests that it has
    /// completed. Returns the error code for the program.
    ///
    /// # Safety
    /// The statuses, the count and the indices of [`Answer::Some`] must be those of the call, the
    /// array of handles must still be there, and the program's buffers must still belong to the
    /// operations.
    pub(crate) unsafe fn finish_some(mut self, code: c_int) -> c_int {
        let answer = self.take_answer();
        let Answer::Some { statuses: all, count, indices } = answer else { return code };
        let abi = self.abi;
        let in_status = in_status(self.host, code);
        // SAFETY: the caller promises statuses, count, indices, handles and buffers.
        unsafe {
            let max_count = if code == 0 || in_status { self.count } else { 0 };
            let places = Places::new(count, indices, max_count);
            self.finish_ended(|found| match (places.status_index(found.index), code) {
                (Some(k), 0) => Said::Success(all.get(k)),
                (None, 0) => Said::Pending,
                (place, _) => by_status(abi, &all, place),
            });
            self.raise_some(all, code, &places)
        }
    }

    /// Returns the error code for the program, for a call in which only the requests at `places`
    /// have statuses. Before that, writes the errors of refused messages to these statuses and
    /// raises them ([`Batch::with_refused`]).
    ///
    /// # Safety
    /// As [`Batch::with_refused`].
    unsafe fn raise_some(mut self, all: Statuses, code: c_int, places: &Places) -> c_int {
        let refused = std::mem::take(&mut self.refused);
        let refused = refused.into_iter().filter_map(|(i, r)| Some((places.status_index(i)?, r))).collect();
        // SAFETY: the caller promises the statuses. There are `places.count` of them, and the index
        // of each refused message was mapped to that of its status.
        unsafe { self.with_refused(all, code, places.count, refused) }
    }

    /// Returns the error code for the program, for a call on several requests. Before that, writes
    /// the errors of the messages that ddtc has refused to the statuses, and raises an error.
    /// `refused` contains the errors of these messages, each with the index of the message's
    /// status. If `code` is 0, the MPI library has reported all `count` requests of the statuses as
    /// complete and need not have written `MPI_ERROR`, so ddtc writes `MPI_ERROR` in all of them.
    /// Otherwise the MPI library has raised an error of its own and written every `MPI_ERROR`, and
    /// ddtc raises no other error.
    ///
    /// # Safety
    /// `all` must have `count` statuses, which the call has written. If `refused` is not empty,
    /// they must lie in memory of the program or of ddtc.
    unsafe fn with_refused(
        self,
        all: Statuses,
        code: c_int,
        count: usize,
        refused: Vec<(usize, RefusedMessage)>,
    ) -> c_int {
        if refused.is_empty() {
            return code;
        }
        let (host, abi) = (self.host, self.abi);
        // SAFETY: the caller promises `count` statuses. They are not `MPI_STATUSES_IGNORE`: only
        // operations that unpack are refused, and for these `Batch::statuses` replaces that value
        // by statuses of our own.
        unsafe {
            if code == 0 {
                (0..count).for_each(|i| status::set_error(abi, all.get(i), 0));
            }
            refused.iter().for_each(|(i, r)| status::set_error(abi, all.get(*i), r.class));
        }
        // An error handler of the program may leave this call by a jump, which skips destructors.
        // So every value with memory is dropped before the error is raised.
        drop((self, all, refused));
        if code == 0 { raise_in_status(host, abi) } else { code }
    }

    /// Finishes the operations that have ended, before an error handler of the program runs inside
    /// the call. The error code that the handler gets is not used, because it may be the code of
    /// one operation although the call will return `MPI_ERR_IN_STATUS`. So only the handles and the
    /// statuses show which operations have ended and how.
    ///
    /// # Safety
    /// The call must be under way on this thread.
    pub(crate) unsafe fn finish_for_handler(&mut self) {
        if let Answer::Nowhere(_) = self.answer {
            return self.release();
        }
        for found in std::mem::take(&mut self.operations) {
            // SAFETY: handles, statuses, count and indices are arguments of the call, so their
            // memory is there while the call is under way. No more than `self.count` statuses and
            // indices are read. If the MPI library has made a handle null, it has also written the
            // outputs for that request. For a persistent request, whose handle stays, statuses and
            // indices may still have values from before the call.
            let end = unsafe {
                let is_null = self.now(&found) == self.host.request_null;
                let said = match &self.answer {
                    _ if !is_null && !found.persistent => Said::Pending,
                    Answer::One if is_null || self.count == 1 => Said::Error,
                    Answer::Nowhere(_) | Answer::One => Said::Pending,
                    Answer::All(all) => by_status(self.abi, all, Some(found.index)),
                    Answer::Some { statuses, count, indices } => {
                        let places = Places::new(*count, *indices, self.count);
                        by_status(self.abi, statuses, places.status_index(found.index))
                    }
                };
                self.end(&found, &said)
            };
            match end {
                // The operation is pending. The call may still complete it after the handler has
                // returned.
                Completion::Pending => self.operations.push(found),
                // SAFETY: `Batch::end` has found that the operation has ended. The program's
                // buffers belong to the call that is under way. The status is that of the
                // operation. The status of a persistent request may have old values, but the number
                // of bytes in it is limited to the length of the staging buffer before anything is
                // unpacked.
                end => unsafe { self.finish_operation(found, end) },
            }
        }
        // The handler may leave the call. Then other calls complete the pending operations.
        self.release();
    }
}

/// Map from the index of a request to the index of its status, for a call that returns the indices
/// of the requests that have completed.
pub(crate) struct Places {
    by_index: std::collections::HashMap<usize, usize>,
    count: usize,
}

impl Places {
    /// Returns the map for the first `count` of `indices`: the request with index `indices[k]` has
    /// the status with index `k`. The map is empty if `count` is negative (`MPI_UNDEFINED`) or
    /// larger than `max_count`, or if a pointer is null. The MPI library refuses a call with a null
    /// pointer and does not write the outputs of a refused call. Nevertheless MPICH may return
    /// success for a refused call, after an error handler of the program has returned.
    ///
    /// # Safety
    /// `count` must be null or point to a number, and `indices` must be null or point to
    /// `max_count` numbers.
    unsafe fn new(count: *const c_int, indices: *const c_int, max_count: usize) -> Places {
        // SAFETY: the caller promises that `count` is null or points to a number.
        let count = unsafe { count.as_ref() }.filter(|_| !indices.is_null());
        let count = count.and_then(|&count| usize::try_from(count).ok().filter(|&n| n <= max_count));
        let count = count.unwrap_or(0);
        // SAFETY: `k` is less than `count`, which is at most `max_count`. `indices` is not null
        // here unless `count` is 0. The caller promises that `indices` points to `max_count`
        // numbers.
        let by_index = (0..count).map(|k| (unsafe { *indices.add(k) } as usize, k)).collect();
        Places { by_index, count }
    }

    /// Returns the index of the status of the request with the index `index`.
    pub(crate) fn status_index(&self, index: usize) -> Option<usize> {
        self.by_index.get(&index).copied()
    }
}

/// Returns a copy of an array of handles, with the null handle at each index in `held`.
///
/// # Safety
/// `handles` must point to `count` handles, and each index in `held` must be less than `count`.
unsafe fn without(host: &Host, abi: &Abi, count: usize, handles: *const c_void, held: &[usize]) -> Vec<u64> {
    let bytes = count * abi.handle_bytes;
    let mut copy = vec![0u64; bytes.div_ceil(size_of::<u64>())];
    let start: *mut c_void = copy.as_mut_ptr().cast();
    // SAFETY: `handles` points to `bytes` bytes, as the caller promises, and `copy` has at least as
    // many. Each index is less than `count`, so its handle lies within them.
    unsafe {
        start.cast::<u8>().copy_from_nonoverlapping(handles.cast(), bytes);
        held.iter().for_each(|i| set_handle(host, start.byte_add(i * abi.handle_bytes), host.request_null));
    }
    copy
}

/// Returns an iterator over the `count` request handles at `handles`.
///
/// # Safety
/// `handles` must be null or point to `count` handles as long as the iterator is used.
pub(crate) unsafe fn masked_handles(
    host: &Host,
    count: c_int,
    handles: *const c_void,
) -> impl Iterator<Item = u64> + Clone {
    let bytes = host.abi.map_or(0, |a| a.handle_bytes);
    let count = if handles.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    // SAFETY: the caller promises `count` handles of `bytes` bytes each, and `i` is less than
    // `count`. If `handles` is null, `count` is 0 here, and nothing is read.
    (0..count).map(move |i| unsafe { handle_at(host, handles.byte_add(i * bytes)) } & host.mask)
}
