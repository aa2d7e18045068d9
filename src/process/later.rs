//! Calls that are put off until the thread has made each [`Awaited`](super::Awaited) that it is
//! making.

use std::cell::{Cell, RefCell};

thread_local! {
    /// Number of values that the thread is making by [`Awaited`](super::Awaited), one inside
    /// another.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Calls that wait for the depth to become 0, in order.
    static WAITING: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` now, or, if the thread is making the value of an [`Awaited`](super::Awaited), as soon
/// as it has made it. This is for functions of the program, such as its log function: they may need
/// the value that the thread is making, or wait for a thread that waits for the value.
///
/// If a thread makes a value while its thread-local variables are being destroyed, `f` is dropped.
pub fn later(f: impl FnOnce() + 'static) {
    if DEPTH.get() == 0 {
        return f();
    }
    let _ = WAITING.try_with(|waiting| waiting.borrow_mut().push(Box::new(f)));
}

/// Mark that the thread is making a value that others wait for. If no other mark is left when it is
/// dropped, the calls that wait are made.
pub(super) struct Making(());

impl Making {
    pub(super) fn begin() -> Making {
        DEPTH.set(DEPTH.get() + 1);
        Making(())
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            let waiting = WAITING.try_with(RefCell::take).unwrap_or_default();
            waiting.into_iter().for_each(|f| f());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::process::Awaited;

    /// Tests that a call that is put off finds the values, and that its own calls are made at once.
    #[test]
    fn a_call_waits_for_the_outermost_value() {
        let (outer, inner) = (Arc::new(Awaited::new()), Arc::new(Awaited::new()));
        let seen = Arc::new(Awaited::new());
        outer.get_or_init(|| {
            inner.get_or_init(|| 1);
            let (outer, inner, seen) = (outer.clone(), inner.clone(), seen.clone());
            later(move || {
                let sum = outer.get_or_init(|| 0) + inner.get_or_init(|| 0);
                later(move || _ = seen.get_or_init(|| sum));
            });
            2
        });
        assert_eq!(seen.get(), Some(&3));
    }
}
