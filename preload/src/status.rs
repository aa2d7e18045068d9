//! Statuses of the host, read by their layout and through the host's own functions.

use std::ffi::{c_int, c_void};

use ddtc_hosts::abi::{Abi, MPICH, OPEN_MPI, STANDARD};

use crate::host::Host;

/// Room for any host's status.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct Status([u64; 4]);

const _: () = {
    let room = size_of::<Status>();
    assert!(MPICH.status_bytes <= room && OPEN_MPI.status_bytes <= room && STANDARD.status_bytes <= room);
};

impl Status {
    pub(crate) const fn new() -> Status {
        Status([0; 4])
    }

    /// Returns the user's status, or this one where the user wants none.
    pub(crate) fn unless(&mut self, abi: &Abi, user: *mut c_void) -> *mut c_void {
        if user.addr() == abi.status_ignore { std::ptr::from_mut(self).cast() } else { user }
    }
}

/// No rank, no wildcard, no null process of any ABI.
const NOBODY: c_int = -0x0dd7_c000;

/// Mark in a status before a call, which shows whether the host has written it: where an error handler of the program has
/// returned, MPICH returns success.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    /// A source that no message has, and nothing else but its `MPI_ERROR`, which is the user's.
    Source,
    /// More bytes than a read from a file can give: it writes no more of a status than how much was read.
    Bytes(i64),
}

/// The user's status before a call.
#[derive(Clone, Copy)]
pub(crate) struct Marked {
    old: Status,
    mark: Mark,
}

impl Mark {
    /// For a read of at most `max_bytes` bytes from a file.
    pub(crate) fn past(max_bytes: i64) -> Mark {
        Mark::Bytes(max_bytes.saturating_add(1))
    }

    /// Marks a status.
    ///
    /// # Safety
    /// `status` must point to a status of the host.
    pub(crate) unsafe fn set(self, host: &Host, abi: &Abi, status: *mut c_void) -> Marked {
        let mut old = Status::new();
        // SAFETY: the host's statuses have this length and these fields, and integers in them are
        // aligned. `old` has room for one of any ABI.
        unsafe {
            let own: *mut c_void = (&raw mut old).cast();
            std::ptr::copy_nonoverlapping(status.cast::<u8>(), own.cast(), abi.status_bytes);
            match self {
                Mark::Source => {
                    let error = error(abi, status);
                    std::ptr::write_bytes(status.cast::<u8>(), 0, abi.status_bytes);
                    set_error(abi, status, error);
                    status.byte_add(abi.status_source).cast::<c_int>().write(NOBODY);
                }
                Mark::Bytes(mark) => set_bytes(host, status, mark as u64),
            }
        }
        Marked { old, mark: self }
    }
}

impl Marked {
    /// Says whether the host has written the status; if not, it gets its old value back.
    ///
    /// # Safety
    /// As [`Mark::set`], with the same status.
    pub(crate) unsafe fn written(&self, host: &Host, abi: &Abi, status: *mut c_void) -> bool {
        // SAFETY: as in `Mark::set`.
        unsafe {
            let marked = match self.mark {
                Mark::Source => status.byte_add(abi.status_source).cast::<c_int>().read() == NOBODY,
                Mark::Bytes(mark) => bytes(host, status, mark) == mark,
            };
            if marked {
                let old: *const u8 = (&raw const self.old).cast();
                std::ptr::copy_nonoverlapping(old, status.cast::<u8>(), abi.status_bytes);
            }
            !marked
        }
    }
}

/// Statuses of an array call: the user's, or ours where the user wants none.
pub(crate) struct Statuses {
    _own: Vec<u64>,
    pub(crate) at: *mut c_void,
    bytes: usize,
}

impl Statuses {
    /// Statuses for `n` requests. `needed`: somebody here reads them.
    pub(crate) fn new(abi: &Abi, user: *mut c_void, n: usize, needed: bool) -> Statuses {
        let mut own = Vec::new();
        let mut at = user;
        if needed && user.addr() == abi.status_ignore {
            own.resize((n * abi.status_bytes).div_ceil(8), 0u64);
            at = own.as_mut_ptr().cast();
        }
        Statuses { _own: own, at, bytes: abi.status_bytes }
    }

    pub(crate) fn get(&self, i: usize) -> *mut c_void {
        self.at.wrapping_byte_add(i * self.bytes)
    }
}

/// The field `MPI_ERROR`.
///
/// # Safety
/// `status` must point to a status of the host.
pub(crate) unsafe fn error(abi: &Abi, status: *const c_void) -> c_int {
    // SAFETY: the field's place in the host's status; integers there are aligned.
    unsafe { *status.byte_add(abi.status_error).cast::<c_int>() }
}

/// Says whether a status is empty: no message came from any source (MPI 5.0, 3.7.3).
///
/// # Safety
/// As [`error`].
pub(crate) unsafe fn is_empty(abi: &Abi, status: *const c_void) -> bool {
    // SAFETY: as in `error`.
    unsafe { *status.byte_add(abi.status_source).cast::<c_int>() == abi.any_source }
}

/// Writes the field `MPI_ERROR`.
///
/// # Safety
/// As [`error`].
pub(crate) unsafe fn set_error(abi: &Abi, status: *mut c_void, class: c_int) {
    // SAFETY: as in `error`.
    unsafe { *status.byte_add(abi.status_error).cast::<c_int>() = class };
}

/// Says that so many bytes were received.
///
/// # Safety
/// As [`error`].
pub(crate) unsafe fn set_bytes(host: &Host, status: *mut c_void, bytes: u64) {
    // SAFETY: a status and a named type.
    unsafe {
        match (host.f.status_set_elements_x, host.f.status_set_elements, c_int::try_from(bytes)) {
            (Some(set), ..) => set(status, host.packed, bytes as i64),
            (None, Some(set), Ok(bytes)) => set(status, host.packed, bytes),
            (None, ..) => 0,
        };
    }
}

/// Says whether the operation of a status was cancelled.
///
/// # Safety
/// As [`error`].
pub(crate) unsafe fn cancelled(host: &Host, status: *const c_void) -> bool {
    let mut flag = 0;
    // SAFETY: a status, and a flag to write to.
    host.f.test_cancelled.is_some_and(|f| unsafe { f(status, &raw mut flag) } == 0 && flag != 0)
}

/// Returns the bytes that were received, at most `max_bytes`.
///
/// # Safety
/// As [`error`].
pub(crate) unsafe fn bytes(host: &Host, status: *const c_void, max_bytes: i64) -> i64 {
    let (mut small, mut large): (c_int, i64) = (0, 0);
    // SAFETY: a status, a named type, a number to write to.
    let code = unsafe {
        match (host.f.get_count_c.or(host.f.get_elements_x), host.f.get_count) {
            (Some(get_count), None) => get_count(status, host.packed, &raw mut large),
            (Some(get_count), _) if max_bytes > i64::from(c_int::MAX) => {
                get_count(status, host.packed, &raw mut large)
            }
            (_, Some(get_count)) => {
                let code = get_count(status, host.packed, &raw mut small);
                large = i64::from(small);
                code
            }
            (None, None) => -1,
        }
    };
    // An undefined count is negative.
    if code == 0 { large.clamp(0, max_bytes) } else { 0 }
}
