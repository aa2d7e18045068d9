//! The two forms of a call that takes counts, and which of them the host is asked.

use std::ffi::c_int;

use ddtc::count::Count;
use ddtc_hosts::policy::Call;

use crate::handles::{On, missing, too_large};
use crate::host::Host;
use crate::table::TypeEntry;

/// Most bytes of a message whose length is an `int`.
const INT: i64 = c_int::MAX as i64;

/// A function of the host in both its forms, each `None` where it has no such symbol.
#[derive(Clone, Copy)]
pub(crate) struct Forms<S, L> {
    pub(crate) small: Option<S>,
    pub(crate) large: Option<L>,
    /// Name of the call in the policy.
    pub(crate) call: Call,
    /// Whether the policy converts a type of this call. If not, it is here for its counts alone: the host has only the other form.
    pub(crate) wanted: bool,
    /// Entries of the types of the call, those of its first and its second buffer, looked up once; none
    /// where a type is a named one or not decoded.
    pub(crate) entries: [Option<&'static TypeEntry>; 2],
    /// Where an error of the call is raised.
    pub(crate) on: On,
}

impl<S: Copy, L: Copy> Forms<S, L> {
    /// Most bytes of a message of a call whose counts are `N`.
    pub(crate) fn max_bytes<N: Count>(&self) -> i64 {
        if N::LARGE && self.large.is_some() { i64::MAX } else { INT }
    }

    /// Says whether counts of a call are of the large form and the host has only the small one.
    pub(crate) fn narrows<N: Count>(&self) -> bool {
        N::LARGE && self.large.is_none()
    }

    /// Returns the form to call for `counts`, the large one where `large` says so, or the code of the error: of a large count on a host that has only
    /// the small form, raised where errors of the call are, or of a host without the function.
    pub(crate) fn choose(&self, host: &Host, large: bool, counts: &[i64]) -> Result<Form<S, L>, c_int> {
        match (self.large, self.small) {
            (Some(wide), _) if large => Ok(Form::Large(wide)),
            (_, Some(small)) if counts.iter().all(|&n| c_int::try_from(n).is_ok()) => Ok(Form::Small(small)),
            (_, Some(_)) => Err(too_large(host, self.on)),
            (_, None) => Err(missing(host)),
        }
    }
}

/// One form of a function of the host.
pub(crate) enum Form<S, L> {
    Small(S),
    Large(L),
}

/// Calls the host's function in the form that the program used, or narrowed where the host has no other. Arguments in brackets are
/// counts, those in braces arrays of them, the others stand in parentheses.
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
        forward!(@sized <$n as ::ddtc::count::Count>::LARGE, $forms, $host, $($argument)*)
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
