//! Wrappers of the calls that complete requests, report on them or free them. While the table of
//! converted requests is empty, which one load shows, the calls are bypassed.

mod emulated;

use std::ffi::{c_int, c_void};

use crate::call_memory::completing;
use crate::completing::{Answer, Batch, Output, Said};
use crate::handles::{NO_HOST, handle_at, missing, set_handle};
use crate::host::{HandleWord, host, known};
use crate::requests::{self, Asks};
use crate::status::Status;

/// Exports wrappers of calls about requests. While the table of converted requests is empty, which
/// one load shows, a wrapper jumps to the next function (the MPI library's or a PMPI layer's).
/// Everything else is done in a separate function, `looked_up`, because its prologue, which saves
/// registers, would otherwise run in every call. Programs poll by these calls: under Debian's Open
/// MPI a call takes 9 ns unmodified, the wrapper added 4 ns with that prologue and adds 0.6 ns
/// without (measured for hpcc on 2026-11-26).
macro_rules! exported {
    ($($call:ident $name:ident ($($argument:ident: $kind:ty),*);)*) => {$(
        #[doc = "# Safety"]
        #[doc = concat!("As `", stringify!($name), "` (MPI 5.0, 3.7.3 to 3.7.6).")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind),*) -> c_int {
            #[inline(never)]
            unsafe extern "C-unwind" fn looked_up($($argument: $kind),*) -> c_int {
                // SAFETY: the arguments are those of the exported function, whose caller promises
                // that they are right.
                unsafe { $call($($argument),*) }
            }
            // SAFETY: both functions require of their arguments what this function requires, and
            // get its arguments.
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
    // SAFETY: the caller promises the arguments of `MPI_Wait`: `request` points to a handle during
    // the call, and `status` points to a status or is `MPI_STATUS_IGNORE`. `at` is the status that
    // the MPI library writes for this request.
    unsafe {
        let Some(batch) = Batch::find(host, 1, request, Asks::Ends) else {
            return wait(request, status);
        };
        let mut own = Status::new();
        let at = batch.status(&mut own, status);
        completing(
            batch,
            Answer::One,
            || wait(request, at),
            |batch, code| batch.finish_one(code, |_| Said::alone(code, at)),
        )
    }
}

/// # Safety
/// As `MPI_Test` (MPI 5.0, 3.7.3).
unsafe fn test(request: *mut c_void, flag: *mut c_int, status: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(test) = host.next.test else { return missing(host) };
    // SAFETY: the caller promises the arguments of `MPI_Test`: `request` points to a handle during
    // the call, `flag` is null or points to a number, and `status` points to a status or is
    // `MPI_STATUS_IGNORE`. If the flag is set, the MPI library has written `at` for this request.
    unsafe {
        let Some(batch) = Batch::find(host, 1, request, Asks::Ends) else {
            return test(request, flag, status);
        };
        let mut own = Status::new();
        let at = batch.status(&mut own, status);
        completing(
            batch,
            Answer::One,
            || test(request, flag, at),
            |batch, code| {
                batch.finish_one(code, |_| match code {
                    0 if !is_set(flag) => Said::Pending,
                    _ => Said::alone(code, at),
                })
            },
        )
    }
}

/// Returns true if a call has set its flag. A null `flag` counts as not set: the MPI library
/// refuses it, but MPICH may return success for the refused call (after an error handler of the
/// program has returned).
///
/// # Safety
/// `flag` must be null or point to a number.
unsafe fn is_set(flag: *const c_int) -> bool {
    // SAFETY: the caller promises that `flag` is null or points to a number.
    unsafe { flag.as_ref() }.is_some_and(|&flag| flag != 0)
}

/// Returns true if a call has returned `i` as the index of a request. A null `index`, which the MPI
/// library refuses, is the index of no request.
///
/// # Safety
/// `index` must be null or point to a number.
unsafe fn is_at(index: *const c_int, i: c_int) -> bool {
    // SAFETY: the caller promises that `index` is null or points to a number.
    unsafe { index.as_ref() }.is_some_and(|&index| index == i)
}

/// # Safety
/// As `MPI_Waitany` (MPI 5.0, 3.7.5).
unsafe fn waitany(count: c_int, requests: *mut c_void, index: *mut c_int, status: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(waitany) = host.next.waitany else { return missing(host) };
    // SAFETY: the caller promises the arguments of `MPI_Waitany`: `requests` is null or points to
    // `count` handles during the call, `index` is null or points to a number, and `status` points
    // to a status or is `MPI_STATUS_IGNORE`. `at` is the status that the MPI library writes for the
    // request whose index it returns.
    unsafe {
        let Some(batch) = Batch::find(host, count, requests, Asks::Ends) else {
            return waitany(count, requests, index, status);
        };
        let mut own = Status::new();
        let at = batch.status(&mut own, status);
        completing(
            batch,
            Answer::One,
            || waitany(count, requests, index, at),
            |batch, code| {
                batch.finish_one(code, |found| Said::any(code, is_at(index, found.index as c_int), at))
            },
        )
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
    // SAFETY: the caller promises the arguments of `MPI_Testany`: `requests` is null or points to
    // `count` handles during the call, `index` and `flag` are null or point to numbers, and
    // `status` points to a status or is `MPI_STATUS_IGNORE`. If the flag is set, `at` is the status
    // that the MPI library has written for the request whose index it returns.
    unsafe {
        let Some(batch) = Batch::find(host, count, requests, Asks::Ends) else {
            return testany(count, requests, index, flag, status);
        };
        let mut own = Status::new();
        let at = batch.status(&mut own, status);
        completing(
            batch,
            Answer::One,
            || testany(count, requests, index, flag, at),
            |batch, code| {
                let any = code != 0 || is_set(flag);
                batch.finish_one(code, |found| Said::any(code, any && is_at(index, found.index as c_int), at))
            },
        )
    }
}

/// # Safety
/// As `MPI_Waitall` (MPI 5.0, 3.7.5).
unsafe fn waitall(count: c_int, requests: *mut c_void, statuses: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(waitall) = host.next.waitall else { return missing(host) };
    // SAFETY: the caller promises the arguments of `MPI_Waitall`: `requests` is null or points to
    // `count` handles during the call, and `statuses` points to `count` statuses or is
    // `MPI_STATUSES_IGNORE`. The MPI library writes the statuses at `at`.
    unsafe {
        let Some(batch) = Batch::find(host, count, requests, Asks::Ends) else {
            return waitall(count, requests, statuses);
        };
        let all = batch.statuses(statuses);
        let at = all.at;
        completing(
            batch,
            Answer::All(all),
            || waitall(count, requests, at),
            |batch, code| batch.finish_all(code, true),
        )
    }
}

/// # Safety
/// As `MPI_Testall` (MPI 5.0, 3.7.5).
unsafe fn testall(count: c_int, requests: *mut c_void, flag: *mut c_int, statuses: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(testall) = host.next.testall else { return missing(host) };
    // SAFETY: the caller promises the arguments of `MPI_Testall`: `requests` is null or points to
    // `count` handles during the call, `flag` is null or points to a number, and `statuses` points
    // to `count` statuses or is `MPI_STATUSES_IGNORE`. The MPI library writes the statuses at `at`.
    unsafe {
        let Some(batch) = Batch::find(host, count, requests, Asks::Ends) else {
            return testall(count, requests, flag, statuses);
        };
        let all = batch.statuses(statuses);
        let at = all.at;
        completing(
            batch,
            Answer::All(all),
            || testall(count, requests, flag, at),
            |batch, code| batch.finish_all(code, code == 0 && is_set(flag)),
        )
    }
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
    // SAFETY: the caller promises the arguments of `MPI_Waitsome`: `requests` is null or points to
    // `incount` handles during the call, `outcount` is null or points to a number, `indices` is
    // null or points to `incount` numbers, and `statuses` points to `incount` statuses or is
    // `MPI_STATUSES_IGNORE`. The MPI library writes the statuses at `at`.
    unsafe {
        let Some(batch) = Batch::find(host, incount, requests, Asks::Ends) else {
            return waitsome(incount, requests, outcount, indices, statuses);
        };
        let statuses = batch.statuses(statuses);
        let at = statuses.at;
        completing(
            batch,
            Answer::Some { statuses, count: outcount, indices },
            || waitsome(incount, requests, outcount, indices, at),
            |batch, code| batch.finish_some(code),
        )
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
    // SAFETY: the caller promises the arguments of `MPI_Testsome`: `requests` is null or points to
    // `incount` handles during the call, `outcount` is null or points to a number, `indices` is
    // null or points to `incount` numbers, and `statuses` points to `incount` statuses or is
    // `MPI_STATUSES_IGNORE`. The MPI library writes the statuses at `at`.
    unsafe {
        let Some(batch) = Batch::find(host, incount, requests, Asks::Ends) else {
            return testsome(incount, requests, outcount, indices, statuses);
        };
        let statuses = batch.statuses(statuses);
        let at = statuses.at;
        completing(
            batch,
            Answer::Some { statuses, count: outcount, indices },
            || testsome(incount, requests, outcount, indices, at),
            |batch, code| batch.finish_some(code),
        )
    }
}

/// # Safety
/// As `MPI_Request_get_status` (MPI 5.0, 3.7.6).
unsafe fn request_get_status(request: HandleWord, flag: *mut c_int, status: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(get_status) = host.next.request_get_status else { return missing(host) };
    // The program passes the handle by value. A `HandleWord` has room for a handle of any ABI.
    let handle: *const c_void = (&raw const request).cast();
    // SAFETY: `handle` points to one handle, in this frame. The caller promises the other arguments
    // of `MPI_Request_get_status`: `flag` is null or points to a number, and `status` points to a
    // status or is `MPI_STATUS_IGNORE`. If the flag is set, the MPI library has written `at` for
    // this request.
    unsafe {
        let Some(batch) = Batch::find(host, 1, handle, Asks::Reports) else {
            return get_status(request, flag, status);
        };
        let flag = Output::new(flag);
        if batch.is_held() && flag.answer(0) {
            return 0;
        }
        let mut own = Status::new();
        let at = batch.status(&mut own, status);
        completing(
            batch,
            Answer::Nowhere(None),
            || flag.written_by(|flag| get_status(request, flag, at)),
            |batch, code| batch.unpack_one_reported(code, |_| (code == 0 && flag.is_set()).then_some(at)),
        )
    }
}

/// # Safety
/// As `MPI_Request_get_status_any` (MPI 5.0, 3.7.6).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Request_get_status_any(
    count: c_int,
    requests: *mut c_void,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(get_status) = host.next.request_get_status_any else {
        // SAFETY: `emulated::any` requires what this function requires, and gets its arguments.
        return unsafe { emulated::any(host, count, requests, index, flag, status) };
    };
    // SAFETY: the caller promises the arguments of `MPI_Request_get_status_any`: `requests` is null
    // or points to `count` handles during the call, `index` and `flag` are null or point to
    // numbers, and `status` points to a status or is `MPI_STATUS_IGNORE`. If the flag is set, `at`
    // is the status that the MPI library has written for the request whose index it returns.
    unsafe {
        let Some(batch) = Batch::find(host, count, requests, Asks::Reports) else {
            return get_status(count, requests, index, flag, status);
        };
        let flag = Output::new(flag);
        let mut own = Status::new();
        let at = batch.status(&mut own, status);
        let (is_held, others, undefined) = (batch.is_held(), batch.others(), batch.abi.constants.undefined);
        completing(
            batch,
            Answer::Nowhere(None),
            || {
                let code = flag.written_by(|flag| get_status(count, others, index, flag, at));
                // All other requests are null or inactive.
                if is_held && code == 0 && flag.is_set() && is_at(index, undefined) {
                    flag.answer(0);
                }
                code
            },
            |batch, code| {
                let any = code == 0 && flag.is_set();
                batch.unpack_one_reported(code, |i| (any && is_at(index, i as c_int)).then_some(at))
            },
        )
    }
}

/// # Safety
/// As `MPI_Request_get_status_all` (MPI 5.0, 3.7.6).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Request_get_status_all(
    count: c_int,
    requests: *mut c_void,
    flag: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(get_status) = host.next.request_get_status_all else {
        // SAFETY: `emulated::all` requires what this function requires, and gets its arguments.
        return unsafe { emulated::all(host, count, requests, flag, statuses) };
    };
    // SAFETY: the caller promises the arguments of `MPI_Request_get_status_all`: `requests` is null
    // or points to `count` handles during the call, `flag` is null or points to a number, and
    // `statuses` points to `count` statuses or is `MPI_STATUSES_IGNORE`. If the flag is set, the
    // MPI library has written the statuses at `at`.
    unsafe {
        let Some(batch) = Batch::find(host, count, requests, Asks::Reports) else {
            return get_status(count, requests, flag, statuses);
        };
        let flag = Output::new(flag);
        if batch.is_held() && flag.answer(0) {
            return 0;
        }
        let all = batch.statuses(statuses);
        let at = all.at;
        completing(
            batch,
            Answer::Nowhere(Some(all)),
            || flag.written_by(|flag| get_status(count, requests, flag, at)),
            |batch, code| batch.unpack_all_reported(code, code == 0 && flag.is_set()),
        )
    }
}

/// # Safety
/// As `MPI_Request_get_status_some` (MPI 5.0, 3.7.6).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Request_get_status_some(
    incount: c_int,
    requests: *mut c_void,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(get_status) = host.next.request_get_status_some else {
        // SAFETY: `emulated::some` requires what this function requires, and gets its arguments.
        return unsafe { emulated::some(host, incount, requests, outcount, indices, statuses) };
    };
    // SAFETY: the caller promises the arguments of `MPI_Request_get_status_some`: `requests` is
    // null or points to `incount` handles during the call, `outcount` is null or points to a
    // number, `indices` is null or points to `incount` numbers, and `statuses` points to `incount`
    // statuses or is `MPI_STATUSES_IGNORE`. After a success the MPI library has written `outcount`
    // indices, and their statuses at `at`.
    unsafe {
        let Some(batch) = Batch::find(host, incount, requests, Asks::Reports) else {
            return get_status(incount, requests, outcount, indices, statuses);
        };
        let outcount = Output::new(outcount);
        let all = batch.statuses(statuses);
        let (at, undefined) = (all.at, batch.abi.constants.undefined);
        let (is_held, others) = (batch.is_held(), batch.others());
        completing(
            batch,
            Answer::Nowhere(Some(all)),
            || {
                let code = outcount.written_by(|outcount| get_status(incount, others, outcount, indices, at));
                // All other requests are null or inactive.
                if is_held && code == 0 && outcount.get() == Some(undefined) {
                    outcount.answer(0);
                }
                code
            },
            |batch, code| {
                let count = if code == 0 { outcount.get().unwrap_or(0) } else { 0 };
                batch.unpack_some_reported(code, count, indices)
            },
        )
    }
}

/// # Safety
/// As `MPI_Request_free` (MPI 5.0, 3.7.3).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn MPI_Request_free(request: *mut c_void) -> c_int {
    let Some(host) = host() else { return NO_HOST };
    let Some(request_free) = host.next.request_free else { return missing(host) };
    // SAFETY: the caller promises that `request` points to a handle during the call, or is null,
    // which the MPI library refuses and for which `Batch::find` returns `None`.
    unsafe {
        let Some(batch) = Batch::find(host, 1, request, Asks::Ends) else { return request_free(request) };
        let Some(&found) = batch.operations().first() else { return request_free(request) };
        if found.active {
            // The MPI library keeps the request until its operation has completed, because ddtc
            // must find out when the received bytes can be unpacked. The program gets the null
            // handle, as if the request were freed.
            requests::free(found);
            drop(batch);
            set_handle(host, request, host.request_null);
            requests::drain(host);
            return 0;
        }
        completing(
            batch,
            Answer::Nowhere(None),
            || request_free(request),
            |_batch, code| {
                if handle_at(host, request) & host.mask == host.request_null {
                    drop(found.take());
                }
                code
            },
        )
    }
}
