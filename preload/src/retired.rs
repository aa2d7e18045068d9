//! Staging buffers that the MPI library may still use although nothing will ever say that it is
//! done with them.
//!
//! A request says by its handle whether its operation goes on. A call without a request says
//! nothing: after an error its inner receives may still be pending, and they may complete at any
//! later time. So what was staged for a call that ended with an error is never used again and never
//! freed: not even by finalization, since another session may go on.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of bytes that are kept before calls without a request are no longer converted:
/// each further error would keep more.
const MAX_BYTES: usize = 64 << 20;

/// Bytes of all buffers that are kept.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Takes the owner of `bytes` bytes of staging buffers out of use until the process ends.
#[cold]
pub(crate) fn retire<T>(owner: T, bytes: usize) {
    BYTES.fetch_add(bytes, Ordering::Relaxed);
    std::mem::forget(owner);
}

/// Returns true if so much is kept that a call which could keep more is left to the MPI library.
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
