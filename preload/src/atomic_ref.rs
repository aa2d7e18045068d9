//! A shared reference that threads store and load atomically.

use std::sync::atomic::{AtomicPtr, Ordering};

/// Cell that holds a reference to a value that lives as long as the process, or no reference.
///
/// Only references that live forever can be stored. A thread that loads a reference sees the value
/// in the state that it had when the reference was stored, or in a later state. So the caller of a
/// load or a store need not promise anything for the access to be safe.
#[repr(transparent)]
pub(crate) struct AtomicRef<T: Sync + 'static>(AtomicPtr<T>);

impl<T: Sync + 'static> AtomicRef<T> {
    /// Returns a cell that holds no reference.
    pub(crate) const fn none() -> AtomicRef<T> {
        AtomicRef(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns the reference that was stored last; `None` if the cell holds no reference.
    #[inline]
    pub(crate) fn load(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or comes from a reference that lives forever, because only
        // `store` writes it. `Acquire` here and `Release` in `store` make everything visible that
        // was written to the value before the reference was stored.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Stores a reference in the cell, or empties the cell if `value` is `None`.
    #[inline]
    pub(crate) fn store(&self, value: Option<&'static T>) {
        let value = value.map_or(std::ptr::null_mut(), |value| std::ptr::from_ref(value).cast_mut());
        self.0.store(value, Ordering::Release);
    }
}
