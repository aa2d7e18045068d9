//! Reasons why the preload library bypasses a call, that is, converts nothing of it.
//!
//! Each reason has a name and a phrase. A report counts the bypassed calls under the name. The text
//! of a report has the phrase after the number of calls, as in "3 calls moved nothing"
//! ([`crate::report`]).

/// Reason why nothing of a call was converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// The policy converts no payload of the type's layout class in such calls, or times that were
    /// measured for the layout show that a conversion does not pay.
    Policy,
    /// The type has no gaps.
    Contiguous,
    /// The call moves fewer bytes than the policy converts.
    TooSmall,
    /// The call moves more bytes than the policy converts.
    TooLarge,
    /// A null buffer with a type whose displacements are not addresses. In a pack or unpack also a
    /// packed buffer or position that is a null pointer.
    NullBuffer,
    /// The type was not used enough so far to pay for decoding and compiling it.
    Rare,
    /// The commit of the type was not seen.
    UnknownType,
    /// The type could not be decoded, or is empty.
    TypeNotTaken,
    /// The first pack or unpack with a type, or on a communicator, that the preload library does
    /// not know yet. The MPI library carries it out; if it accepts the call, the type and the
    /// communicator are valid.
    FirstUse,
    /// Nothing to move: no elements, or no process at the other end.
    NothingToMove,
    /// It is not known whether the MPI library's own packing, or its messages in such calls, can be
    /// replaced without an error.
    Untried,
    /// A buffer in device memory, or a buffer of which it cannot be found out whether it lies
    /// there.
    Device,
    /// The limit on the memory for staging buffers is reached.
    OverStagingLimit,
    /// The MPI library could not make the datatype that replaces the program's.
    NoSubstitute,
    /// The call is nonblocking, and an object is loaded that may complete the request of the call,
    /// or ask whether the request is complete, without the preload library seeing it.
    UnseenCompletion,
    /// The call has no request, and errors in earlier calls without a request have taken too many
    /// staging buffers out of use.
    AfterErrors,
    /// A PMPI layer after the preload library has a function of the call's group.
    Layer,
    /// Compiled code moves the bytes inside the MPI library, so no staging buffer is used for the
    /// call.
    Hook,
    /// A condition of the call itself: its arguments, communicator, window, file or request.
    Other,
}

impl Bypass {
    /// All reasons, in the order of the report.
    pub const ALL: [Bypass; 19] = [
        Bypass::Policy,
        Bypass::Contiguous,
        Bypass::TooSmall,
        Bypass::TooLarge,
        Bypass::NullBuffer,
        Bypass::Rare,
        Bypass::UnknownType,
        Bypass::TypeNotTaken,
        Bypass::FirstUse,
        Bypass::NothingToMove,
        Bypass::Untried,
        Bypass::Device,
        Bypass::OverStagingLimit,
        Bypass::NoSubstitute,
        Bypass::UnseenCompletion,
        Bypass::AfterErrors,
        Bypass::Layer,
        Bypass::Hook,
        Bypass::Other,
    ];

    /// Returns the name under which a report counts the calls that were bypassed for this reason.
    pub fn name(self) -> &'static str {
        match self {
            Bypass::Policy => "bypassed_by_policy",
            Bypass::Contiguous => "bypassed_contiguous",
            Bypass::TooSmall => "bypassed_too_small",
            Bypass::TooLarge => "bypassed_too_large",
            Bypass::NullBuffer => "bypassed_null_buffer",
            Bypass::Rare => "bypassed_used_too_little",
            Bypass::UnknownType => "bypassed_unknown_type",
            Bypass::TypeNotTaken => "bypassed_type_not_taken",
            Bypass::FirstUse => "bypassed_first_use",
            Bypass::NothingToMove => "bypassed_nothing_to_move",
            Bypass::Untried => "bypassed_untried_library",
            Bypass::Device => "bypassed_device_memory",
            Bypass::OverStagingLimit => "bypassed_over_staging_limit",
            Bypass::NoSubstitute => "bypassed_no_substitute",
            Bypass::UnseenCompletion => "bypassed_unseen_completion",
            Bypass::AfterErrors => "bypassed_after_errors",
            Bypass::Layer => "bypassed_pmpi_layer",
            Bypass::Hook => "bypassed_for_hook",
            Bypass::Other => "bypassed_other",
        }
    }

    /// Returns the phrase that follows the number of calls in a sentence of a report, such as
    /// "moved nothing".
    pub fn phrase(self) -> &'static str {
        match self {
            Bypass::Policy => "had types that the policy leaves to the MPI library",
            Bypass::Contiguous => "had types without gaps",
            Bypass::TooSmall => "moved fewer bytes than the policy converts",
            Bypass::TooLarge => "moved more bytes than the policy converts",
            Bypass::NullBuffer => "had a null buffer and types whose displacements are not addresses",
            Bypass::Rare => "had types that were not used enough to pay for compiling them",
            Bypass::UnknownType => "had types whose commit was not seen",
            Bypass::TypeNotTaken => "had types that are empty or could not be decoded",
            Bypass::FirstUse => "were the first with a type or on a communicator",
            Bypass::NothingToMove => "moved nothing",
            Bypass::Untried => "were of a kind that is not converted under this MPI library",
            Bypass::Device => "had buffers in device memory",
            Bypass::OverStagingLimit => "needed more than DDTC_STAGING_MIB",
            Bypass::NoSubstitute => "had types that no other datatype can replace",
            Bypass::UnseenCompletion => "had requests that a loaded object may complete unseen by ddtc",
            Bypass::AfterErrors => "had no request, and 64 MiB of buffers are in use after errors",
            Bypass::Layer => "were handed to a PMPI layer after this library",
            Bypass::Hook => "were left to compiled code inside the MPI library",
            Bypass::Other => "were bypassed for their arguments, communicator, window, file or request",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        for (i, a) in Bypass::ALL.iter().enumerate() {
            assert_eq!(*a as usize, i);
            assert!(Bypass::ALL[i + 1..].iter().all(|b| a.name() != b.name()), "{a:?}");
            assert!(a.name().starts_with("bypassed_"), "{a:?}");
        }
    }
}
