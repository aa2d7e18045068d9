//! Retired staging buffers: the MPI library may still use them, and nothing will ever show that the
//! MPI library has finished with them.
//!
//! The handle of a request shows whether the operation of the request has ended. A call without a
//! request has no such handle: after an error the receives inside the call may still be pending,
//! and they may complete at any later time. So the staging buffers of a call that ended with an
//! error, or that the program left by an exception or a jump, are never used again and never freed.
//! Finalization of MPI does not free them either, because another session may still be open.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Limit on the sum of the bytes of all retired buffers. Calls without a request are converted as
/// long as the sum does not exceed the limit. After that they are bypassed, because each further
/// error would retire more buffers.
const MAX_BYTES: usize = 64 << 20;

/// Sum of the bytes of all retired staging buffers.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Takes `owner`, which owns `bytes` bytes of staging buffers, out of use until the process ends.
#[cold]
pub(crate) fn retire<T>(owner: T, bytes: usize) {
    BYTES.fetch_add(bytes, Ordering::Relaxed);
    std::mem::forget(owner);
}

/// Returns true if calls without a request must be bypassed, because the retired staging buffers
/// have more than [`MAX_BYTES`] bytes.
#[inline]
pub(crate) fn is_full() -> bool {
    BYTES.load(Ordering::Relaxed) > MAX_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_retired_is_never_dropped_and_counts() {
        struct Owner;
        impl Drop for Owner {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let before = BYTES.load(Ordering::Relaxed);
        retire(Owner, 100);
        assert_eq!(BYTES.load(Ordering::Relaxed), before + 100);
        assert!(!is_full());
    }
}
