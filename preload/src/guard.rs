//! Containment of panics: a panic that left this library would unwind through the program.
//!
//! A panic inside [`guard`] is caught. Calls of the MPI library that may run the program's code are
//! outside of every guard, because an exception of the program must pass the frames of ddtc, and no
//! Rust function can catch a foreign exception and let it go on. Frames that let exceptions pass
//! would let a panic pass too. So a panic outside of every guard ends the process at once
//! ([`end_by_panics`]).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use ddtc::internal::process::Awaited;

/// Number of panics that were caught. Each caught panic is a bug of ddtc.
pub(crate) static PANICS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Number of nested guards that this thread is in. No code in a guard runs the program's code,
    /// so no exception or `longjmp` of the program skips the decrement at the end of a guard.
    static GUARDS: Cell<u32> = const { Cell::new(0) };
}

fn count(change: impl FnOnce(u32) -> u32) {
    GUARDS.with(|guards| guards.set(change(guards.get())));
}

/// Runs `f`. If `f` panics, counts the panic and returns `None`. A panic may end `f` at any point,
/// so `f` may change only values that are valid at any point: atomics, and values under locks that
/// ignore poisoning. It must not run the program's code.
#[inline]
pub(crate) fn guard<T>(f: impl FnOnce() -> T) -> Option<T> {
    count(|guards| guards + 1);
    let result = catch_unwind(AssertUnwindSafe(f));
    count(|guards| guards - 1);
    match result {
        Ok(value) => Some(value),
        Err(payload) => {
            PANICS.fetch_add(1, Ordering::Relaxed);
            // The payload is not dropped, because its destructor could panic again.
            std::mem::forget(payload);
            None
        }
    }
}

/// Makes every later panic outside of a guard end the process.
pub(crate) fn end_by_panics() {
    static DONE: Awaited<()> = Awaited::new();
    DONE.get_or_init(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            if GUARDS.with(Cell::get) == 0 {
                std::process::abort();
            }
        }));
    });
}
