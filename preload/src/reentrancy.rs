//! Distinguishes ddtc's own calls of the MPI library from the program's.

use std::cell::Cell;

use crate::stack::here;

thread_local! {
    /// Stack address of ddtc's outermost own call, or 0. A call at that address or above it is the
    /// program's: ddtc's own call was abandoned.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// Guard during which this thread's calls of the MPI library are ddtc's own.
pub(crate) struct Inside(());

impl Inside {
    /// Begins ddtc's own calls; `None` if this thread is making calls of ddtc already, or if its
    /// thread-local variables are gone.
    #[inline(always)] // The address must be that of the frame that calls the MPI library.
    pub(crate) fn enter() -> Option<Inside> {
        let place = here();
        let enter = |inside: &Cell<usize>| {
            // An inner call makes no `Inside`, because dropping it would end the outer call's
            // section.
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

/// Returns true if this thread is making calls of ddtc's own to the MPI library. Late in the end of
/// a thread, when its thread-local variables are gone, this is true too.
#[inline]
pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(|inside| inside.get() != 0 && here() < inside.get()).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::deeper;

    #[test]
    fn a_call_that_never_returned_is_over() {
        assert!(!is_inside());
        let inside = Inside::enter();
        assert!(inside.is_some() && deeper(is_inside) && deeper(|| Inside::enter().is_none()));
        drop(inside);
        assert!(!deeper(is_inside));
        // A jump out of one of ddtc's own calls runs no destructor.
        deeper(|| std::mem::forget(Inside::enter()));
        assert!(!is_inside());
        assert!(deeper(|| deeper(is_inside)));
        let again = Inside::enter();
        assert!(again.is_some());
        drop(again);
        assert!(!deeper(|| deeper(is_inside)));
    }
}
