//! Objects of the library's own that are named by numbers, as MPI's Fortran handles are: info objects, error handlers, error codes.
//!
//! A number is given out once in the life of the process, so that of a freed object names nothing. As a C handle it is the
//! pointer of that value: above the ABI's predefined handles, and never followed.

use std::collections::BTreeMap;

use ddtc::internal::error::{Error, ErrorClass, Result};
use ddtc::internal::methods::*;

use crate::arguments::Type;

/// First handle past those that the ABI reserves for predefined ones.
pub(crate) const FIRST_HANDLE: i32 = 4096;

pub(crate) struct Numbered<T> {
    next: i32,
    live: BTreeMap<i32, T>,
}

impl<T> Numbered<T> {
    /// None yet; the first will be `first`.
    pub(crate) const fn new(first: i32) -> Numbered<T> {
        Numbered { next: first, live: BTreeMap::new() }
    }

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

    /// Returns the highest number that was given out, or the one below the first.
    pub(crate) fn last(&self) -> i32 {
        self.next - 1
    }
}

/// Returns the number of a C handle; 0, which is none, for what cannot be one.
pub(crate) fn number(handle: Type) -> i32 {
    i32::try_from(handle.addr()).unwrap_or(0)
}

/// Returns the C handle of a number.
pub(crate) fn pointer(number: i32) -> Type {
    std::ptr::without_provenance_mut(number as usize)
}
