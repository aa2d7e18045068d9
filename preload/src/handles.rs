//! Handles in memory, and what is returned where a host has no such function.

use std::ffi::{c_int, c_void};

use crate::host::{HandleWord, Host};

/// `MPI_ERR_OTHER` of MPICH, an error in every ABI: no MPI library is loaded, so nobody can be asked.
pub(crate) const NO_HOST: c_int = 15;

/// Returns a handle in memory, as a word.
///
/// # Safety
/// `at` must point to a handle of the host.
#[inline]
pub(crate) unsafe fn handle_at(host: &Host, at: *const c_void) -> HandleWord {
    // SAFETY: as the caller promises; widths as the ABI says.
    unsafe {
        match host.handle_bytes {
            4 => HandleWord::from(*at.cast::<u32>()),
            0 => 0,
            _ => *at.cast::<HandleWord>(),
        }
    }
}

/// The error of a function that the host should have but does not.
pub(crate) fn missing(host: &Host) -> c_int {
    host.abi.map_or(NO_HOST, |a| a.err_other)
}

/// A handle in memory becomes `value`.
///
/// # Safety
/// `at` must point to a handle of the host.
pub(crate) unsafe fn set_handle(host: &Host, at: *mut c_void, value: HandleWord) {
    // SAFETY: as the caller promises; widths as the ABI says.
    unsafe {
        match host.abi {
            Some(abi) if abi.handle_bytes == 4 => at.cast::<u32>().write(value as u32),
            Some(_) => at.cast::<HandleWord>().write(value),
            None => {}
        }
    }
}

/// Where an error of a call is raised.
#[derive(Clone, Copy)]
pub(crate) enum On {
    Comm(HandleWord),
    File(HandleWord),
    Win(HandleWord),
}

/// Raises the error of a large count on a host that has only the small form of a call.
pub(crate) fn too_large(host: &Host, on: On) -> c_int {
    let code = host.abi.map_or(NO_HOST, |a| a.err_value_too_large);
    let (raise, handle) = match on {
        On::Comm(comm) => (host.next.comm_call_errhandler, comm),
        On::File(file) => (host.next.file_call_errhandler, file),
        On::Win(win) => (host.next.win_call_errhandler, win),
    };
    if let Some(raise) = raise {
        // SAFETY: raises the error as the host would on the communicator, file or window that was given.
        unsafe { raise(handle, code) };
    }
    code
}
