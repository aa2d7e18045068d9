//! Attribute keyvals of the MPI library. Each is made anew in every epoch, which lasts from the
//! initialization of MPI to its finalization.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI64, Ordering};

/// Keyval of the MPI library in the current epoch; [`NO_KEYVAL`] until its first use makes it.
pub(crate) struct Keyval(AtomicI64);

const NO_KEYVAL: i64 = i64::MIN;

impl Keyval {
    pub(crate) const fn new() -> Keyval {
        Keyval(AtomicI64::new(NO_KEYVAL))
    }

    /// Returns the keyval. If there is none yet, calls `make` for it. No lock is held while `make`
    /// runs, so two threads may both make a keyval. Then the keyval that is stored first is
    /// returned to both threads, and the other keyval is passed to `free`.
    pub(crate) fn get(&self, make: impl Fn() -> Option<c_int>, free: impl Fn(c_int)) -> Option<c_int> {
        if let Some(known) = self.known() {
            return Some(known);
        }
        let made = make()?;
        match self.0.compare_exchange(NO_KEYVAL, i64::from(made), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(made),
            Err(other) => {
                free(made);
                Some(other as c_int)
            }
        }
    }

    /// Returns the keyval, if there is one.
    pub(crate) fn known(&self) -> Option<c_int> {
        let known = self.0.load(Ordering::Acquire);
        (known != NO_KEYVAL).then_some(known as c_int)
    }

    /// Returns the keyval of the epoch that ends, if there is one, and removes it from this value.
    pub(crate) fn take(&self) -> Option<c_int> {
        let old = self.0.swap(NO_KEYVAL, Ordering::AcqRel);
        (old != NO_KEYVAL).then_some(old as c_int)
    }
}
