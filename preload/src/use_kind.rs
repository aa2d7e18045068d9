//! Kinds of uses of a datatype, and the minimum cost of a use for the MPI library.

use ddtc_hosts::counted_calls::{Completion, CountedCall, DataDirection};
use ddtc_hosts::policy::Call;
use ddtc_hosts::profile::Costs;

use crate::times::SHORT_BYTES;

/// Kind of a use of a datatype. It is part of the key of a type's similarity class. The minimum
/// cost of a pack is less than that of other uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UseKind {
    /// A pack or unpack by the program, for example by `MPI_Pack`.
    Pack,
    /// Any call that no other kind names: a collective call, a call that both sends and receives
    /// messages, or a call on a file or window.
    Call,
    /// A message that is sent. Sends and receives have different kinds because programs often
    /// gather a list of elements from scattered places for a send, and receive it into contiguous
    /// memory, with types of the same size.
    Send,
    /// A message that is received.
    Receive,
    /// A call that makes a persistent request, which may be started many times.
    Persistent,
}

impl UseKind {
    /// Returns the kind of use that a call makes of the types among its arguments.
    pub(crate) const fn from_call(row: &CountedCall) -> UseKind {
        match (row.completion, row.call, row.direction()) {
            _ if row.packs() => UseKind::Pack,
            (Completion::Persistent, _, _) => UseKind::Persistent,
            (_, Call::Message, DataDirection::Send) => UseKind::Send,
            (_, Call::Message, DataDirection::Receive) => UseKind::Receive,
            _ => UseKind::Call,
        }
    }

    /// Returns the minimum nanoseconds that a use of `bytes` bytes costs the MPI library. A message
    /// that it moves run by run costs at least a nanosecond for each byte.
    pub(crate) fn cost(self, costs: &Costs, bytes: u64) -> u64 {
        let moved = if bytes >= costs.rendezvous { bytes } else { bytes / SHORT_BYTES };
        if self == UseKind::Pack { moved } else { CALL + moved }
    }
}

/// Minimum nanoseconds that a call costs in addition to its bytes, unless it is a pack. Without
/// them, programs that make types of 1 to 2 KB for one step and use each 20 times took 1.7 to 2.2
/// times as long under Intel MPI, because their types were decoded late or never (Emerald Rapids,
/// 2026-11-29). If the number is too large, types are decoded too early.
const CALL: u64 = 200;

/// Call that completes a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CompletedBy {
    /// The call that begins the message.
    SameCall,
    /// A later call, which is given the request of the message.
    LaterCall,
}

impl CompletedBy {
    /// Returns which call completes the messages of a call. Returns `None` for calls other than
    /// messages between two ranks (packs and unpacks, collective calls, files, windows), and for
    /// calls that make a persistent request.
    pub(crate) const fn from_call(row: &CountedCall) -> Option<CompletedBy> {
        match (row.call, row.completion) {
            _ if row.packs() => None,
            (Call::Message, Completion::ThisCall) => Some(CompletedBy::SameCall),
            (Call::Message, Completion::ItsRequest) => Some(CompletedBy::LaterCall),
            _ => None,
        }
    }
}

/// Rules by which uses of types are counted: the calls in which uses count, whether types are
/// decoded at their first use, and whether compiled code may move messages inside the MPI library.
/// They follow from the settings and the MPI library, and fit one word.
#[derive(Clone, Copy)]
pub(crate) struct UseRules(u32);

impl UseRules {
    /// Bit that is set in every word of rules, so that a word of rules is never 0.
    const MADE: u32 = 1 << 31;
    /// Bit of a word of rules that is set if types are decoded at their first use.
    const AT_ONCE: u32 = 1 << 30;
    /// Bit of a word of rules that is set if compiled code may move messages inside the MPI
    /// library.
    const MOVES_INSIDE: u32 = 1 << 29;

    /// Returns the rules. `at_once`: types are decoded at their first use. `moves_inside`: compiled
    /// code may move messages inside the MPI library. `counts` returns true for the calls in which
    /// uses count, which are those in which some payload of some type may be converted or be moved
    /// inside the MPI library.
    pub(crate) fn new(at_once: bool, moves_inside: bool, counts: impl Fn(Call) -> bool) -> UseRules {
        const { assert!(Call::ALL.len() < 29) }
        let of = |so: bool, bit: u32| if so { bit } else { 0 };
        let calls = Call::ALL.iter().fold(0, |calls, &call| calls | of(counts(call), 1 << call as u32));
        let inside = of(moves_inside, UseRules::MOVES_INSIDE);
        UseRules(UseRules::MADE | of(at_once, UseRules::AT_ONCE) | inside | calls)
    }

    /// Returns the rules of a word that [`UseRules::word`] has returned. Returns `None` for 0,
    /// which stands for rules that are not known yet.
    #[inline]
    pub(crate) fn from_word(word: u32) -> Option<UseRules> {
        (word != 0).then_some(UseRules(word))
    }

    pub(crate) fn word(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn counts(self, call: Call) -> bool {
        self.0 >> call as u32 & 1 != 0
    }

    #[inline]
    pub(crate) fn at_once(self) -> bool {
        self.0 & UseRules::AT_ONCE != 0
    }

    #[inline]
    pub(crate) fn moves_inside(self) -> bool {
        self.0 & UseRules::MOVES_INSIDE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddtc_hosts::counted_calls::COUNTED_CALLS;

    #[test]
    fn rows_say_what_a_use_is() {
        use CompletedBy::{LaterCall, SameCall};
        use UseKind as U;
        let row = |name| COUNTED_CALLS.iter().find(|row| row.name == name).unwrap();
        for (name, used, by) in [
            ("MPI_Pack", U::Pack, None),
            ("MPI_Isend", U::Send, Some(LaterCall)),
            ("MPI_Irsend", U::Send, Some(LaterCall)),
            ("MPI_Bsend", U::Send, Some(SameCall)),
            ("MPI_Recv", U::Receive, Some(SameCall)),
            ("MPI_Imrecv", U::Receive, Some(LaterCall)),
            ("MPI_Sendrecv", U::Call, Some(SameCall)),
            ("MPI_Isendrecv_replace", U::Call, Some(LaterCall)),
            ("MPI_Alltoall", U::Call, None),
            ("MPI_Ibcast", U::Call, None),
            ("MPI_Put", U::Call, None),
            ("MPI_File_read_at", U::Call, None),
            ("MPI_Send_init", U::Persistent, None),
            ("MPI_Recv_init", U::Persistent, None),
            ("MPI_Alltoallw_init", U::Persistent, None),
        ] {
            assert!(U::from_call(row(name)) == used && CompletedBy::from_call(row(name)) == by, "{name}");
        }
    }

    #[test]
    fn rules_are_a_word() {
        let rules = UseRules::new(false, true, |call| call == Call::Bcast);
        let again = UseRules::from_word(rules.word()).unwrap();
        assert_eq!([Call::Message, Call::Bcast].map(|call| again.counts(call)), [false, true]);
        assert!(!again.at_once() && again.moves_inside() && UseRules::from_word(0).is_none());
    }
}
