//! The corpus: named datatypes in the text notation, on which engines, tests and benchmarks run.
//!
//! It is embedded in the library and has two files. `corpus/application.ddt` has layouts of
//! applications: the access patterns of DDTBench (Schneider, Gerstenberger and Hoefler,
//! "Micro-applications for communication data access patterns and MPI datatypes", EuroMPI 2012),
//! and common synthetic ones, each at the sizes S and L. `corpus/corner.ddt` has corner cases. This
//! module also reads such files. There is one corpus for everything, so that no engine is measured
//! or tested on cases chosen for another one.
//!
//! Names are unique within a file, and a test of `ddtc bench` checks that its layouts generate
//! `application.ddt`. The syntax of the files is described in `syntax.rs`, generated lists in
//! `list.rs` and generated types in `types.rs`.

mod list;
mod syntax;
mod types;

use std::collections::HashSet;
use std::fmt;

pub use list::{SplitMix64, expand, list};

use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};
use crate::process::Once;

/// Size of the layout of an entry, according to the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// Small (`.S`): the data fit in the first-level or second-level cache.
    S,
    /// Large (`.L`).
    L,
    /// A name without one of these suffixes.
    Other,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Size::S => "S",
            Size::L => "L",
            Size::Other => "",
        })
    }
}

/// Bounds of one instance of a datatype in bytes, as its entry in a corpus file states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Lower bound.
    pub lb: i64,
    /// Extent.
    pub extent: i64,
    /// True lower bound.
    pub true_lb: i64,
    /// True upper bound.
    pub true_ub: i64,
}

/// One entry of a corpus: a named datatype, the number of instances to pack, and facts about it
/// that were worked out by hand.
#[derive(Clone, Debug)]
pub struct CorpusEntry {
    /// Unique name with its suffix, such as `WRF_x_vec.L`.
    pub name: String,
    /// Size according to the suffix of the name. Layouts of applications have S or L.
    pub size: Size,
    /// Text of the type, exactly as in the corpus file: generated lists are not expanded.
    pub text: String,
    /// The type as a datatype, built from `text`.
    pub datatype: Datatype,
    /// Number of instances that a test or benchmark packs.
    pub count: u64,
    /// The comment above the entry, without `#`.
    pub comment: String,
    /// Bounds of one instance, if the file states them.
    pub bounds: Option<Bounds>,
    /// Packed bytes of `count` instances of a user buffer filled by [`pattern`], if the file states
    /// them.
    pub expected: Option<Vec<u8>>,
}

impl CorpusEntry {
    /// Returns the name without the suffix of its size, such as `WRF_x_vec`.
    pub fn family(&self) -> &str {
        self.name.strip_suffix(".S").or_else(|| self.name.strip_suffix(".L")).unwrap_or(&self.name)
    }

    /// Returns the number of packed bytes of `count` instances, or `None` if it does not fit in 64
    /// bits.
    pub fn payload(&self) -> Option<u64> {
        u64::try_from(self.datatype.size()).ok()?.checked_mul(self.count)
    }

    /// Returns the displacements of the first mapped byte of `count` instances and of the end of
    /// the last one, relative to the origin. Returns `(0, 0)` if no byte is mapped, and `None` if a
    /// bound does not fit in 64 bits.
    pub fn span(&self) -> Option<(i64, i64)> {
        if self.payload()? == 0 {
            return Some((0, 0));
        }
        let last = self.datatype.extent().checked_mul(i64::try_from(self.count - 1).ok()?)?;
        let low = self.datatype.true_lb().checked_add(last.min(0))?;
        let high = self.datatype.true_ub().checked_add(last.max(0))?;
        Some((low, high))
    }
}

/// Returns the byte that [`CorpusEntry::expected`] assumes at distance `i` from the origin of the
/// user buffer: `i mod 251`, which is never negative.
pub fn pattern(i: i64) -> u8 {
    i.rem_euclid(251) as u8
}

/// Returns the corpus entries for layouts of applications. Of each layout, the small size (S) comes
/// before the large one (L).
pub fn application() -> Vec<CorpusEntry> {
    static ENTRIES: Once<Vec<CorpusEntry>> = Once::new();
    ENTRIES.get_or_init(|| embedded("application.ddt", include_str!("../../corpus/application.ddt"))).clone()
}

/// Returns all corner cases.
pub fn corner() -> Vec<CorpusEntry> {
    static ENTRIES: Once<Vec<CorpusEntry>> = Once::new();
    ENTRIES.get_or_init(|| embedded("corner.ddt", include_str!("../../corpus/corner.ddt"))).clone()
}

fn embedded(file: &str, text: &str) -> Vec<CorpusEntry> {
    // An error in an embedded file cannot reach a user, because a test reads these files.
    parse(text).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// Returns the entries of a corpus file.
///
/// # Errors
/// Class `Arg` with the line, for an error of syntax or a name that is used twice. Errors of a
/// datatype, for example from its constructors, keep their class and get the line and the name of
/// the entry.
pub fn parse(text: &str) -> Result<Vec<CorpusEntry>> {
    let mut names = HashSet::new();
    let raw = syntax::parse(text)?;
    raw.into_iter()
        .map(|raw| {
            if !names.insert(raw.name.clone()) {
                return Err(fault(&raw, ErrorClass::Arg, "a name stands once in a file".to_owned()));
            }
            entry(raw)
        })
        .collect()
}

/// Returns the type that `text` describes: a datatype in the text notation, in which lists may be
/// generated, or one generated type.
///
/// # Errors
/// An error of the text notation, of a generated list or type, or of a constructor.
pub fn datatype(text: &str) -> Result<Datatype> {
    match list::whole_form(text) {
        Some((name, arguments)) => types::build(name, &arguments),
        None => list::expand(text)?.parse(),
    }
}

/// Returns the datatype of the embedded entry with the name `text`, and the number of instances of
/// that entry. If `text` is not a name, returns the datatype that it describes, and 1.
///
/// # Errors
/// Class `Arg` for a name that no entry has; otherwise as [`datatype`].
pub fn asked(text: &str) -> Result<(Datatype, u64)> {
    // Every name of an embedded entry has a dot, which the text of a datatype does not have. A text
    // with a parenthesis or an equals sign is not a name.
    if text.contains('.') && !text.contains(['(', '=']) {
        if let Some(entry) = application().into_iter().chain(corner()).find(|e| e.name == text) {
            return Ok((entry.datatype, entry.count));
        }
        let rule = "no such entry in the corpus: `ddtc corpus`, in a checkout, lists them";
        return Err(Error::new(ErrorClass::Arg, "corpus", "name", format!("'{text}'"), rule));
    }
    Ok((datatype(text)?, 1))
}

/// Returns an error about an entry, which names its line.
fn fault(raw: &syntax::RawEntry, class: ErrorClass, rule: String) -> Error {
    Error::new(class, "corpus", format!("line {}", raw.line), format!("'{}'", raw.name), rule)
}

fn entry(raw: syntax::RawEntry) -> Result<CorpusEntry> {
    let datatype = datatype(&raw.text).map_err(|e| fault(&raw, e.class(), e.to_string()))?;
    let size = match raw.name.rsplit_once('.') {
        Some((_, "S")) => Size::S,
        Some((_, "L")) => Size::L,
        _ => Size::Other,
    };
    let bounds = raw.bounds.map(|[lb, extent, true_lb, true_ub]| Bounds { lb, extent, true_lb, true_ub });
    Ok(CorpusEntry {
        name: raw.name,
        size,
        text: raw.text,
        datatype,
        count: raw.count,
        comment: raw.comment,
        bounds,
        expected: raw.packed,
    })
}
