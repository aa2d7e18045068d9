//! The converted operations of one call that completes requests, or tells about them.
//!
//! The handle of a request says whether its operation has ended: the MPI library makes it null, or a
//! persistent request inactive. What the call says of the operation, by its code and the status,
//! decides only how the operation has ended.
//!
//! The program's error handler runs inside the call. It finds received bytes where it would find
//! them without this library, and if it leaves the call by an exception or a jump, what has ended is
//! settled and all other operations are pending as before.

use std::ffi::{c_int, c_void};

use ddtc_hosts::abi::Abi;

use crate::handles::handle_at;
use crate::host::Host;
use crate::partial_element::{RefusedMessage, raise_in_status};
use crate::requests::{self, Asks, Completion, Found, Operations, in_status, settle};
use crate::status::{self, Status, Statuses};

/// Where a call reports how operations have ended.
pub(crate) enum Answer {
    /// The call completes no request. These are its statuses, if it reports on an array of requests.
    Nowhere(Option<Statuses>),
    /// In its code and one status: the call completes one operation.
    One,
    /// In a status for each request.
    All(Statuses),
    /// In a status for each request that has completed: how many, and which.
    Some { statuses: Statuses, count: *const c_int, indices: *const c_int },
}

/// Converted operations of one call.
pub(crate) struct Batch {
    pub(crate) host: &'static Host,
    pub(crate) abi: &'static Abi,
    /// Requests of the call, converted or not.
    pub(crate) count: usize,
    handles: *const c_void,
    operations: Operations,
    /// The thread that the call began on, if it completes or frees requests; else 0.
    asker: usize,
    answer: Answer,
    /// Messages that were refused before the call has returned, by the index of their request.
    refused: Vec<(usize, RefusedMessage)>,
}

// SAFETY: the pointers are arguments of the call, and used by the thread that the call runs on.
unsafe impl Send for Batch {}

impl Drop for Batch {
    /// The call has ended or was abandoned: operations that are not settled are as pending as before.
    fn drop(&mut self) {
        requests::release_all(&self.operations, self.asker);
    }
}

/// Answer of a completion call about an operation, by its code, its outputs and its statuses.
pub(crate) enum Said {
    /// A success, with this status. It may be false: MPICH returns success after an error handler
    /// of the program that returns.
    Success(*mut c_void),
    /// An error of this operation.
    Error,
    /// The operation goes on.
    Pending,
    /// Nothing: the call has failed as a whole, or about another operation.
    Nothing,
}

impl Said {
    /// Returns true if the MPI library is to be asked whether a persistent request is inactive. A
    /// receive of which nothing was said may have failed, and the question would raise its error
    /// before the program asks for it.
    fn asks(&self, found: &Found) -> bool {
        match self {
            Said::Success(_) | Said::Error => true,
            Said::Pending => false,
            Said::Nothing => !found.receives,
        }
    }

    /// Returns what a call about one request alone says, by its code.
    pub(crate) fn alone(code: c_int, status: *mut c_void) -> Said {
        if code == 0 { Said::Success(status) } else { Said::Error }
    }

    /// Returns what a call says that completes the operation with index `done`, of that with index
    /// `i`.
    pub(crate) fn any(code: c_int, done: bool, status: *mut c_void) -> Said {
        match (code, done) {
            (0, true) => Said::Success(status),
            (0, false) => Said::Pending,
            (_, true) => Said::Error,
            (_, false) => Said::Nothing,
        }
    }
}

/// Returns what the status with index `place` says of an operation after an error: nothing if the
/// operation has no status or the program wants none.
///
/// # Safety
/// The statuses must be those of a call that has written them.
unsafe fn by_status(abi: &Abi, all: &Statuses, place: Option<usize>) -> Said {
    let Some(place) = place.filter(|_| !all.at.is_null() && all.at.addr() != abi.status_ignore) else {
        return Said::Nothing;
    };
    let at = all.get(place);
    // SAFETY: as the caller promises.
    match unsafe { status::error(abi, at) } {
        0 => Said::Success(at),
        pending if pending == abi.err_pending => Said::Pending,
        _ => Said::Error,
    }
}

