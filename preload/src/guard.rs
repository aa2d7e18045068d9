//! No panic leaves this library: it would end, or run through, somebody else's program.
//!
//! A panic inside [`guard`] is caught. Calls into the host, which may run the program's code, stand
//! outside of it: an exception of the program must pass our frames, and no Rust function can catch
//! one and let it go on. The frames that exceptions pass would let a panic pass too, so a panic
//! outside of a guard ends the process where it begins ([`end_by_panics`]).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::process::Awaited;

/// Panics that were caught: faults of ours.
pub(crate) static PANICS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Guards that this thread is in. None runs the program's code, so each ends.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
}

fn count(change: impl FnOnce(u32) -> u32) {
    let _ = GUARDS.try_with(|guards| guards.set(change(guards.get())));
}

/// Runs `f`; a panic is counted and gives `None`. What it touches must be valid at any point: atomics, and locks that ignore
/// poisoning. It must not run the program's code.
#[inline]
pub(crate) fn guard<T>(f: impl FnOnce() -> T) -> Option<T> {
    count(|guards| guards + 1);
    let result = catch_unwind(AssertUnwindSafe(f));
    count(|guards| guards - 1);
    match result {
        Ok(value) => Some(value),
        Err(payload) => {
            PANICS.fetch_add(1, Ordering::Relaxed);
            // Its destructor could panic again.
            std::mem::forget(payload);
            None
        }
    }
}

/// From now on a panic outside of every guard ends the process.
pub(crate) fn end_by_panics() {
    static DONE: Awaited<()> = Awaited::new();
    DONE.get_or_init(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            // A panic while the thread's own data goes away is nobody's to catch either.
            if GUARDS.try_with(Cell::get).unwrap_or(0) == 0 {
                std::process::abort();
            }
        }));
    });
}
