//! A reference that threads exchange.

use std::sync::atomic::{AtomicPtr, Ordering};

/// A reference to a value that lives as long as the process, or none.
///
/// Only references that live forever can be stored, and a thread that loads one sees the value as it
/// was when the reference was stored, or later. So no caller has to promise anything.
#[repr(transparent)]
pub(crate) struct AtomicRef<T: Sync + 'static>(AtomicPtr<T>);

impl<T: Sync + 'static> AtomicRef<T> {
    /// Of none.
    pub(crate) const fn none() -> AtomicRef<T> {
        AtomicRef(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns the reference that was stored last.
    #[inline]
    pub(crate) fn load(&self) -> Option<&'static T> {
        // SAFETY: null, or the address of a reference that lives forever, since `store` alone writes.
        // `Acquire` here and `Release` there order all that was written to the value before.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Stores a reference, or none.
    #[inline]
    pub(crate) fn store(&self, value: Option<&'static T>) {
        let value = value.map_or(std::ptr::null_mut(), |value| std::ptr::from_ref(value).cast_mut());
        self.0.store(value, Ordering::Release);
    }
}
