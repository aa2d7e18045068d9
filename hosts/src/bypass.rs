//! Reasons why the preload library bypasses a call: why nothing of it was converted. Names in the report, and a
//! sentence.
//!
//! The report of one rank and the sum over all ranks that `ddtc preload --report` makes use the same words.

/// Reason why nothing of a call was converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// The policy converts no payload of the type's layout class in such calls, or the times of the layout
    /// speak against it.
    Policy,
    /// The type has no gaps.
    Contiguous,
    /// Fewer bytes than the policy converts.
    TooSmall,
    /// More bytes than the policy converts.
    TooLarge,
    /// A null buffer with a type whose displacements are not addresses, or, in packs, another null
    /// pointer.
    NullBuffer,
    /// The type was used too little so far to pay for decoding and compiling it.
    Rare,
    /// The commit of the type was not seen.
    UnknownType,
    /// The type could not be decoded, or is empty.
    TypeNotTaken,
    /// The first pack with a type or on a communicator. The library's answer tells that both are valid.
    FirstUse,
    /// Nothing to move: no elements, or no process at the other end.
    NothingToMove,
    /// It is not known that the packing of the MPI library or its messages can be replaced.
    Untried,
    /// Device memory, or memory of which nobody can tell.
    Device,
    /// The limit on the memory for staging buffers is reached.
    PastTheCap,
    /// The MPI library could not make the datatype that replaces the program's.
    NoSubstitute,
    /// A nonblocking call, while an object is loaded that may complete its request unseen, or learn that it is complete.
    UnseenCompletion,
    /// A call without a request, after errors in such calls have taken too many staging buffers out
    /// of use.
    AfterErrors,
    /// A PMPI layer after the preload library has a function of the call's group.
    Layer,
    /// A condition of the call itself: its arguments, communicator, window, file or request.
    Other,
}

impl Bypass {
    /// All reasons, in the order of the report.
    pub const ALL: [Bypass; 18] = [
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
        Bypass::PastTheCap,
        Bypass::NoSubstitute,
        Bypass::UnseenCompletion,
        Bypass::AfterErrors,
        Bypass::Layer,
        Bypass::Other,
    ];

    /// Returns the name of the reason's line in a report.
    pub fn name(self) -> &'static str {
        match self {
            Bypass::Policy => "left_by_policy",
            Bypass::Contiguous => "left_contiguous",
            Bypass::TooSmall => "left_too_small",
            Bypass::TooLarge => "left_too_large",
            Bypass::NullBuffer => "left_null_buffer",
            Bypass::Rare => "left_used_too_little",
            Bypass::UnknownType => "left_unknown_type",
            Bypass::TypeNotTaken => "left_type_not_taken",
            Bypass::FirstUse => "left_first_use",
            Bypass::NothingToMove => "left_nothing_to_move",
            Bypass::Untried => "left_untried_host",
            Bypass::Device => "left_device_memory",
            Bypass::PastTheCap => "left_past_the_cap",
            Bypass::NoSubstitute => "left_no_substitute",
            Bypass::UnseenCompletion => "left_unseen_completion",
            Bypass::AfterErrors => "left_after_errors",
            Bypass::Layer => "left_to_a_layer",
            Bypass::Other => "left_other",
        }
    }

    /// Returns what a sentence says about calls that were bypassed for this reason.
    pub fn phrase(self) -> &'static str {
        match self {
            Bypass::Policy => "had types that the policy leaves to this host",
            Bypass::Contiguous => "had types without gaps",
            Bypass::TooSmall => "moved fewer bytes than the policy converts",
            Bypass::TooLarge => "moved more bytes than the policy converts",
            Bypass::NullBuffer => "had a null buffer and types whose displacements are no addresses",
            Bypass::Rare => "had types that were not used enough to pay for compiling them",
            Bypass::UnknownType => "had types whose commit was not seen",
            Bypass::TypeNotTaken => "had types that are empty or could not be taken over",
            Bypass::FirstUse => "were the first with a type or on a communicator",
            Bypass::NothingToMove => "moved nothing",
            Bypass::Untried => "were of a kind that is not converted on this host",
            Bypass::Device => "had buffers in device memory",
            Bypass::PastTheCap => "needed more than DDTC_BUFFERS",
            Bypass::NoSubstitute => "had types that no other datatype can replace",
            Bypass::UnseenCompletion => {
                "had requests that a loaded object may complete where ddtc does not see it"
            }
            Bypass::AfterErrors => "had no request, after errors that keep 64 MiB of staging buffers in use",
            Bypass::Layer => "were handed to a PMPI layer after this library",
            Bypass::Other => {
                "were this host's for what they are: in place, or their communicator, window, file or request"
            }
        }
    }
}

/// Beginning of every sentence of [`sentence`].
pub const NOTHING: &str = "nothing was converted: ";
/// Sentence of a report if nothing is compiled.
pub const OFF: &str = "nothing was converted: DDTC_MODE is off";
/// Line of a report that was written before its program ended.
pub const UNFINISHED: &str = "note MPI was not finalized when this was written: it is what was so far";

/// Returns why nothing was converted, in one sentence. `left` gives the number of calls for each reason.
pub fn sentence(left: impl Fn(Bypass) -> u64) -> String {
    let mut why: Vec<(u64, Bypass)> =
        Bypass::ALL.iter().map(|&l| (left(l), l)).filter(|&(n, _)| n > 0).collect();
    why.sort_by_key(|&(n, _)| std::cmp::Reverse(n));
    let calls = |n: u64| if n == 1 { "1 call".to_owned() } else { format!("{n} calls") };
    let said = |n: u64, l: Bypass| match (n, l.phrase().strip_prefix("were ")) {
        (1, Some(rest)) => format!("was {rest}"),
        _ => l.phrase().to_owned(),
    };
    match why[..] {
        [] => format!("{NOTHING}no call had a derived type"),
        [(n, l)] => format!("{NOTHING}{} {}", calls(n), said(n, l)),
        _ => {
            let all = why.iter().map(|&(n, _)| n).sum();
            let parts: Vec<String> = why.iter().map(|&(n, l)| format!("{n} {}", said(n, l))).collect();
            format!("{NOTHING}of {} {}", calls(all), parts.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_why() {
        let of = |numbers: &[(Bypass, u64)]| {
            sentence(|l| numbers.iter().find(|&&(known, _)| known == l).map_or(0, |&(_, n)| n))
        };
        assert_eq!(of(&[]), "nothing was converted: no call had a derived type");
        assert_eq!(
            of(&[(Bypass::Policy, 400)]),
            "nothing was converted: 400 calls had types that the policy leaves to this host"
        );
        assert_eq!(
            of(&[(Bypass::FirstUse, 1)]),
            "nothing was converted: 1 call was the first with a type or on a communicator"
        );
        assert_eq!(
            of(&[(Bypass::TooSmall, 3), (Bypass::Contiguous, 40)]),
            "nothing was converted: of 43 calls 40 had types without gaps, 3 moved fewer bytes than the policy converts"
        );
    }

    #[test]
    fn names_differ() {
        for (i, a) in Bypass::ALL.iter().enumerate() {
            assert_eq!(*a as usize, i);
            assert!(Bypass::ALL[i + 1..].iter().all(|b| a.name() != b.name()), "{a:?}");
        }
    }
}
