//! Completion of requests. While no converted request lives, a call costs one load and is the host's.

mod emulated;

use std::ffi::{c_int, c_void};

use ddtc_hosts::abi::Abi;

use crate::handles::{NO_HOST, handle_at, missing, set_handle};
use crate::host::{HandleWord, Host, host, known};
use crate::partial_element::{RefusedMessage, raise_in_status};
use crate::requests::{self, Completion, Operation, Taken, in_status, settle};
use crate::status::{self, Status, Statuses};

/// Returns the operations of an array of handles, taken out.
///
/// # Safety
/// `handles` must be null or that many handles.
pub(super) unsafe fn taken(host: &Host, count: c_int, handles: *const c_void) -> Taken {
    let bytes = host.abi.map_or(0, |a| a.handle_bytes);
    let count = if handles.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    // SAFETY: as the caller promises; there is at least one.
    let at = |i: usize| unsafe { handle_at(host, handles.byte_add(i * bytes)) } & host.mask;
    requests::take_all((0..count).map(at))
}

/// Converted operations of one completion call.
struct Batch {
    host: &'static Host,
    abi: &'static Abi,
    count: usize,
    handles: *const c_void,
    operations: Taken,
}

impl Batch {
    /// The batch of a call; `None`: the call is the host's.
    ///
    /// # Safety
    /// As [`taken`], where `handles` is not null.
    unsafe fn take(host: &'static Host, count: c_int, handles: *const c_void) -> Option<Batch> {
        let abi = host.abi.filter(|_| requests::live() && !handles.is_null())?;
        requests::drain(host);
        // SAFETY: as the caller promises.
        let operations = unsafe { taken(host, count, handles) };
        let count = usize::try_from(count).unwrap_or(0);
        (!operations.is_empty()).then_some(Batch { host, abi, count, handles, operations })
    }

    fn receives(&self) -> bool {
        self.operations.iter().any(|(_, _, o)| o.receives())
    }

    /// Statuses of an array call: which of its requests have failed, they alone say.
    fn statuses(&self, user: *mut c_void) -> Statuses {
        let needed = self.operations.iter().any(|(_, _, o)| o.unpacks());
        Statuses::new(self.abi, user, self.count, needed)
    }

    /// Settles every operation. Its handle says whether it has ended: the MPI library makes the
    /// handle null, or a persistent request inactive. What the call says of it, by code and status,
    /// decides only how it has ended.
    ///
    /// # Safety
    /// As [`settle`].
    unsafe fn settle(self, mut said: impl FnMut(usize, &Operation) -> Said) -> Vec<(usize, RefusedMessage)> {
        let Batch { host, abi, handles, operations, .. } = self;
        let mut refused = Vec::new();
        for (i, handle, operation) in operations {
            // SAFETY: the program's handles, which the host has updated.
            let now = unsafe { handle_at(host, handles.byte_add(i * abi.handle_bytes)) } & host.mask;
            let said = said(i, &operation);
            let ended = now == host.request_null
                // SAFETY: a persistent request that lives.
                || operation.persistent && said.asks(&operation) && unsafe { requests::inactive(host, handle) };
            // A persistent receive with an empty status was inactive before: an earlier call has
            // ended it and did not say so.
            let may_be_late = operation.persistent && operation.receives();
            // SAFETY: the status of a receive that the call has completed.
            let late = |at| may_be_late && unsafe { status::is_empty(abi, at) };
            let end = match said {
                Said::Success(at) if ended && !late(at) => Completion::Done(at),
                _ if ended => Completion::Failed,
                _ => Completion::Pending,
            };
            // SAFETY: as the caller promises.
            refused.extend(unsafe { settle(host, handle, operation, end) }.map(|r| (i, r)));
        }
        refused
    }

