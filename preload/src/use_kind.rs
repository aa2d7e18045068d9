//! Kinds of uses of a type, and what one costs the MPI library at least.

use ddtc_hosts::counted_calls::{Completion, CountedCall, DataDirection};
use ddtc_hosts::policy::Call;
use ddtc_hosts::profile::Costs;

/// Kind of a use: its least cost for the host beside its bytes hangs on that, and which types are alike.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UseKind {
    /// A pack or unpack.
    Pack,
    /// A message, or more.
    Call,
    /// A message that is sent, or one that is received: lists are often gathered from anywhere and received into what lies together, by types of one size.
    Send,
    Receive,
    /// A call that makes a persistent request: many calls.
    Persistent,
}

impl UseKind {
    /// Returns the kind of the uses of types in a call.
    pub(crate) const fn of(row: &CountedCall) -> UseKind {
        match (row.completion, row.call, row.direction()) {
            _ if row.packs() => UseKind::Pack,
            (Completion::Persistent, _, _) => UseKind::Persistent,
            (_, Call::Message, DataDirection::Send) => UseKind::Send,
            (_, Call::Message, DataDirection::Receive) => UseKind::Receive,
            _ => UseKind::Call,
        }
    }

    /// Nanoseconds of a use of so many bytes.
    pub(crate) fn cost(self, costs: &Costs, bytes: u64) -> u64 {
        // Short blocks cost hosts 0.2 to 3 ns a byte, long ones are copied at 0.1; MPICH's rendezvous costs more.
        let moved = if bytes >= costs.rendezvous { bytes } else { bytes / 4 };
        match self {
            UseKind::Pack => 30 + moved,
            UseKind::Call | UseKind::Send | UseKind::Receive => 200 + moved,
            UseKind::Persistent => (200 + moved).saturating_mul(1000),
        }
    }
}

/// Which call completes a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CompletedBy {
    /// The one that begins it.
    SameCall,
    /// A later one, by its request.
    LaterCall,
}

impl CompletedBy {
    /// Returns which call completes the messages of a call. `None`: it moves no message, or makes a
    /// persistent request.
    pub(crate) const fn of(row: &CountedCall) -> Option<CompletedBy> {
        match (row.call, row.completion) {
            _ if row.packs() => None,
            (Call::Message, Completion::ThisCall) => Some(CompletedBy::SameCall),
            (Call::Message, Completion::ItsRequest) => Some(CompletedBy::LaterCall),
            _ => None,
        }
    }
}

/// Holds what settings and host say of uses, in one word.
#[derive(Clone, Copy)]
pub(crate) struct UseRules(u32);

impl UseRules {
    /// Bit of a word that was made, which may have no other bit.
    const MADE: u32 = 1 << 31;
    /// Bit for types that are decoded at their first use.
    const AT_ONCE: u32 = 1 << 30;

    /// Makes rules with the calls in which uses count: some payload of some type may be converted there, or
    /// be moved inside the MPI library.
    pub(crate) fn new(at_once: bool, counts: impl Fn(Call) -> bool) -> UseRules {
        const { assert!(Call::ALL.len() < 30) }
        let of = |so: bool, bit: u32| if so { bit } else { 0 };
        let calls = Call::ALL.iter().fold(0, |calls, &call| calls | of(counts(call), 1 << call as u32));
        UseRules(UseRules::MADE | of(at_once, UseRules::AT_ONCE) | calls)
    }

    /// A word that was made, 0 if none was.
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
            assert!(U::of(row(name)) == used && CompletedBy::of(row(name)) == by, "{name}");
        }
    }

    #[test]
    fn rules_are_a_word() {
        let rules = UseRules::new(false, |call| call == Call::Bcast);
        let again = UseRules::from_word(rules.word()).unwrap();
        assert_eq!([Call::Message, Call::Bcast].map(|call| again.counts(call)), [false, true]);
        assert!(!again.at_once() && UseRules::from_word(0).is_none());
    }
}
