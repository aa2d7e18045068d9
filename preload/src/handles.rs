//! Reading and writing of MPI handles in memory, and error codes of calls that cannot be passed on
//! to the MPI library.

use std::ffi::{c_int, c_void};

use crate::host::{HandleWord, Host};

/// Error code of a call if no MPI library is loaded, or if its ABI and so its error codes are not
/// known. It is the value of `MPI_ERR_OTHER` in MPICH, which is an error code in every ABI.
pub(crate) const NO_HOST: c_int = 15;

/// Returns the handle at the address `at`, as a word. Returns 0 if the ABI of the MPI library is
/// unknown.
///
/// # Safety
/// `at` must point to a handle of the MPI library.
#[inline]
pub(crate) unsafe fn handle_at(host: &Host, at: *const c_void) -> HandleWord {
    // SAFETY: the caller promises that `at` points to a handle, which is as wide as the ABI says.
    // If the ABI is unknown, nothing is read.
    unsafe {
        match host.handle_bytes {
            4 => HandleWord::from(*at.cast::<u32>()),
            0 => 0,
            _ => *at.cast::<HandleWord>(),
        }
    }
}

/// Returns the rank at the other end of a matched receive if it is known: `MPI_PROC_NULL` for the
/// message `MPI_MESSAGE_NO_PROC`, otherwise `None`.
///
/// # Safety
/// `message` must be null or point to the handle of a message.
pub(crate) unsafe fn sender_of(host: &Host, message: *const c_void) -> Option<c_int> {
    // SAFETY: the pointer is not null, so it points to a handle, as the caller promises.
    let is_no_proc =
        !message.is_null() && unsafe { handle_at(host, message) } & host.mask == host.message_no_proc;
    host.abi.filter(|_| is_no_proc).map(|abi| abi.proc_null)
}

/// Returns the error code of a call of a function that the MPI library should have but lacks.
pub(crate) fn missing(host: &Host) -> c_int {
    host.abi.map_or(NO_HOST, |a| a.err_other)
}

/// Writes `value` to a handle in memory. Does nothing if the ABI of the MPI library is unknown.
///
/// # Safety
/// `at` must point to a handle of the MPI library, which may be written.
pub(crate) unsafe fn set_handle(host: &Host, at: *mut c_void, value: HandleWord) {
    // SAFETY: the caller promises that `at` points to a handle that may be written and is as wide
    // as the ABI says. If the ABI is unknown, nothing is written.
    unsafe {
        match host.abi {
            Some(abi) if abi.handle_bytes == 4 => at.cast::<u32>().write(value as u32),
            Some(_) => at.cast::<HandleWord>().write(value),
            None => {}
        }
    }
}

/// Object on which an error of a call is raised.
#[derive(Clone, Copy)]
pub(crate) enum On {
    Comm(HandleWord),
    File(HandleWord),
    Win(HandleWord),
}

/// Raises the error of a count that does not fit into an `int`, and returns its error code. Called
/// if the MPI library has no form of the call that takes larger counts.
pub(crate) fn too_large(host: &Host, on: On) -> c_int {
    let code = host.abi.map_or(NO_HOST, |a| a.err_value_too_large);
    let (raise, handle) = match on {
        On::Comm(comm) => (host.next.comm_call_errhandler, comm),
        On::File(file) => (host.next.file_call_errhandler, file),
        On::Win(win) => (host.next.win_call_errhandler, win),
    };
    if let Some(raise) = raise {
        // SAFETY: the handle is the communicator, file or window that the program passed to the
        // call. The function raises the error there, as the MPI library would for the call itself.
        unsafe { raise(handle, code) };
    }
    code
}
