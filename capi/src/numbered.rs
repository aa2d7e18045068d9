//! Tables of objects that are identified by numbers: info objects, error handlers, operations, and
//! error classes and codes. MPI's Fortran handles are such numbers.
//!
//! A table gives out each number only once in the life of the process, so the number of a freed
//! object names nothing. The C handle of an object is a pointer with the value of the object's
//! number. This value lies above the ABI's predefined handles, and the pointer is never
//! dereferenced.

use std::collections::BTreeMap;

use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;

use crate::arguments::Type;

/// First number after those that the ABI reserves for predefined handles.
pub(crate) const FIRST_HANDLE: i32 = 4096;

/// A table of live objects, indexed by their numbers.
pub(crate) struct Numbered<T> {
    /// Number of the next object.
    next: i32,
    live: BTreeMap<i32, T>,
}

impl<T> Numbered<T> {
    /// Returns an empty table whose first object will have the number `first`.
    pub(crate) const fn new(first: i32) -> Numbered<T> {
        Numbered { next: first, live: BTreeMap::new() }
    }

    /// Adds an object and returns its number, or an error of class `NoMem` after all numbers up to
    /// `i32::MAX - 1` were given out.
    pub(crate) fn insert(&mut self, operation: &'static str, object: T) -> Result<i32> {
        let number = self.next;
        self.next = number.checked_add(1).ok_or_else(|| {
            Error::new(ErrorClass::NoMem, operation, "objects", number, "all numbers were given out")
        })?;
        self.live.insert(number, object);
        Ok(number)
    }

    pub(crate) fn get(&mut self, number: i32) -> Option<&mut T> {
        self.live.get_mut(&number)
    }

    pub(crate) fn remove(&mut self, number: i32) -> Option<T> {
        self.live.remove(&number)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.live.values()
    }

    /// Returns the highest number that was given out so far. If none was given out, returns the
    /// number before the first one.
    pub(crate) fn last(&self) -> i32 {
        self.next - 1
    }
}

/// Returns the number of a C handle, or 0 if the value of the handle does not fit in an `i32`. No
/// object has the number 0.
pub(crate) fn number(handle: Type) -> i32 {
    i32::try_from(handle.addr()).unwrap_or(0)
}

/// Returns the C handle of a number.
pub(crate) fn pointer(number: i32) -> Type {
    std::ptr::without_provenance_mut(number as usize)
}