impl Batch {
    /// Finds the operations of a call; `None`: the call is the host's.
    ///
    /// # Safety
    /// `handles` must be null or that many handles, which stay where they are until the call returns.
    pub(crate) unsafe fn find(
        host: &'static Host,
        count: c_int,
        handles: *const c_void,
        asks: Asks,
    ) -> Option<Batch> {
        let abi = host.abi.filter(|_| requests::live() && !handles.is_null())?;
        requests::drain(host);
        // SAFETY: as the caller promises.
        let operations = unsafe { requests::find_all(each(host, count, handles), asks) };
        let count = usize::try_from(count).unwrap_or(0);
        let (answer, refused) = (Answer::Nowhere(None), Vec::new());
        let asker = if asks == Asks::Nothing { 0 } else { requests::me() };
        if operations.is_empty() {
            return None;
        }
        Some(Batch { host, abi, count, handles, operations, asker, answer, refused })
    }

    /// Sets where the call reports how its operations have ended.
    pub(crate) fn expect(&mut self, answer: Answer) {
        self.answer = answer;
    }

    fn take_answer(&mut self) -> Answer {
        std::mem::replace(&mut self.answer, Answer::Nowhere(None))
    }

    /// Returns the status for a call that completes one operation: the program's, or `own` where the
    /// program wants none and a receive is to be unpacked.
    pub(crate) fn status(&self, own: &mut Status, user: *mut c_void) -> *mut c_void {
        let needed = self.operations.iter().any(|found| found.receives);
        if needed { own.unless(self.abi, user) } else { user }
    }

    /// Returns the first operation.
    pub(crate) fn first(&self) -> Option<Found> {
        self.operations.first().copied()
    }

    /// Returns the statuses for a call on an array of requests. Only they say which requests have
    /// failed.
    pub(crate) fn statuses(&self, user: *mut c_void) -> Statuses {
        let needed = self.operations.iter().any(|found| found.unpacks);
        Statuses::new(self.abi, user, self.count, needed)
    }

    /// Returns the handle that a request has now.
    ///
    /// # Safety
    /// As [`Batch::find`].
    unsafe fn now(&self, found: &Found) -> u64 {
        let at = self.handles.wrapping_byte_add(found.index * self.abi.handle_bytes);
        // SAFETY: the program's handle, which the host has updated.
        unsafe { handle_at(self.host, at) & self.host.mask }
    }

    /// Returns how an operation has ended, by what the call says of it.
    ///
    /// # Safety
    /// As [`Batch::find`], and a status in `said` must be one of the call's.
    unsafe fn end(&self, found: &Found, said: &Said) -> Completion {
        // SAFETY: as the caller promises. A persistent request lives, since the program may not
        // free it during the call.
        let ended = unsafe {
            self.now(found) == self.host.request_null
                || found.persistent && said.asks(found) && requests::inactive(self.host, found.handle)
        };
        // An empty status means that the persistent receive was inactive before: an earlier call
        // that failed as a whole has ended it.
        let may_be_late = found.persistent && found.receives;
        // SAFETY: the status of a receive that the call has completed.
        let late = |at| may_be_late && unsafe { status::is_empty(self.abi, at) };
        match *said {
            Said::Success(at) if ended && !late(at) => Completion::Done(at),
            _ if ended => Completion::Failed,
            _ => Completion::Pending,
        }
    }

    /// Settles an operation.
    ///
    /// # Safety
    /// As [`settle`].
    unsafe fn settle_as(&mut self, found: Found, end: Completion) {
        // SAFETY: as the caller promises.
        let refused = unsafe { settle(self.host, found, end) };
        self.refused.extend(refused.map(|refused| (found.index, refused)));
    }

    /// Settles every operation.
    ///
    /// # Safety
    /// As [`Batch::end`]; a status with which `said` reports a success must be that of the
    /// operation.
    unsafe fn settle(&mut self, mut said: impl FnMut(&Found) -> Said) {
        let mut pending = Operations::new();
        for found in std::mem::take(&mut self.operations) {
            // SAFETY: as the caller promises; `end` says that an operation has failed only if its
            // request has ended.
            unsafe {
                match self.end(&found, &said(&found)) {
                    Completion::Pending => pending.push(found),
                    end => self.settle_as(found, end),
                }
            }
        }
        requests::release_all(&pending, self.asker);
    }

