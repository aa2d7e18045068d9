//! Why the preload library left a call to its host: names in its report, and a sentence.
//!
//! The report of a rank and the sum that `ddtc preload --report` makes of all ranks have the same words.

/// Reasons why nothing of a call was converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The policy has no payload of its types' layout class in such calls.
    Policy,
    /// Its types have no gaps.
    Contiguous,
    /// Fewer bytes than the policy converts.
    TooSmall,
    /// More bytes than the policy converts.
    TooLarge,
    /// A null buffer, and types whose displacements are no addresses.
    NullBuffer,
    /// Types that were used too little so far for their bytes to pay for decoding and compiling them.
    Rare,
    /// Types whose commit was not seen.
    UnknownType,
    /// Types that could not be decoded, or are empty.
    TypeNotTaken,
    /// The first pack with a type or on a communicator: the host's answer tells that both are valid.
    FirstUse,
    /// Nothing to move: no elements, or no process at the other end.
    NothingToMove,
    /// The host's packing or its messages are not known to be fit.
    Untried,
    /// Device memory, or memory of which nobody can tell.
    Device,
    /// The cap of the staging buffers.
    PastTheCap,
    /// A nonblocking call, while an object is loaded that may complete its request unseen, or learn that it is complete.
    UnseenCompletion,
    /// Calls without a request, after errors in such calls have taken too many staging buffers out
    /// of use.
    AfterErrors,
    /// A PMPI layer after the preload library has a function of the call's group.
    Layer,
    /// A condition of the call itself or of this host: its communicator, window, file or request.
    Other,
}

impl Left {
    /// All of them, as the report lists them.
    pub const ALL: [Left; 17] = [
        Left::Policy,
        Left::Contiguous,
        Left::TooSmall,
        Left::TooLarge,
        Left::NullBuffer,
        Left::Rare,
        Left::UnknownType,
        Left::TypeNotTaken,
        Left::FirstUse,
        Left::NothingToMove,
        Left::Untried,
        Left::Device,
        Left::PastTheCap,
        Left::UnseenCompletion,
        Left::AfterErrors,
        Left::Layer,
        Left::Other,
    ];

    /// Returns the name of its line in a report.
    pub fn name(self) -> &'static str {
        match self {
            Left::Policy => "left_by_policy",
            Left::Contiguous => "left_contiguous",
            Left::TooSmall => "left_too_small",
            Left::TooLarge => "left_too_large",
            Left::NullBuffer => "left_null_buffer",
            Left::Rare => "left_used_too_little",
            Left::UnknownType => "left_unknown_type",
            Left::TypeNotTaken => "left_type_not_taken",
            Left::FirstUse => "left_first_use",
            Left::NothingToMove => "left_nothing_to_move",
            Left::Untried => "left_untried_host",
            Left::Device => "left_device_memory",
            Left::PastTheCap => "left_past_the_cap",
            Left::UnseenCompletion => "left_unseen_completion",
            Left::AfterErrors => "left_after_errors",
            Left::Layer => "left_to_a_layer",
            Left::Other => "left_other",
        }
    }

    /// Returns the sentence about calls that were left for this reason.
    pub fn phrase(self) -> &'static str {
        match self {
            Left::Policy => "had types that the policy leaves to this host",
            Left::Contiguous => "had types without gaps",
            Left::TooSmall => "moved fewer bytes than the policy converts",
            Left::TooLarge => "moved more bytes than the policy converts",
            Left::NullBuffer => "had a null buffer and types whose displacements are no addresses",
            Left::Rare => "had types that were not used enough to pay for compiling them",
            Left::UnknownType => "had types whose commit was not seen",
            Left::TypeNotTaken => "had types that are empty or could not be taken over",
            Left::FirstUse => "were the first with a type or on a communicator",
            Left::NothingToMove => "moved nothing",
            Left::Untried => "were of a kind that is not converted on this host",
            Left::Device => "had buffers in device memory",
            Left::PastTheCap => "needed more than DDTC_BUFFERS",
            Left::UnseenCompletion => {
                "had requests that a loaded object may complete where ddtc does not see it"
            }
            Left::AfterErrors => "had no request, after errors that keep 64 MiB of staging buffers in use",
            Left::Layer => "were handed to a PMPI layer after this library",
            Left::Other => {
                "were this host's for what they are: in place, or their communicator, window, file or request"
            }
        }
    }
}

/// Begins every such sentence.
pub const NOTHING: &str = "nothing was converted: ";
/// Why nothing was converted where nothing is compiled.
pub const OFF: &str = "nothing was converted: DDTC_MODE is off";
/// Line of a report that was written before the end of its program.
pub const UNFINISHED: &str = "note MPI was not finalized when this was written: it is what was so far";

/// Returns why nothing was converted, by the numbers of calls that were left, in one sentence.
pub fn sentence(left: impl Fn(Left) -> u64) -> String {
    let mut why: Vec<(u64, Left)> = Left::ALL.iter().map(|&l| (left(l), l)).filter(|&(n, _)| n > 0).collect();
    why.sort_by_key(|&(n, _)| std::cmp::Reverse(n));
    let calls = |n: u64| if n == 1 { "1 call".to_owned() } else { format!("{n} calls") };
    let said = |n: u64, l: Left| match (n, l.phrase().strip_prefix("were ")) {
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
        let of = |numbers: &[(Left, u64)]| {
            sentence(|l| numbers.iter().find(|&&(known, _)| known == l).map_or(0, |&(_, n)| n))
        };
        assert_eq!(of(&[]), "nothing was converted: no call had a derived type");
        assert_eq!(
            of(&[(Left::Policy, 400)]),
            "nothing was converted: 400 calls had types that the policy leaves to this host"
        );
        assert_eq!(
            of(&[(Left::FirstUse, 1)]),
            "nothing was converted: 1 call was the first with a type or on a communicator"
        );
        assert_eq!(
            of(&[(Left::TooSmall, 3), (Left::Contiguous, 40)]),
            "nothing was converted: of 43 calls 40 had types without gaps, 3 moved fewer bytes than the policy converts"
        );
    }

    #[test]
    fn names_differ() {
        for (i, a) in Left::ALL.iter().enumerate() {
            assert_eq!(*a as usize, i);
            assert!(Left::ALL[i + 1..].iter().all(|b| a.name() != b.name()), "{a:?}");
        }
    }
}
