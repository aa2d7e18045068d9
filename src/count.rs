//! Counts as C passes them. The calls of MPI that take a count of data, such as `MPI_Pack`, have a
//! form for `int` and a form for `MPI_Count` (MPI 5.0, 2.5.8). Calls that count requests, such as
//! `MPI_Waitall`, have only the form for `int`.
//!
//! ddtc's C interfaces implement both forms of a call by one function that is generic over
//! [`Count`].

use std::ffi::c_int;

/// C type of a count, a length in bytes, a displacement or a position, in one of the two forms of a
/// call.
pub trait Count: Copy + From<c_int> {
    /// True for the large-count form, `MPI_Count`.
    const LARGE: bool;

    /// Returns the value in 64 bits, which hold every value of both forms.
    fn wide(self) -> i64;

    /// Returns `value` in this form, or `None` if it does not fit.
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