    /// Settles a call that completes one request, with its code.
    ///
    /// # Safety
    /// As [`settle`].
    unsafe fn settle_one(self, code: c_int, said: impl FnMut(usize, &Operation) -> Said) -> c_int {
        let host = self.host;
        // SAFETY: as the caller promises.
        let refused = unsafe { self.settle(said) };
        refused.first().map_or(code, |(_, refused)| refused.raise(host))
    }
}

impl Batch {
    /// After the program was told which requests have completed, without completing them: it may read what was received.
    ///
    /// # Safety
    /// As [`settle`].
    unsafe fn noted(
        self,
        mut status: impl FnMut(usize) -> Option<*mut c_void>,
    ) -> Vec<(usize, RefusedMessage)> {
        let mut refused = Vec::new();
        for (i, handle, operation) in self.operations {
            let end = status(i).map_or(Completion::Pending, Completion::Seen);
            // SAFETY: as the caller promises.
            refused.extend(unsafe { settle(self.host, handle, operation, end) }.map(|r| (i, r)));
        }
        refused
    }

    /// Notes a call that tells about one request, with its code.
    ///
    /// # Safety
    /// As [`settle`].
    unsafe fn noted_one(self, code: c_int, status: impl FnMut(usize) -> Option<*mut c_void>) -> c_int {
        let host = self.host;
        // SAFETY: as the caller promises.
        let refused = unsafe { self.noted(status) };
        refused.first().map_or(code, |(_, refused)| refused.raise(host))
    }
}

/// What a completion call says of an operation by its code, its outputs and its statuses.
enum Said {
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
    fn asks(&self, operation: &Operation) -> bool {
        match self {
            Said::Success(_) | Said::Error => true,
            Said::Pending => false,
            Said::Nothing => !operation.receives(),
        }
    }

    /// Returns what a call about one request alone says, by its code.
    fn alone(code: c_int, status: *mut c_void) -> Said {
        if code == 0 { Said::Success(status) } else { Said::Error }
    }

    /// Returns what a call says that completes the operation with index `done`, of that with index
    /// `i`.
    fn any(code: c_int, done: bool, status: *mut c_void) -> Said {
        match (code, done) {
            (0, true) => Said::Success(status),
            (0, false) => Said::Pending,
            (_, true) => Said::Error,
            (_, false) => Said::Nothing,
        }
    }
}

/// Returns what the status of an operation says after a call that returned `MPI_ERR_IN_STATUS`.
///
/// # Safety
/// The status must be one of the host's, or its mark for none.
unsafe fn by_status(abi: &Abi, at: *mut c_void, ignored: bool) -> Said {
    if ignored {
        return Said::Nothing;
    }
    // SAFETY: as the caller promises.
    match unsafe { status::error(abi, at) } {
        0 => Said::Success(at),
        pending if pending == abi.err_pending => Said::Pending,
        _ => Said::Error,
    }
}

/// Exports calls about requests. While nothing converted lives, which one load tells, a call jumps to the host's function; programs poll, and a test that finds
/// nothing takes 9 ns bare. All else is a function of its own beside it, since what saves registers would do so in every call.
macro_rules! exported {
    ($($call:ident $name:ident ($($argument:ident: $kind:ty),*);)*) => {$(
        #[doc = "# Safety"]
        #[doc = concat!("As `", stringify!($name), "` (MPI 5.0, 3.7.3 to 3.7.6).")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            #[inline(never)]
            unsafe extern "C" fn looked_up($($argument: $kind),*) -> c_int {
                // SAFETY: the caller's arguments.
                unsafe { $call($($argument),*) }
            }
            // SAFETY: the caller's arguments.
            unsafe {
                match known().and_then(|host| host.next.$call) {
                    Some(of_host) if !requests::live() => of_host($($argument),*),
                    _ => looked_up($($argument),*),
                }
            }
        }
    )*};
}

