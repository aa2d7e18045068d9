//! A shared reference that threads store and load atomically.

use std::sync::atomic::{AtomicPtr, Ordering};

/// A reference to a value that lives as long as the process, or none.
///
/// Only references that live forever can be stored. A thread that loads one sees the value as it
/// was when the reference was stored, or later. So loading and storing are safe without any promise
/// by the caller.
#[repr(transparent)]
pub(crate) struct AtomicRef<T: Sync + 'static>(AtomicPtr<T>);

impl<T: Sync + 'static> AtomicRef<T> {
    /// Returns a cell that holds no reference.
    pub(crate) const fn none() -> AtomicRef<T> {
        AtomicRef(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns the reference that was stored last, if any.
    #[inline]
    pub(crate) fn load(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or comes from a reference that lives forever, because only
        // `store` writes it. `Acquire` here and `Release` in `store` make everything visible that
        // was written to the value before the reference was stored.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Stores a reference, or none.
    #[inline]
    pub(crate) fn store(&self, value: Option<&'static T>) {
        let value = value.map_or(std::ptr::null_mut(), |value| std::ptr::from_ref(value).cast_mut());
        self.0.store(value, Ordering::Release);
    }
}
