//! Attribute keyvals of the MPI library, each made anew in every epoch.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI64, Ordering};

/// A keyval of the current epoch, made on first use; [`NO_KEYVAL`] before that.
pub(crate) struct Keyval(AtomicI64);

const NO_KEYVAL: i64 = i64::MIN;

impl Keyval {
    pub(crate) const fn new() -> Keyval {
        Keyval(AtomicI64::new(NO_KEYVAL))
    }

    /// Returns the keyval, made by `make` if there is none yet. No lock is held meanwhile, so two
    /// threads may both make one. The second one is given to `free`, and the first one is returned
    /// to both threads.
    pub(crate) fn get(&self, make: impl Fn() -> Option<c_int>, free: impl Fn(c_int)) -> Option<c_int> {
        let known = self.0.load(Ordering::Acquire);
        if known != NO_KEYVAL {
            return Some(known as c_int);
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

    /// Returns the keyval of the epoch that ends, if one was made, and forgets it.
    pub(crate) fn take(&self) -> Option<c_int> {
        let old = self.0.swap(NO_KEYVAL, Ordering::AcqRel);
        (old != NO_KEYVAL).then_some(old as c_int)
    }
}