exported! {
    wait MPI_Wait (request: *mut c_void, status: *mut c_void);
    test MPI_Test (request: *mut c_void, flag: *mut c_int, status: *mut c_void);
    waitany MPI_Waitany (count: c_int, requests: *mut c_void, index: *mut c_int, status: *mut c_void);
    testany MPI_Testany (count: c_int, requests: *mut c_void, index: *mut c_int, flag: *mut c_int, status: *mut c_void);
    waitall MPI_Waitall (count: c_int, requests: *mut c_void, statuses: *mut c_void);
    testall MPI_Testall (count: c_int, requests: *mut c_void, flag: *mut c_int, statuses: *mut c_void);
    waitsome MPI_Waitsome (incount: c_int, requests: *mut c_void, outcount: *mut c_int, indices: *mut c_int, statuses: *mut c_void);
    testsome MPI_Testsome (incount: c_int, requests: *mut c_void, outcount: *mut c_int, indices: *mut c_int, statuses: *mut c_void);
    request_get_status MPI_Request_get_status (request: HandleWord, flag: *mut c_int, status: *mut c_void);
}

/// # Safety
/// As `MPI_Wait` (MPI 5.0, 3.7.3).
unsafe fn wait(request: *mut c_void, status: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(wait) = host.next.wait else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, 1, request) else { return wait(request, status) };
        let mut own = Status::new();
        let at = if batch.receives() { own.unless(batch.abi, status) } else { status };
        let code = wait(request, at);
        batch.settle_one(code, |_, _| Said::alone(code, at))
    }
}

/// # Safety
/// As `MPI_Test` (MPI 5.0, 3.7.3).
unsafe fn test(request: *mut c_void, flag: *mut c_int, status: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(test) = host.next.test else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, 1, request) else { return test(request, flag, status) };
        let mut own = Status::new();
        let at = if batch.receives() { own.unless(batch.abi, status) } else { status };
        let code = test(request, flag, at);
        batch.settle_one(code, |_, _| match code {
            0 if *flag == 0 => Said::Pending,
            _ => Said::alone(code, at),
        })
    }
}

/// # Safety
/// As `MPI_Waitany` (MPI 5.0, 3.7.5).
unsafe fn waitany(count: c_int, requests: *mut c_void, index: *mut c_int, status: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(waitany) = host.next.waitany else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, count, requests) else {
            return waitany(count, requests, index, status);
        };
        let mut own = Status::new();
        let at = if batch.receives() { own.unless(batch.abi, status) } else { status };
        let code = waitany(count, requests, index, at);
        batch.settle_one(code, |i, _| Said::any(code, *index == i as c_int, at))
    }
}

/// # Safety
/// As `MPI_Testany` (MPI 5.0, 3.7.5).
unsafe fn testany(
    count: c_int,
    requests: *mut c_void,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(testany) = host.next.testany else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, count, requests) else {
            return testany(count, requests, index, flag, status);
        };
        let mut own = Status::new();
        let at = if batch.receives() { own.unless(batch.abi, status) } else { status };
        let code = testany(count, requests, index, flag, at);
        batch.settle_one(code, |i, _| Said::any(code, (code != 0 || *flag != 0) && *index == i as c_int, at))
    }
}

/// # Safety
/// As `MPI_Waitall` (MPI 5.0, 3.7.5).
unsafe fn waitall(count: c_int, requests: *mut c_void, statuses: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(waitall) = host.next.waitall else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, count, requests) else {
            return waitall(count, requests, statuses);
        };
        let all = batch.statuses(statuses);
        let code = waitall(count, requests, all.at);
        finish_all(batch, &all, code, true)
    }
}

/// # Safety
/// As `MPI_Testall` (MPI 5.0, 3.7.5).
unsafe fn testall(count: c_int, requests: *mut c_void, flag: *mut c_int, statuses: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(testall) = host.next.testall else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, count, requests) else {
            return testall(count, requests, flag, statuses);
        };
        let all = batch.statuses(statuses);
        let code = testall(count, requests, flag, all.at);
        finish_all(batch, &all, code, code == 0 && *flag != 0)
    }
}

