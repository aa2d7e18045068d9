//! No panic leaves this library: it would abort somebody else's program.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Panics that were caught: faults of ours.
pub(crate) static PANICS: AtomicU64 = AtomicU64::new(0);

/// Runs `f`; a panic is counted and gives `None`. What it touches must be valid at any point: atomics, and locks that ignore
/// poisoning.
#[inline]
pub(crate) fn guard<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            PANICS.fetch_add(1, Ordering::Relaxed);
            // Its destructor could panic again.
            std::mem::forget(payload);
            None
        }
    }
}
