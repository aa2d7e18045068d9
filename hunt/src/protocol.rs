//! The messages between the main process of the fuzzer and its workers. Each message is a line of
//! JSON. A worker also writes the number of its current case to a file, which can be read even
//! after the worker died.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use crate::cause::Known;
use crate::difference::{Check, Difference};

/// A message from the main process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Run the cases with numbers in `from..to`, except for the checks that must be avoided. Wrong
    /// bytes that known causes of differences explain are left out of the reported differences. A
    /// difference that consists only of such bytes is marked as explained.
    Run { from: u64, to: u64, avoid: Vec<Avoid>, known: Vec<Known> },
    /// Run one check on one datatype in text notation, `times` times in a row. Repetition helps to
    /// see whether the check ends the process, because a spoiled heap often shows only later.
    Try { datatype: String, large: bool, count: u64, check: Check, times: u32, known: Vec<Known> },
    /// Return the datatype of a case without running it.
    Show { case: u64 },
    /// Make the calls with forbidden arguments, starting with the call that has the index `from`.
    Misuse { from: usize },
}

/// A check that ends the library for datatypes with certain features. Workers skip this check for
/// nearly all such datatypes, since otherwise few other cases would be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Avoid {
    pub(crate) check: Check,
    pub(crate) features: Vec<String>,
}

/// A message from a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The library is initialized.
    Ready { version: String, flavour: String },
    /// The library cannot be used.
    Refused { reason: String },
    /// A case showed differences.
    Found { case: u64, datatype: String, count: u64, large: bool, differences: Vec<Difference> },
    /// Results of some cases of the request. Other cases of the same request are not done yet.
    Some(Box<Done>),
    /// All cases of the request are done.
    Done(Box<Done>),
    /// Answer to `Try`. `datatype` is the datatype, changed so that this library can build it, or
    /// none if that is impossible.
    Tried { datatype: Option<String>, differences: Vec<Difference> },
    /// Answer to `Show`: the datatype, the count, and whether the case uses the large-count
    /// constructors. None if the library cannot build the case.
    Shown { case: Option<(String, u64, bool)> },
    /// Indices of the forbidden calls that the library accepted without an error.
    Taken { which: Vec<usize> },
}

/// Results of some cases.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    /// Number of the last case that the worker finished, plus one.
    pub(crate) to: u64,
    /// Number of checks that were avoided.
    pub(crate) avoided: u64,
    pub(crate) cases: u64,
    /// Number of cases that the library could not build, for example because functions or types are
    /// missing.
    pub(crate) unbuilt: u64,
    pub(crate) compiled: u64,
    pub(crate) seconds: f64,
    pub(crate) features: BTreeMap<String, u64>,
}

/// The file in which a worker writes its current case. The main process reads it while the worker
/// runs, and after the worker died.
#[derive(Debug)]
pub(crate) struct Place(pub(crate) File);

/// Contents of a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) case: u64,
    pub(crate) check: Check,
    /// Number that grows with every write, so that the main process sees that the worker is not
    /// hanging.
    pub(crate) mark: u64,
}

impl Place {
    /// Writes the current case and check of the worker.
    pub(crate) fn set(&self, at: At) -> io::Result<()> {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&at.case.to_le_bytes());
        bytes[8..16].copy_from_slice(&(at.check as u64).to_le_bytes());
        bytes[16..].copy_from_slice(&at.mark.to_le_bytes());
        self.0.write_all_at(&bytes, 0)
    }

    /// Returns the case and check that the worker wrote last, or none before its first case.
    pub(crate) fn get(&self) -> Option<At> {
        let mut bytes = [0; 24];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let word = |i: usize| bytes[8 * i..8 * i + 8].try_into().map(u64::from_le_bytes).ok();
        let check = *Check::ALL.get(usize::try_from(word(1)?).ok()?)?;
        Some(At { case: word(0)?, check, mark: word(2)? })
    }
}