/// After a call that completes all or none, or fails and says in the statuses which.
///
/// # Safety
/// As [`settle`]; the statuses must be those of the call.
unsafe fn finish_all(batch: Batch, all: &Statuses, code: c_int, done: bool) -> c_int {
    let (host, abi, count) = (batch.host, batch.abi, batch.count);
    let ignored = all.at.addr() == abi.status_ignore;
    let in_status = in_status(host, code);
    // SAFETY: as the caller promises.
    unsafe {
        let refused = batch.settle(|i, operation| match code {
            0 if done => Said::Success(all.get(i)),
            0 => Said::Pending,
            _ if in_status && (operation.persistent || operation.unpacks()) => {
                by_status(abi, all.get(i), ignored)
            }
            _ => Said::Nothing,
        });
        with_refused(host, abi, all, code, count, refused)
    }
}

/// The code of a call about several requests of which some messages are refused, by number of their status. The host has called
/// all `count` complete, unless it had an error of its own and wrote every `MPI_ERROR`.
///
/// # Safety
/// The statuses must be those of the call, in memory of the program's or our own.
unsafe fn with_refused(
    host: &Host,
    abi: &Abi,
    all: &Statuses,
    code: c_int,
    count: usize,
    refused: Vec<(usize, RefusedMessage)>,
) -> c_int {
    if refused.is_empty() {
        return code;
    }
    // SAFETY: as the caller promises. Where a receive was converted, statuses are never the host's mark for none.
    unsafe {
        if code == 0 {
            (0..count).for_each(|i| status::set_error(abi, all.get(i), 0));
        }
        refused.iter().for_each(|(i, r)| status::set_error(abi, all.get(*i), r.class));
    }
    if code == 0 { raise_in_status(host, abi) } else { code }
}

/// # Safety
/// As `MPI_Waitsome` (MPI 5.0, 3.7.5).
unsafe fn waitsome(
    incount: c_int,
    requests: *mut c_void,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(waitsome) = host.next.waitsome else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, incount, requests) else {
            return waitsome(incount, requests, outcount, indices, statuses);
        };
        let all = batch.statuses(statuses);
        let code = waitsome(incount, requests, outcount, indices, all.at);
        finish_some(batch, &all, code, outcount, indices)
    }
}

/// # Safety
/// As `MPI_Testsome` (MPI 5.0, 3.7.5).
unsafe fn testsome(
    incount: c_int,
    requests: *mut c_void,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(testsome) = host.next.testsome else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, incount, requests) else {
            return testsome(incount, requests, outcount, indices, statuses);
        };
        let all = batch.statuses(statuses);
        let code = testsome(incount, requests, outcount, indices, all.at);
        finish_some(batch, &all, code, outcount, indices)
    }
}

/// After a call that says which have completed.
///
/// # Safety
/// As [`settle`]; the statuses and indices must be those of the call.
unsafe fn finish_some(
    batch: Batch,
    all: &Statuses,
    code: c_int,
    outcount: *const c_int,
    indices: *const c_int,
) -> c_int {
    let (host, abi) = (batch.host, batch.abi);
    let ignored = all.at.addr() == abi.status_ignore;
    let in_status = in_status(host, code);
    // SAFETY: as the caller promises; an undefined count is negative.
    unsafe {
        let n = if code == 0 || in_status { usize::try_from(*outcount).unwrap_or(0) } else { 0 };
        let places = (0..n).map(|k| (*indices.add(k) as usize, k));
        let places: std::collections::HashMap<usize, usize> = places.collect();
        let refused = batch.settle(|i, _| match (places.get(&i), code) {
            (Some(&k), 0) => Said::Success(all.get(k)),
            (None, 0) => Said::Pending,
            (Some(&k), _) => by_status(abi, all.get(k), ignored),
            (None, _) => Said::Nothing,
        });
        let refused = refused.into_iter().filter_map(|(i, r)| Some((*places.get(&i)?, r)));
        with_refused(host, abi, all, code, n, refused.collect())
    }
}

