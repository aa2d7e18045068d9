//! The two forms of an MPI function with counts (counts of type `int`, and with the suffix `_c`
//! counts of type `MPI_Count`), and the choice of the form in which the MPI library is called.

use std::ffi::c_int;

use ddtc::internal::count::Count;
use ddtc_hosts::policy::Call;

use crate::handles::{On, missing, too_large};
use crate::host::Host;
use crate::table::TypeEntry;

/// Maximum number of bytes of a message whose length is passed as an `int`.
const INT: i64 = c_int::MAX as i64;

/// A function of the MPI library in its small form (`int` counts) and its large form (`MPI_Count`
/// counts). A form is `None` if the MPI library does not have it.
#[derive(Clone, Copy)]
pub(crate) struct Forms<S, L> {
    pub(crate) small: Option<S>,
    pub(crate) large: Option<L>,
    /// Kind of call under which the policy has its rules for the function.
    pub(crate) call: Call,
    /// True if a type of this call may be converted. If false, ddtc handles the call only because
    /// the MPI library lacks the form that the program has called, so that the counts must be
    /// changed to the other form.
    pub(crate) wanted: bool,
    /// Entries in the table of decoded types for the types of the call's first and second buffer.
    /// They are looked up once for the whole call. `None` for a named type and for a type that is
    /// not decoded.
    pub(crate) entries: [Option<&'static TypeEntry>; 2],
    /// Communicator, file or window on which an error of the call is raised.
    pub(crate) on: On,
}

impl<S: Copy, L: Copy> Forms<S, L> {
    /// Returns the maximum number of bytes of a message in a call whose counts are of type `N`.
    pub(crate) fn max_bytes<N: Count>(&self) -> i64 {
        if N::LARGE && self.large.is_some() { i64::MAX } else { INT }
    }

    /// Returns true if the program calls the large form (its counts are of type `N`) and the MPI
    /// library has only the small form, so that the counts must be narrowed to `int`.
    pub(crate) fn narrows<N: Count>(&self) -> bool {
        N::LARGE && self.large.is_none()
    }

    /// Returns the same without the functions. It still says which forms the MPI library has.
    pub(crate) fn facts(&self) -> Forms<(), ()> {
        let Forms { small, large, call, wanted, entries, on } = *self;
        Forms { small: small.map(drop), large: large.map(drop), call, wanted, entries, on }
    }

    /// Returns the form to call for `counts`: the large form if `large` is true and the MPI library
    /// has it, otherwise the small form.
    ///
    /// # Errors
    /// Returns an error code if the small form must be called and a count does not fit into an
    /// `int`; this error was already raised on [`Forms::on`]. Returns another error code, without
    /// raising an error, if the MPI library has no form that can be called.
    pub(crate) fn choose(&self, host: &Host, large: bool, counts: &[i64]) -> Result<Form<S, L>, c_int> {
        match (self.large, self.small) {
            (Some(wide), _) if large => Ok(Form::Large(wide)),
            (_, Some(small)) if counts.iter().all(|&n| c_int::try_from(n).is_ok()) => Ok(Form::Small(small)),
            (_, Some(_)) => Err(too_large(host, self.on)),
            (_, None) => Err(missing(host)),
        }
    }
}

/// One form of a function of the MPI library.
pub(crate) enum Form<S, L> {
    Small(S),
    Large(L),
}

/// Calls the MPI library's function in the form that the program used, or in the small form if the
/// program used the large form and the MPI library lacks it. In the macro's arguments, counts stand
/// in brackets, arrays of counts in braces, and all other arguments of the function in parentheses.
macro_rules! forward {
    (@small [$count:expr]) => { $count as c_int };
    (@large [$count:expr]) => { $count };
    (@small {$numbers:expr}) => { $numbers.small() };
    (@large {$numbers:expr}) => { $numbers.large() };
    (@small ($other:expr)) => { $other };
    (@large ($other:expr)) => { $other };
    (@counts {$($count:expr,)*}) => { &[$($count),*] };
    (@counts {$($count:expr,)*} [$next:expr] $($rest:tt)*) => { forward!(@counts {$($count,)* $next,} $($rest)*) };
    (@counts {$($count:expr,)*} {$skipped:expr} $($rest:tt)*) => { forward!(@counts {$($count,)*} $($rest)*) };
    (@counts {$($count:expr,)*} ($skipped:expr) $($rest:tt)*) => { forward!(@counts {$($count,)*} $($rest)*) };
    ($n:ty, $forms:expr, $host:expr, $($argument:tt)*) => {
        forward!(@sized <$n as ::ddtc::internal::count::Count>::LARGE, $forms, $host, $($argument)*)
    };
    (@sized $large:expr, $forms:expr, $host:expr, $($argument:tt)*) => {
        match $forms.choose($host, $large, forward!(@counts {} $($argument)*)) {
            Ok(Form::Small(small)) => small($(forward!(@small $argument)),*),
            Ok(Form::Large(large)) => large($(forward!(@large $argument)),*),
            Err(code) => code,
        }
    };
}
pub(crate) use forward;
