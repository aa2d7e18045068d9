//! `MPI_Request_get_status_any`, `_all` and `_some` for hosts that are older than them: mpi4py looks for their symbols in the
//! process, and then calls what it finds.
//!
//! By `MPI_Request_get_status`, request after request. Hosts of that age do not tell inactive requests from complete ones: they
//! count as complete. In an empty status `MPI_ERROR` is `MPI_SUCCESS` (MPI 5.0, 3.7.3), which the host's call for one request leaves
//! as it was; in others it stays untouched, because none of these calls returns `MPI_ERR_IN_STATUS` (3.2.5).
//!
//! One library serves all hosts, so these symbols are there on hosts without them, and a client that would have had a way of its
//! own without them calls these: they give what the standard says, not what its own way would have given.

use std::ffi::{c_int, c_void};

use ddtc_hosts::abi::Abi;

use super::MPI_Request_get_status;
use crate::handles::{handle_at, missing};
use crate::host::Host;
use crate::status;

/// Handles and statuses of a call.
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

    /// The state of a request, its status as number `k`.
    ///
    /// # Safety
    /// The arrays must have that many elements.
    unsafe fn ask(&self, i: c_int, k: c_int, flag: &mut c_int) -> c_int {
        let ignored = self.statuses.addr() == self.abi.status_ignore;
        let bytes = if ignored { 0 } else { k as usize * self.abi.status_bytes };
        let handle = self.requests.wrapping_byte_add(i as usize * self.abi.handle_bytes);
        let status = self.statuses.wrapping_byte_add(bytes);
        // SAFETY: as the caller promises.
        unsafe {
            let code = MPI_Request_get_status(handle_at(self.host, handle), flag, status);
            if code == 0 && *flag != 0 && !ignored && status::is_empty(self.abi, status) {
                status::set_error(self.abi, status, 0);
            }
            code
        }
    }

    /// # Safety
    /// As [`Arrays::ask`].
    unsafe fn is_null(&self, i: c_int) -> bool {
        let handle = self.requests.wrapping_byte_add(i as usize * self.abi.handle_bytes);
        // SAFETY: as the caller promises.
        unsafe { handle_at(self.host, handle) & self.host.mask == self.host.request_null }
    }
}

/// # Safety
/// As `MPI_Request_get_status_any` (MPI 5.0, 3.7.6).
pub(super) unsafe fn any(
    host: &'static Host,
    count: c_int,
    requests: *const c_void,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut c_void,
) -> c_int {
    let Some(arrays) = Arrays::new(host, requests, status) else { return missing(host) };
    // SAFETY: the caller's arguments.
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
        // None is active: an empty status, as that of the null request.
        let code = host.next.request_get_status.map_or(missing(host), |f| f(host.request_null, flag, status));
        if code == 0 && status.addr() != arrays.abi.status_ignore {
            status::set_error(arrays.abi, status, 0);
        }
        code
    }
}

/// # Safety
/// As `MPI_Request_get_status_all` (MPI 5.0, 3.7.6).
pub(super) unsafe fn all(
    host: &'static Host,
    count: c_int,
    requests: *const c_void,
    flag: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(arrays) = Arrays::new(host, requests, statuses) else { return missing(host) };
    // SAFETY: the caller's arguments.
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
/// As `MPI_Request_get_status_some` (MPI 5.0, 3.7.6).
pub(super) unsafe fn some(
    host: &'static Host,
    incount: c_int,
    requests: *const c_void,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut c_void,
) -> c_int {
    let Some(arrays) = Arrays::new(host, requests, statuses) else { return missing(host) };
    // SAFETY: the caller's arguments.
    unsafe {
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