/// # Safety
/// As `MPI_Request_get_status` (MPI 5.0, 3.7.6).
unsafe fn request_get_status(request: HandleWord, flag: *mut c_int, status: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(get_status) = host.next.request_get_status else { return missing(host) };
    // A word has room for any handle.
    let handle: *const c_void = (&raw const request).cast();
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, 1, handle) else { return get_status(request, flag, status) };
        let mut own = Status::new();
        let at = if batch.receives() { own.unless(batch.abi, status) } else { status };
        let code = get_status(request, flag, at);
        batch.noted_one(code, |_| (code == 0 && *flag != 0).then_some(at))
    }
}

/// # Safety
/// As `MPI_Request_get_status_any` (MPI 5.0, 3.7.6).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Request_get_status_any(
    count: c_int,
    requests: *mut c_void,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(get_status) = host.next.request_get_status_any else {
        // SAFETY: the caller's arguments.
        return unsafe { emulated::any(host, count, requests, index, flag, status) };
    };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, count, requests) else {
            return get_status(count, requests, index, flag, status);
        };
        let mut own = Status::new();
        let at = if batch.receives() { own.unless(batch.abi, status) } else { status };
        let code = get_status(count, requests, index, flag, at);
        batch.noted_one(code, |i| (code == 0 && *flag != 0 && *index == i as c_int).then_some(at))
    }
}

/// # Safety
/// As `MPI_Request_get_status_all` (MPI 5.0, 3.7.6).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Request_get_status_all(
    count: c_int,
    requests: *mut c_void,
    flag: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(get_status) = host.next.request_get_status_all else {
        // SAFETY: the caller's arguments.
        return unsafe { emulated::all(host, count, requests, flag, statuses) };
    };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, count, requests) else {
            return get_status(count, requests, flag, statuses);
        };
        let all = batch.statuses(statuses);
        let code = get_status(count, requests, flag, all.at);
        let (abi, n) = (batch.abi, batch.count);
        let refused = batch.noted(|i| (code == 0 && *flag != 0).then_some(all.get(i)));
        with_refused(host, abi, &all, code, n, refused)
    }
}

/// # Safety
/// As `MPI_Request_get_status_some` (MPI 5.0, 3.7.6).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Request_get_status_some(
    incount: c_int,
    requests: *mut c_void,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(get_status) = host.next.request_get_status_some else {
        // SAFETY: the caller's arguments.
        return unsafe { emulated::some(host, incount, requests, outcount, indices, statuses) };
    };
    // SAFETY: the caller's arguments.
    unsafe {
        let Some(batch) = Batch::take(host, incount, requests) else {
            return get_status(incount, requests, outcount, indices, statuses);
        };
        let all = batch.statuses(statuses);
        let code = get_status(incount, requests, outcount, indices, all.at);
        let n = if code == 0 { (*outcount).max(0) as usize } else { 0 };
        let place = |i: usize| (0..n).find(|&k| *indices.add(k) == i as c_int);
        let abi = batch.abi;
        let refused = batch.noted(|i| place(i).map(|k| all.get(k)));
        let refused = refused.into_iter().filter_map(|(i, r)| Some((place(i)?, r)));
        with_refused(host, abi, &all, code, n, refused.collect())
    }
}

/// # Safety
/// As `MPI_Request_free` (MPI 5.0, 3.7.3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Request_free(request: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(request_free) = host.next.request_free else { return missing(host) };
    // SAFETY: the caller's argument.
    unsafe {
        let Some(batch) = Batch::take(host, 1, request) else { return request_free(request) };
        let Some((_, handle, operation)) = batch.operations.into_iter().next() else {
            return request_free(request);
        };
        if operation.active {
            requests::free(handle, operation);
            set_handle(host, request, host.request_null);
            requests::drain(host);
            return 0;
        }
        let code = request_free(request);
        if handle_at(host, request) & host.mask != host.request_null {
            requests::put(handle, operation);
        }
        code
    }
}
