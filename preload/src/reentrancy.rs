//! Distinction between ddtc's own calls of the MPI library and the program's.

use std::cell::Cell;

use crate::stack::here;

thread_local! {
    /// Stack address of the outermost call of the MPI library that ddtc itself is making on this
    /// thread; 0 if there is no such call. A call at that address or above it is the program's,
    /// because then ddtc's own call was abandoned, for example by a jump.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

/// Guard during whose lifetime this thread's calls of the MPI library are ddtc's own.
pub(crate) struct Inside(());

impl Inside {
    /// Makes a guard; `None` if this thread is making calls of ddtc's own already, or if its
    /// thread-local variables are already destroyed.
    #[inline(always)] // The address must be that of the frame that calls the MPI library.
    pub(crate) fn enter() -> Option<Inside> {
        let place = here();
        let enter = |inside: &Cell<usize>| {
            // An inner call makes no guard, because dropping it would end the section of the outer
            // call.
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

/// Returns true if this thread is making calls of ddtc's own to the MPI library. Also returns true
/// if the thread is ending and its thread-local variables are already destroyed.
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
        // Does what a jump out of one of ddtc's own calls does: no destructor runs.
        deeper(|| std::mem::forget(Inside::enter()));
        assert!(!is_inside());
        assert!(deeper(|| deeper(is_inside)));
        let again = Inside::enter();
        assert!(again.is_some());
        drop(again);
        assert!(!deeper(|| deeper(is_inside)));
    }
}
