//! Access to statuses of the MPI library. Some fields are read and written at the offsets that the
//! ABI fixes, other fields by functions of the MPI library.

use std::ffi::{c_int, c_void};

use ddtc_hosts::abi::{Abi, MPICH, OPEN_MPI, STANDARD};

use crate::host::Host;

/// Memory for one status of the MPI library, whatever its ABI is.
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

    /// Returns the program's status `user`, or the address of this value if `user` is
    /// `MPI_STATUS_IGNORE`.
    pub(crate) fn unless(&mut self, abi: &Abi, user: *mut c_void) -> *mut c_void {
        if user.addr() == abi.status_ignore { std::ptr::from_mut(self).cast() } else { user }
    }
}

/// Value of a status's source that no message has: it is not a rank, and neither the wildcard nor
/// the null process of any ABI.
const NOBODY: c_int = -0x0dd7_c000;

/// Mark that is written to a status before a call. After the call it shows whether the MPI library
/// has written the status. The error code of the call does not show that, because MPICH returns
/// success for a failed call after an error handler of the program has returned.
#[derive(Clone, Copy)]
pub(crate) enum Mark {
    /// Mark for all statuses except those of reads from files. The source becomes [`NOBODY`], which
    /// no message has, `MPI_ERROR` keeps the program's value, and all other fields become 0.
    Source,
    /// Mark for the status of a read from a file. The number of bytes becomes this number, which is
    /// larger than the read can return. The MPI library writes nothing but the number of bytes to
    /// the status of a read, so a mark in the source would not be overwritten.
    Bytes(i64),
}

/// A marked status, with the contents that it had before.
#[derive(Clone, Copy)]
pub(crate) struct Marked {
    old: Status,
    mark: Mark,
}

impl Mark {
    /// Returns the mark for a read of at most `max_bytes` bytes from a file.
    pub(crate) fn past(max_bytes: i64) -> Mark {
        Mark::Bytes(max_bytes.saturating_add(1))
    }