    /// Settles a call that completes one request, with its code.
    ///
    /// # Safety
    /// As [`settle`].
    pub(crate) unsafe fn settle_one(mut self, code: c_int, said: impl FnMut(&Found) -> Said) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { self.settle(said) };
        self.raise_one(code)
    }

    /// Returns the code of a call on one request, whose message ddtc may have refused.
    fn raise_one(self, code: c_int) -> c_int {
        let (host, refused) = (self.host, self.refused.first().map(|&(_, refused)| refused));
        // An error handler of the program may leave this call.
        drop(self);
        refused.map_or(code, |refused| refused.raise(host))
    }

    /// Notes that the program was told which requests have completed, without completing them: it
    /// may read what was received.
    ///
    /// # Safety
    /// As [`settle`].
    unsafe fn note(&mut self, mut status: impl FnMut(usize) -> Option<*mut c_void>) {
        let mut pending = Operations::new();
        for found in std::mem::take(&mut self.operations) {
            match status(found.index) {
                None => pending.push(found),
                // SAFETY: as the caller promises.
                Some(status) => unsafe { self.settle_as(found, Completion::Seen(status)) },
            }
        }
        requests::release_all(&pending, self.asker);
    }

    /// Notes a call that tells whether all are complete.
    ///
    /// # Safety
    /// As [`settle`]; the statuses must be those of the call.
    pub(crate) unsafe fn note_all(mut self, code: c_int, done: bool) -> c_int {
        let Answer::Nowhere(Some(all)) = self.take_answer() else { return code };
        // SAFETY: as the caller promises.
        unsafe {
            self.note(|i| done.then_some(all.get(i)));
            self.raise_all(all, code)
        }
    }

    /// Notes a call that tells which are complete.
    ///
    /// # Safety
    /// As [`settle`]; the statuses must be those of the call, and `indices` must be `count` numbers.
    pub(crate) unsafe fn note_some(mut self, code: c_int, count: c_int, indices: *const c_int) -> c_int {
        let Answer::Nowhere(Some(all)) = self.take_answer() else { return code };
        // SAFETY: as the caller promises; an undefined count is negative.
        unsafe {
            let places = Places::new(indices, usize::try_from(count).unwrap_or(0));
            self.note(|i| places.of(i).map(|k| all.get(k)));
            self.raise_some(all, code, &places)
        }
    }

    /// Notes a call that tells about one request, with its code.
    ///
    /// # Safety
    /// As [`settle`].
    pub(crate) unsafe fn note_one(
        mut self,
        code: c_int,
        status: impl FnMut(usize) -> Option<*mut c_void>,
    ) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { self.note(status) };
        self.raise_one(code)
    }

    /// Settles a call that completes all or none, or fails and says in the statuses which.
    ///
    /// # Safety
    /// As [`settle`]; the statuses must be those of the call.
    pub(crate) unsafe fn settle_all(mut self, code: c_int, done: bool) -> c_int {
        let Answer::All(all) = self.take_answer() else { return code };
        let abi = self.abi;
        let in_status = in_status(self.host, code);
        // SAFETY: as the caller promises.
        unsafe {
            self.settle(|found| match code {
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

    /// As [`Batch::with_refused`], where every request of the call has a status.
    ///
    /// # Safety
    /// As [`Batch::with_refused`].
    unsafe fn raise_all(mut self, all: Statuses, code: c_int) -> c_int {
        let (count, refused) = (self.count, std::mem::take(&mut self.refused));
        // SAFETY: as the caller promises.
        unsafe { self.with_refused(all, code, count, refused) }
    }

    /// Settles a call that says which have completed.
    ///
    /// # Safety
    /// As [`settle`]; the statuses and indices must be those of the call.
    pub(crate) unsafe fn settle_some(mut self, code: c_int) -> c_int {
        let answer = self.take_answer();
        let Answer::Some { statuses: all, count, indices } = answer else { return code };
        let abi = self.abi;
        let in_status = in_status(self.host, code);
        // SAFETY: as the caller promises; an undefined count is negative.
        unsafe {
            // The library refuses null pointers, and MPICH may call that a success.
            let told = count.as_ref().filter(|_| !indices.is_null() && (code == 0 || in_status));
            let n = told.map_or(0, |&count| usize::try_from(count).unwrap_or(0));
            let places = Places::new(indices, n);
            self.settle(|found| match (places.of(found.index), code) {
                (Some(k), 0) => Said::Success(all.get(k)),
                (None, 0) => Said::Pending,
                (place, _) => by_status(abi, &all, place),
            });
            self.raise_some(all, code, &places)
        }
    }

    /// As [`Batch::with_refused`], where the requests that have completed have statuses.
    ///
    /// # Safety
    /// As [`Batch::with_refused`].
    unsafe fn raise_some(mut self, all: Statuses, code: c_int, places: &Places) -> c_int {
        let refused = std::mem::take(&mut self.refused);
        let refused = refused.into_iter().filter_map(|(i, r)| Some((places.of(i)?, r))).collect();
        // SAFETY: as the caller promises.
        unsafe { self.with_refused(all, code, places.count, refused) }
    }

    /// Returns the code of a call on several requests, of which ddtc has refused the messages in
    /// `refused` (by the index of their status). The MPI library has reported all `count` requests
    /// as complete, unless it had an error of its own and wrote every `MPI_ERROR`.
    ///
    /// # Safety
    /// The statuses must be those of the call, in memory of the program's or our own.
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
        // SAFETY: as the caller promises. Where a receive was converted, statuses are never the host's mark for none.
        unsafe {
            if code == 0 {
                (0..count).for_each(|i| status::set_error(abi, all.get(i), 0));
            }
            refused.iter().for_each(|(i, r)| status::set_error(abi, all.get(*i), r.class));
        }
        // An error handler of the program may leave this call.
        drop((self, all, refused));
        if code == 0 { raise_in_status(host, abi) } else { code }
    }

    /// Settles what has ended, before an error handler of the program runs inside the call. Handlers
    /// are given the code of one operation where the call will return `MPI_ERR_IN_STATUS`, so the
    /// statuses alone are asked.
    ///
    /// # Safety
    /// The call must be under way.
    pub(crate) unsafe fn settle_for_a_handler(&mut self) {
        if let Answer::Nowhere(_) = self.answer {
            return requests::release_all(&self.operations, self.asker);
        }
        for found in std::mem::take(&mut self.operations) {
            // SAFETY: the arguments of the call that is under way, of which the host has written
            // what belongs to a handle that it has made null. For a persistent request, whose
            // handle stays, statuses and indices may hold old values. They are memory of the call
            // all the same: no more than `self.count` of each are looked at.
            let end = unsafe {
                let is_null = self.now(&found) == self.host.request_null;
                let said = match &self.answer {
                    _ if !is_null && !found.persistent => Said::Pending,
                    Answer::One if is_null || self.count == 1 => Said::Error,
                    Answer::Nowhere(_) | Answer::One => Said::Pending,
                    Answer::All(all) => by_status(self.abi, all, Some(found.index)),
                    // The library calls a null pointer an error.
                    Answer::Some { count, indices, .. } if count.is_null() || indices.is_null() => {
                        Said::Pending
                    }
                    Answer::Some { statuses, count, indices } => {
                        let count = usize::try_from(**count).unwrap_or(0).min(self.count);
                        by_status(self.abi, statuses, Places::new(*indices, count).of(found.index))
                    }
                };
                self.end(&found, &said)
            };
            match end {
                // The call may still complete it.
                Completion::Pending => self.operations.push(found),
                // SAFETY: as above.
                end => unsafe { self.settle_as(found, end) },
            }
        }
        // The handler may leave the call, and other calls then complete these.
        requests::release_all(&self.operations, self.asker);
    }
}

/// Places of statuses in a call that says which requests have completed, by the index of the request.
pub(crate) struct Places {
    by_index: std::collections::HashMap<usize, usize>,
    count: usize,
}

impl Places {
    /// # Safety
    /// `indices` must be `count` numbers.
    pub(crate) unsafe fn new(indices: *const c_int, count: usize) -> Places {
        // SAFETY: as the caller promises.
        let by_index = (0..count).map(|k| (unsafe { *indices.add(k) } as usize, k)).collect();
        Places { by_index, count }
    }

    /// Returns the place of a request's status.
    pub(crate) fn of(&self, index: usize) -> Option<usize> {
        self.by_index.get(&index).copied()
    }
}

/// Returns the operations of an array of handles.
///
/// # Safety
/// `handles` must be null or that many handles.
pub(crate) unsafe fn found(host: &Host, count: c_int, handles: *const c_void) -> Operations {
    // SAFETY: as the caller promises.
    requests::find_all(unsafe { each(host, count, handles) }, Asks::Nothing)
}

/// Returns the handles of an array.
///
/// # Safety
/// `handles` must be null or that many handles, as long as the iterator is used.
unsafe fn each(host: &Host, count: c_int, handles: *const c_void) -> impl Iterator<Item = u64> {
    let bytes = host.abi.map_or(0, |a| a.handle_bytes);
    let count = if handles.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    // SAFETY: as the caller promises; there is at least one.
    (0..count).map(move |i| unsafe { handle_at(host, handles.byte_add(i * bytes)) } & host.mask)
}
