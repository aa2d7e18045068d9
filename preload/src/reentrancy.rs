//! Calls of our own to the host, told from the program's.

use std::cell::Cell;

use crate::stack::here;

thread_local! {
    /// Where on the stack the outermost call of our own was made, or 0. A call that is not deeper is
    /// the program's: the one of our own never returned.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, this thread makes calls of our own to the host.
pub(crate) struct Inside(());

impl Inside {
    #[inline(always)] // The place is that of the frame that calls the host.
    pub(crate) fn enter() -> Option<Inside> {
        let place = here();
        let enter = |inside: &Cell<usize>| {
            // One that is made only to be dropped would end the outer one.
            (inside.get() <= place).then(|| {
                inside.set(place);
                Inside(())
            })
        };
        INSIDE.try_with(enter).ok().flatten()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(0));
    }
}

/// Says whether this thread makes calls of our own to the host.
#[inline]
pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(|inside| inside.get() != 0 && here() < inside.get()).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn deeper<R>(f: impl FnOnce() -> R) -> R {
        let room = std::hint::black_box([0u8; 256]);
        let result = f();
        std::hint::black_box(&room);
        result
    }

    #[test]
    fn a_call_that_never_returned_is_over() {
        assert!(!is_inside());
        let inside = Inside::enter();
        assert!(inside.is_some() && deeper(is_inside) && deeper(|| Inside::enter().is_none()));
        drop(inside);
        assert!(!deeper(is_inside));
        // A jump out of a call of our own runs no destructor.
        deeper(|| std::mem::forget(Inside::enter()));
        assert!(!is_inside());
        assert!(deeper(|| deeper(is_inside)));
        let again = Inside::enter();
        assert!(again.is_some());
        drop(again);
        assert!(!deeper(|| deeper(is_inside)));
    }
}
