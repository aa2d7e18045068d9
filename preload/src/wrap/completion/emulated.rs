//! Implementations of `MPI_Request_get_status_any`, `_all` and `_some` for MPI libraries that are
//! too old to have these functions.
//!
//! The preload library is one binary for all MPI libraries, so it exports these three functions
//! under old MPI libraries too. A client such as mpi4py looks for their symbols in the process and
//! calls the functions if it finds them. If it does not find them, it uses a method of its own. The
//! functions here return what the standard says, and not what the client's own method would have
//! returned.
//!
//! The three functions call `MPI_Request_get_status` for one request after the other. In this call,
//! MPI libraries of that age do not distinguish inactive requests from complete requests, so
//! inactive requests count as complete. In an empty status `MPI_ERROR` must be `MPI_SUCCESS` (MPI
//! 5.0, 3.7.3). `MPI_Request_get_status` leaves `MPI_ERROR` of an empty status unchanged, so the
//! field is written here. In all other statuses `MPI_ERROR` stays unchanged, because none of the
//! three functions returns `MPI_ERR_IN_STATUS` (3.2.5).

use std::ffi::{c_int, c_void};

use ddtc_hosts::abi::Abi;

use super::MPI_Request_get_status;
use crate::handles::{handle_at, missing};
use crate::host::Host;
use crate::status;

/// Arrays of requests and statuses that the program has passed to one of the three functions. In
/// the case of `MPI_Request_get_status_any`, `statuses` is a single status.
struct Arrays {
    host: &'static Host,
    abi: &'static Abi,
    requests: *const c_void,
    statuses: *mut c_void,
}

impl Arrays {
    fn new(host: &'static Host, requests: *const c_void, statuses: *mut c_void) -> Option<Arrays> {
        Some(Arrays { host, abi: host.abi?, requests, statuses })
    }

    /// Determines the state of the request with index `i`. Sets `flag` to 1 if the request is
    /// complete, and to 0 otherwise. If the request is complete and the program wants statuses,
    /// writes the status with index `k`. Returns the error code of `MPI_Request_get_status`.
    ///
    /// # Safety
    /// `requests` must point to more than `i` handles, and `statuses` to more than `k` statuses
    /// unless it is `MPI_STATUSES_IGNORE`.
    unsafe fn ask(&self, i: c_int, k: c_int, flag: &mut c_int) -> c_int {
        let ignored = self.statuses.addr() == self.abi.status_ignore;
        let bytes = if ignored { 0 } else { k as usize * self.abi.status_bytes };
        let handle = self.requests.wrapping_byte_add(i as usize * self.abi.handle_bytes);
        let status = self.statuses.wrapping_byte_add(bytes);
        // SAFETY: `handle` points to the handle with index `i`. `status` points to the status with
        // index `k`, or is `MPI_STATUSES_IGNORE`, which has the value of `MPI_STATUS_IGNORE` and is
        // not read here. The caller promises both arrays.
        unsafe {
            let code = MPI_Request_get_status(handle_at(self.host, handle), flag, status);
            if code == 0 && *flag != 0 && !ignored && status::is_empty(self.abi, status) {
                status::set_error(self.abi, status, 0);
            }
            code
        }
    }

    /// Returns true if the request with index `i` is `MPI_REQUEST_NULL`.
    ///
    /// # Safety
    /// `requests` must point to more than `i` handles.
    unsafe fn is_null(&self, i: c_int) -> bool {
        let handle = self.requests.wrapping_byte_add(i as usize * self.abi.handle_bytes);
        // SAFETY: `handle` points to the handle with index `i`, which the caller promises.
        unsafe { handle_at(self.host, handle) & self.host.mask == self.host.request_null }
    }
}

/// # Safety
/// The arguments must be valid for `MPI_Request_get_status_any` (MPI 5.0, 3.7.6).
pub(super) unsafe fn any(
    host: &'static Host,
    count: c_int,
    requests: *const c_void,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut c_void,
) -> c_int {
    let Some(arrays) = Arrays::new(host, requests, status) else { return missing(host) };
    // SAFETY: the caller promises the arguments of `MPI_Request_get_status_any`: `requests` points
    // to `count` handles, `index` and `flag` to numbers, and `status` to one status, or it is
    // `MPI_STATUS_IGNORE`. `ask` is called for indices below `count` and status 0 alone.
    unsafe {
        (*index, *flag) = (arrays.abi.constants.undefined, 1);
        for i in (0..count).filter(|&i| !arrays.is_null(i)) {
            let code = arrays.ask(i, 0, &mut *flag);
            if code != 0 || *flag != 0 {
                *index = i;
                return code;
            }
        }
        if *flag == 0 {
            return 0;
        }
        // All requests are null. In this case `flag` must be true and the status empty. The MPI
        // library writes such a status for the null request.
        let code = host.next.request_get_status.map_or(missing(host), |f| f(host.request_null, flag, status));
        if code == 0 && status.addr() != arrays.abi.status_ignore {
            status::set_error(arrays.abi, status, 0);
        }
        code
    }
}

/// # Safety
/// The arguments must be valid for `MPI_Request_get_status_all` (MPI 5.0, 3.7.6).
pub(super) unsafe fn all(
    host: &'static Host,
    count: c_int,
    requests: *const c_void,
    flag: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(arrays) = Arrays::new(host, requests, statuses) else { return missing(host) };
    // SAFETY: the caller promises the arguments of `MPI_Request_get_status_all`: `requests` points
    // to `count` handles, `flag` to a number, and `statuses` to `count` statuses, or it is
    // `MPI_STATUSES_IGNORE`. `ask` is called for indices below `count` alone.
    unsafe {
        *flag = 1;
        for i in 0..count {
            let code = arrays.ask(i, i, &mut *flag);
            if code != 0 || *flag == 0 {
                return code;
            }
        }
    }
    0
}

/// # Safety
/// The arguments must be valid for `MPI_Request_get_status_some` (MPI 5.0, 3.7.6).
pub(super) unsafe fn some(
    host: &'static Host,
    incount: c_int,
    requests: *const c_void,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(arrays) = Arrays::new(host, requests, statuses) else { return missing(host) };
    // SAFETY: the caller promises the arguments of `MPI_Request_get_status_some`: `requests` points
    // to `incount` handles, `outcount` to a number, `indices` to `incount` numbers, and `statuses`
    // to `incount` statuses, or it is `MPI_STATUSES_IGNORE`. `out` is at most `i`, and `i` is less
    // than `incount`.
    unsafe {
        // `MPI_UNDEFINED` while only null requests were found, else the number of complete requests
        // so far.
        let mut out = arrays.abi.constants.undefined;
        for i in (0..incount).filter(|&i| !arrays.is_null(i)) {
            out = out.max(0);
            let mut flag = 0;
            let code = arrays.ask(i, out, &mut flag);
            if code != 0 {
                return code;
            }
            if flag != 0 {
                *indices.add(out as usize) = i;
                out += 1;
            }
        }
        *outcount = out;
    }
    0
}
