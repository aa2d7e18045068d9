//! The corpus: named datatypes in the text notation that every engine, test and benchmark is run over.
//!
//! What: the application layouts (`corpus/application.ddt`: access patterns of DDTBench, Schneider, Gerstenberger and
//! Hoefler, "Micro-applications for communication data access patterns and MPI datatypes", EuroMPI 2012, and common
//! synthetic ones, each at size S and L) and the corner cases (`corpus/corner.ddt`), embedded in the library, and the
//! reader of such files. Why: one list, so that no engine is measured or tested on another's cases. Invariant: names are
//! unique within a file; `application.ddt` is what the layouts of `ddtc bench` generate (tested there).
//! The syntax of files is described in `syntax.rs`, generated lists in `list.rs`, generated types in `types.rs`.

mod list;
mod syntax;
mod types;

use std::collections::HashSet;
use std::fmt;

pub use list::{SplitMix64, expand, list};

use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};
use crate::process::Once;

/// Which of the sizes of a layout an entry is, after the suffix of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Size {
    /// Small (`.S`): fits the first or second level cache.
    S,
    /// Large (`.L`).
    L,
    /// A name without such a suffix.
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

/// Bounds of one instance that an entry states, in bytes.
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

/// One entry of a corpus: a named datatype, how many instances are packed, and what is known about it by hand.
#[derive(Clone, Debug)]
pub struct CorpusEntry {
    /// Unique name, with its suffix: `WRF_x_vec.L`.
    pub name: String,
    /// S or L for application layouts.
    pub size: Size,
    /// The type as the file writes it: generated lists are not expanded.
    pub text: String,
    /// The type.
    pub datatype: Datatype,
    /// Instances that a test or benchmark packs.
    pub count: u64,
    /// The comment above the entry, without `#`.
    pub comment: String,
    /// Bounds of one instance, where the file gives them by hand.
    pub bounds: Option<Bounds>,
    /// Packed bytes of `count` instances of a user buffer filled by [`pattern`], where the file gives them by hand.
    pub expected: Option<Vec<u8>>,
}

impl CorpusEntry {
    /// Returns the name without the suffix of its size: `WRF_x_vec`.
    pub fn family(&self) -> &str {
        self.name.strip_suffix(".S").or_else(|| self.name.strip_suffix(".L")).unwrap_or(&self.name)
    }

    /// Returns the bytes that packing `count` instances gives; `None` if they do not fit 64 bits.
    pub fn payload(&self) -> Option<u64> {
        u64::try_from(self.datatype.size()).ok()?.checked_mul(self.count)
    }

    /// First mapped byte of `count` instances and the end of the last one, relative to the origin; `(0, 0)` if nothing is
    /// mapped, `None` if a bound does not fit 64 bits.
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

/// Returns the byte that [`CorpusEntry::expected`] presumes at distance `i` from the origin of the user buffer: `i mod 251`.
pub fn pattern(i: i64) -> u8 {
    i.rem_euclid(251) as u8
}

/// Returns all application layouts, S before L of each name.
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
    // The embedded files are ours and a test reads them: an error here cannot reach a user.
    parse(text).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// Returns the entries of a corpus file.
///
/// # Errors
/// Class `Arg` with the line for a breach of the syntax or a name used twice; what the constructors refuse, with the
/// entry's line and name in front.
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

/// Returns the type that `text` writes: the text notation of datatypes, in which lists may be generated, or one generated type.
///
/// # Errors
/// What the notation, the forms or the constructors refuse.
pub fn datatype(text: &str) -> Result<Datatype> {
    match list::whole_form(text) {
        Some((name, arguments)) => types::build(name, &arguments),
        None => list::expand(text)?.parse(),
    }
}

/// Returns the datatype that `text` names, as an entry of the embedded files, or writes, and the instances that the entry has (otherwise 1).
///
/// # Errors
/// Class `Arg` for a name that no entry has; as [`datatype`].
pub fn asked(text: &str) -> Result<(Datatype, u64)> {
    // Every name of an entry has a dot, which no datatype's text has.
    if text.contains('.') && !text.contains(['(', '=']) {
        if let Some(entry) = application().into_iter().chain(corner()).find(|e| e.name == text) {
            return Ok((entry.datatype, entry.count));
        }
        let rule = "no such entry in the corpus: `ddtc corpus`, in a checkout, lists them";
        return Err(Error::new(ErrorClass::Arg, "corpus", "name", format!("'{text}'"), rule));
    }
    Ok((datatype(text)?, 1))
}

/// An error about an entry.
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
