//! Kinds of uses of a type: what one costs the host at least, by the name of the function.

use ddtc_hosts::policy::{Call, Family};

use crate::times::RENDEZVOUS;

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
    /// Of a function of MPI.
    pub(crate) const fn of(name: &str) -> UseKind {
        let (sends, receives) = (has_word(name, b"end"), has_word(name, b"ecv"));
        // The name of a large form goes on behind it.
        if has_word(name, b"_init") {
            UseKind::Persistent
        } else if sends && !receives {
            UseKind::Send
        } else if receives && !sends {
            UseKind::Receive
        } else {
            UseKind::Call
        }
    }

    /// Nanoseconds of a use of so many bytes.
    pub(crate) fn cost(self, family: Family, bytes: u64) -> u64 {
        // Short blocks cost hosts 0.2 to 3 ns a byte, long ones are copied at 0.1; MPICH's rendezvous costs more.
        let moved = if family == Family::Mpich && bytes >= RENDEZVOUS { bytes } else { bytes / 4 };
        match self {
            UseKind::Pack => 30 + moved,
            UseKind::Call | UseKind::Send | UseKind::Receive => 200 + moved,
            UseKind::Persistent => (200 + moved).saturating_mul(1000),
        }
    }
}

/// Which call completes a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletedBy {
    /// The one that begins it.
    SameCall,
    /// A later one, by its request.
    LaterCall,
}

impl CompletedBy {
    /// Of a function of MPI; `None`: it is no message.
    pub(crate) const fn of(call: Call, name: &str) -> Option<CompletedBy> {
        match call {
            Call::Message if has_word(name, b"MPI_I") => Some(CompletedBy::LaterCall),
            Call::Message => Some(CompletedBy::SameCall),
            _ => None,
        }
    }
}

/// Holds what settings and host say of uses, in one word.
#[derive(Clone, Copy)]
pub(crate) struct UseRules(u32);

impl UseRules {
    /// Bits above those of the calls: the word is none that nobody has made; types are decoded at their first use; types that are alike speak for each other.
    const MADE: u32 = 1 << 31;
    const AT_ONCE: u32 = 1 << 30;
    const ALIKE: u32 = 1 << 29;

    /// Of calls in which uses count: some payload of some type may be converted there, or be moved inside the host.
    pub(crate) fn new(at_once: bool, alike: bool, counts: impl Fn(Call) -> bool) -> UseRules {
        const { assert!(Call::ALL.len() < 29) }
        let of = |so: bool, bit: u32| if so { bit } else { 0 };
        let calls = Call::ALL.iter().fold(0, |calls, &call| calls | of(counts(call), 1 << call as u32));
        UseRules(UseRules::MADE | of(at_once, UseRules::AT_ONCE) | of(alike, UseRules::ALIKE) | calls)
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

    #[inline]
    pub(crate) fn alike(self) -> bool {
        self.0 & UseRules::ALIKE != 0
    }
}

/// Says whether a name has these letters somewhere.
const fn has_word(name: &str, word: &[u8]) -> bool {
    let name = name.as_bytes();
    let (mut at, mut same) = (0, 0);
    while at + word.len() <= name.len() && same < word.len() {
        same = 0;
        while same < word.len() && name[at + same] == word[same] {
            same += 1;
        }
        at += 1;
    }
    same == word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_use_is() {
        use UseKind as U;
        for (name, used) in [
            ("MPI_Isend", U::Send),
            ("MPI_Bsend_c", U::Send),
            ("MPI_Recv", U::Receive),
            ("MPI_Imrecv", U::Receive),
            ("MPI_Sendrecv_replace", U::Call),
            ("MPI_Alltoall", U::Call),
            ("MPI_Send_init_c", U::Persistent),
            ("MPI_", U::Call),
        ] {
            assert!(U::of(name) == used, "{name}");
        }
        let rules = UseRules::new(false, true, |call| call == Call::Bcast);
        let again = UseRules::from_word(rules.word()).unwrap();
        assert_eq!([Call::Message, Call::Bcast].map(|call| again.counts(call)), [false, true]);
        assert!(!again.at_once() && again.alike() && UseRules::from_word(0).is_none());
        use CompletedBy::{LaterCall, SameCall};
        for (call, name, by) in [
            (Call::Message, "MPI_Irsend", Some(LaterCall)),
            (Call::Message, "MPI_Recv_c", Some(SameCall)),
            (Call::Message, "MPI_Sendrecv", Some(SameCall)),
            (Call::Bcast, "MPI_Ibcast", None),
        ] {
            assert!(CompletedBy::of(call, name) == by, "{name}");
        }
    }
}
