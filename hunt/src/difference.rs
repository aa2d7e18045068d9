//! Differences between a library and the definition. A difference records the check that saw it,
//! the expected result, and the rule of the standard that decides.

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
    /// `MPI_Pack` of whole buffers and at a position.
    Pack,
    /// `MPI_Unpack`, including the gaps, which it must not write.
    Unpack,
    /// Envelope and contents of every node.
    Decode,
    /// `MPI_Get_count` and `MPI_Get_elements` of receives that are not full.
    Elements,
    /// `MPI_Pack_external` and `MPI_Unpack_external`.
    External32,
    /// Duplicates and attribute callbacks.
    Attributes,
    /// Messages from a process to itself, between datatypes with the same signature.
    Messages,
    /// Collective and one-sided calls.
    Collectives,
    /// Committing and freeing, many handles, and forbidden arguments.
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
    /// The standard decides, and the library deviates from it.
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

/// A rule of the standard, in our own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rule {
    /// Section number in MPI 5.0.
    pub(crate) section: String,
    pub(crate) text: String,
}

/// The details that distinguish a difference from other differences of the same kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Effects on bytes, positions of numbers that differ, or the way in which a process ended.
    pub(crate) effects: BTreeSet<String>,
    /// Positions of wrong bytes within their basic elements.
    pub(crate) lanes: BTreeSet<i64>,
    /// Features that are above every wrong byte in the datatype tree.
    pub(crate) below: BTreeSet<String>,
    /// Name of the known cause that explains the whole difference, if there is one.
    pub(crate) explained: Option<String>,
}

/// One difference between a library and the definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Difference {
    pub(crate) check: Check,
    /// One or two words that say what differs. This text is a part of the fingerprint.
    pub(crate) kind: String,
    pub(crate) class: Class,
    pub(crate) rule: Rule,
    /// The datatype that shows the difference: the datatype of the case, or a node of it.
    pub(crate) datatype: String,
    /// The same datatype with the library's bounds. The check computed the expected result from
    /// these bounds.
    pub(crate) judged: String,
    pub(crate) count: u64,
    /// Whether the datatype is built with at least one large-count constructor.
    pub(crate) large: bool,
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

/// Name, section of MPI 5.0 and text of each rule.
const RULES: [(&str, &str, &str); 22] = [
    (
        "size",
        "5.1.5",
        "the size is the sum of the sizes of the type map's entries; MPI_UNDEFINED where it does not fit the argument",
    ),
    (
        "bounds",
        "5.1.6",
        "bounds follow from the type map and its markers; resized, subarray and darray set them",
    ),
    (
        "true-bounds",
        "5.1.8",
        "true bounds are those of the entries of the type map alone, whatever its markers say",
    ),
    (
        "empty-true-bounds",
        "5.1.8",
        "true bounds are said of a type map with entries; what an empty one has is left open",
    ),
    ("envelope", "5.1.13", "the envelope names the constructor and the lengths of its arguments"),
    ("contents", "5.1.13", "the contents are the arguments of the constructor's call"),
    ("packed", "5.2", "what is packed and unpacked again, or sent, arrives as it was"),
    ("format", "5.2", "the bytes of a packed buffer are the library's own affair"),
    ("gap", "5.2", "only what the type map names is written"),
    ("position", "5.2", "the position moves by what was packed, and unpacking moves it as far"),
    ("pack-size", "5.2", "MPI_Pack_size is an upper bound of what packing takes"),
    (
        "elements",
        "5.1.11",
        "MPI_Get_elements counts the basic elements received, MPI_Get_count whole instances or MPI_UNDEFINED",
    ),
    ("pairs", "5.1.11", "whether a value with its index is one basic element or two is read in both ways"),
    ("external32", "14.5.2", "external32 has one form for every value: big-endian, in the size of its table"),
    (
        "attributes",
        "7.7.4",
        "MPI_Type_dup calls every copy callback once, and freeing every delete callback once",
    ),
    ("message", "3.3.1", "a message between datatypes of one signature moves every value"),
    ("overlap", "5.1.11", "a datatype whose entries overlap must not be received into"),
    (
        "commit",
        "5.1.9",
        "a committed datatype packs the same however often it is committed and whichever other types are freed or live",
    ),
    ("name", "7.8", "a datatype has the name that it was given last, and an empty one until then"),
    (
        "beyond",
        "3.2.4",
        "a message that does not fit is an overflow error; nothing but the locations of the receive's type map is written",
    ),
    ("truncated", "3.2.4", "a message that does not fit is an overflow error, of class MPI_ERR_TRUNCATE"),
    ("legal", "5.1", "the arguments are legal, so the call succeeds"),
];

/// Returns the rule with the given name, or the last rule of the table if no rule has that name.
pub(crate) fn rule(name: &str) -> Rule {
    let (_, section, text) = RULES.iter().find(|r| r.0 == name).copied().unwrap_or(RULES[RULES.len() - 1]);
    Rule { section: section.to_owned(), text: text.to_owned() }
}
