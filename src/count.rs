//! Counts as C passes them: every call of MPI that takes one has a form for `int` and a form for `MPI_Count` (MPI 5.0, 2.5.8).
//!
//! The surfaces have one body for both forms, generic over [`Count`].

use std::ffi::c_int;

/// Counts, lengths in bytes, displacements or positions in one of the two forms.
pub trait Count: Copy + From<c_int> {
    /// Whether it is the form of large counts.
    const LARGE: bool;

    /// Returns the value.
    fn wide(self) -> i64;

    /// Returns a value in this form, none where it does not fit.
    fn narrow(value: i64) -> Option<Self>;
}

impl Count for c_int {
    const LARGE: bool = false;

    #[inline]
    fn wide(self) -> i64 {
        i64::from(self)
    }

    #[inline]
    fn narrow(value: i64) -> Option<c_int> {
        c_int::try_from(value).ok()
    }
}

impl Count for i64 {
    const LARGE: bool = true;

    #[inline]
    fn wide(self) -> i64 {
        self
    }

    #[inline]
    fn narrow(value: i64) -> Option<i64> {
        Some(value)
    }
}