    /// Writes the mark to a status. Returns a value that keeps the old contents of the status.
    ///
    /// # Safety
    /// `status` must point to a status of the MPI library, whose ABI must be `abi`.
    pub(crate) unsafe fn set(self, host: &Host, abi: &Abi, status: *mut c_void) -> Marked {
        let mut old = Status::new();
        // SAFETY: the caller promises a status, which has `abi.status_bytes` bytes and aligned
        // integers at `abi.status_source` and `abi.status_error`. `old` has room for a status of
        // any ABI (checked at compile time above).
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
    /// Returns true if the MPI library has written the status since it was marked. If not, restores
    /// the old contents of the status.
    ///
    /// # Safety
    /// `status` must point to the status that was marked, and `abi` must be the ABI of the MPI
    /// library.
    pub(crate) unsafe fn written(&self, host: &Host, abi: &Abi, status: *mut c_void) -> bool {
        // SAFETY: the caller promises the marked status, which has `abi.status_bytes` bytes and an
        // aligned integer at `abi.status_source`. `self.old` has at least as many bytes.
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

    /// Restores the field `MPI_ERROR` of a status of a received message. Calls that complete one
    /// message leave this field unchanged (MPI 5.0, 3.2.5). Intel MPI over libfabric sets it to 0
    /// in a blocking receive of a contiguous type, which staged bytes have (2021.12 and 2021.18).
    ///
    /// # Safety
    /// As for [`Marked::written`].
    pub(crate) unsafe fn restore_error(&self, abi: &Abi, status: *mut c_void) {
        // SAFETY: `self.old` holds a whole status, and the caller promises another.
        unsafe { set_error(abi, status, error(abi, (&raw const self.old).cast())) }
    }
}

/// Statuses of a call on an array of requests. They are the program's, or ddtc's own if the program
/// wants no statuses and ddtc reads them.
pub(crate) struct Statuses {
    _own: Vec<u64>,
    /// Address of the first status, in the program's memory or in `_own`. If the program has passed
    /// `MPI_STATUSES_IGNORE` and ddtc reads no statuses, `at` is `MPI_STATUSES_IGNORE` too. If the
    /// program has passed null and `MPI_STATUSES_IGNORE` is another value, which is an error of the
    /// program, `at` is null.
    pub(crate) at: *mut c_void,
    /// Bytes of one status.
    bytes: usize,
}

impl Statuses {
    /// Returns the statuses for `n` requests: those at `user`, or statuses of ddtc's own if `user`
    /// is `MPI_STATUSES_IGNORE` and `needed` is true. `needed`: ddtc reads the statuses.
    pub(crate) fn new(abi: &Abi, user: *mut c_void, n: usize, needed: bool) -> Statuses {
        let mut own = Vec::new();
        let mut at = user;
        if needed && user.addr() == abi.status_ignore {
            own.resize((n * abi.status_bytes).div_ceil(8), 0u64);
            at = own.as_mut_ptr().cast();
        }
        Statuses { _own: own, at, bytes: abi.status_bytes }
    }

    /// Returns the address of the status with index `i`.
    pub(crate) fn get(&self, i: usize) -> *mut c_void {
        self.at.wrapping_byte_add(i * self.bytes)
    }
}

/// Returns the field `MPI_ERROR` of a status.
///
/// # Safety
/// `status` must point to a status of the MPI library, whose ABI must be `abi`.
pub(crate) unsafe fn error(abi: &Abi, status: *const c_void) -> c_int {
    // SAFETY: the caller promises a status, which has an aligned integer at `abi.status_error`.
    unsafe { *status.byte_add(abi.status_error).cast::<c_int>() }
}

/// Returns true if a status is empty. An empty status has the source `MPI_ANY_SOURCE`, which no
/// received message has (MPI 5.0, 3.7.3).
///
/// # Safety
/// `status` must point to a status of the MPI library, whose ABI must be `abi`.
pub(crate) unsafe fn is_empty(abi: &Abi, status: *const c_void) -> bool {
    // SAFETY: the caller promises a status, which has an aligned integer at `abi.status_source`.
    unsafe { *status.byte_add(abi.status_source).cast::<c_int>() == abi.any_source }
}

/// Writes `class` to the field `MPI_ERROR` of a status.
///
/// # Safety
/// `status` must point to a status of the MPI library, whose ABI must be `abi`.
pub(crate) unsafe fn set_error(abi: &Abi, status: *mut c_void, class: c_int) {
    // SAFETY: the caller promises a status, which has an aligned integer at `abi.status_error`.
    unsafe { *status.byte_add(abi.status_error).cast::<c_int>() = class };
}

/// Sets the number of received bytes in a status. Does nothing if the MPI library cannot set it, or
/// has only `MPI_Status_set_elements` and the number does not fit into an `int`.
///
/// # Safety
/// `status` must point to a status of the MPI library.
pub(crate) unsafe fn set_bytes(host: &Host, status: *mut c_void, bytes: u64) {
    // SAFETY: the caller promises a status; `host.packed` is `MPI_PACKED`, whose elements are
    // bytes.
    unsafe {
        match (host.f.status_set_elements_x, host.f.status_set_elements, c_int::try_from(bytes)) {
            (Some(set), ..) => set(status, host.packed, bytes as i64),
            (None, Some(set), Ok(bytes)) => set(status, host.packed, bytes),
            (None, ..) => 0,
        };
    }
}

/// Returns true if the operation of a status was cancelled.
///
/// # Safety
/// `status` must point to a status of the MPI library.
pub(crate) unsafe fn cancelled(host: &Host, status: *const c_void) -> bool {
    let mut flag = 0;
    // SAFETY: the caller promises a status, and `flag` is a local integer.
    host.f.test_cancelled.is_some_and(|f| unsafe { f(status, &raw mut flag) } == 0 && flag != 0)
}

/// Returns the number of received bytes in a status, limited to `max_bytes`. Returns 0 if the MPI
/// library does not know the number or returns an error.
///
/// # Safety
/// `status` must point to a status of the MPI library.
pub(crate) unsafe fn bytes(host: &Host, status: *const c_void, max_bytes: i64) -> i64 {
    let (mut small, mut large): (c_int, i64) = (0, 0);
    // SAFETY: the caller promises a status, `host.packed` is `MPI_PACKED`, and `small` and `large`
    // are local integers of the widths that the functions write.
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
    // `MPI_UNDEFINED` is negative.
    if code == 0 { large.clamp(0, max_bytes) } else { 0 }
}
