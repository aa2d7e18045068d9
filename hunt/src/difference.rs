//! Differences between a library and the definition. A difference records the check that saw it,
//! the expected result, and the rule of the standard that says which result is right.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A check: a group of comparisons. The option `--only` selects checks by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// Size, bounds and true bounds of every node.
    Bounds,
    /// `MPI_Pack` of all instances in one call, and from a position that is not 0.
    Pack,
    /// `MPI_Unpack`, including the gaps, which it must not write.
    Unpack,
    /// Envelope and contents of every node.
    Decode,
    /// `MPI_Get_count` and `MPI_Get_elements` after receives whose message was shorter than the
    /// buffer or as long as it.
    Elements,
    /// `MPI_Pack_external` and `MPI_Unpack_external`.
    External32,
    /// Duplicates and attribute callbacks.
    Attributes,
    /// Messages from a process to itself, between datatypes with the same signature.
    Messages,
    /// Collective and one-sided calls.
    Collectives,
    /// Committing and freeing of datatypes, many live datatypes at once, and calls with forbidden
    /// arguments.
    Commit,
    /// Messages that are longer than the receive.
    Truncation,
}

impl Check {
    /// All checks in the order in which a case goes through them. `self as usize` is the index in
    /// this array.
    pub const ALL: [Check; 11] = [
        Check::Bounds,
        Check::Pack,
        Check::Unpack,
        Check::Decode,
        Check::Elements,
        Check::External32,
        Check::Attributes,
        Check::Messages,
        Check::Collectives,
        Check::Commit,
        Check::Truncation,
    ];

    /// Returns the name by which `--only` selects the check.
    pub fn name(self) -> &'static str {
        match self {
            Check::Bounds => "bounds",
            Check::Pack => "pack",
            Check::Unpack => "unpack",
            Check::Decode => "decode",
            Check::Elements => "elements",
            Check::External32 => "external32",
            Check::Attributes => "attributes",
            Check::Messages => "messages",
            Check::Collectives => "collectives",
            Check::Commit => "commit",
            Check::Truncation => "truncation",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Check {
    type Err = String;

    fn from_str(text: &str) -> Result<Check, String> {
        Check::ALL.into_iter().find(|c| c.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Check::ALL.iter().map(|c| c.name()).collect();
            format!("no such check; there are {}", names.join(", "))
        })
    }
}

/// Significance of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Class {
    /// The standard says what the result must be, and the library deviates from that.
    Bug,
    /// The library does not report a wrong argument (MPI does not require that it does), or takes
    /// very long for a call on a huge datatype.
    Quality,
    /// The standard leaves the matter open, or can be read in several ways.
    Open,
}

impl Class {
    /// Returns the name of the class in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Bug => "bug",
            Class::Quality => "quality",
            Class::Open => "open",
        }
    }
}

/// The details that distinguish a difference from other differences of the same kind, because
/// another fault may have caused those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// What went wrong. For wrong bytes, the effects of the fault on them. If the text of the
    /// expected result and the text of what the library did differ in numbers, the positions of
    /// these numbers in the texts. If a process ended, the way in which it ended.
    pub(crate) effects: BTreeSet<String>,
    /// Positions of wrong bytes within their basic elements.
    pub(crate) lanes: BTreeSet<i64>,
    /// Features that all wrong bytes have in common: those of the whole datatype, and those of the
    /// nodes that are above every wrong byte in the datatype tree.
    pub(crate) below: BTreeSet<String>,
    /// Name of the known cause that explains the whole difference, if there is one.
    pub(crate) explained: Option<String>,
}

/// One difference between a library and the definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Difference {
    pub(crate) check: Check,
    /// One or two words that say what differs. This text is a part of the name of the difference's
    /// cause ([`crate::cause::fingerprint`]).
    pub(crate) kind: String,
    pub(crate) class: Class,
    /// Name of the rule of the standard that says which result is right. [`crate::rules`] has the
    /// section and the text of the rule.
    pub(crate) rule: String,
    /// The datatype that shows the difference: the datatype of the case, or a node of it.
    pub(crate) datatype: String,
    /// The datatype of the field `datatype`, but with the bounds that the library gives its nodes.
    /// The check computed the expected result from these bounds.
    pub(crate) judged: String,
    pub(crate) count: u64,
    /// Whether the datatype is built with at least one large-count constructor.
    pub(crate) large: bool,
    /// What the definition gives and what the library does, each as a clause without a full stop:
    /// "the lower bound is 0 and the extent is 8".
    pub(crate) expected: String,
    pub(crate) got: String,
    pub(crate) mark: Mark,
}

impl Difference {
    /// Returns true if the difference is the end of a process, or a call that did not return.
    pub(crate) fn is_deadly(&self) -> bool {
        matches!(self.kind.as_str(), "dies" | "hangs" | "aborts")
    }
}
