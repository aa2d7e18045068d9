//! Messages between the hunter and its workers: a line of JSON each. A worker that dies has left the number of its case in a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use crate::cause::Known;
use crate::difference::{Check, Difference};

/// From the hunter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Go through the cases of numbers `from..to`, without the checks that are to be avoided.
    /// What known causes predict is left out of differences, or said to be explained.
    Run { from: u64, to: u64, avoid: Vec<Avoid>, known: Vec<Known> },
    /// One datatype in text notation, by one check.
    /// The same so many times over: what spoils the heap shows late.
    Try { datatype: String, large: bool, count: u64, check: Check, times: u32, known: Vec<Known> },
    /// The datatype of a case, without going through it.
    Show { case: u64 },
    /// Calls with forbidden arguments, from this one on.
    Misuse { from: usize },
}

/// A check that ends the library for datatypes with some features: all but a few of these are spared it, or nothing else would be tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Avoid {
    pub(crate) check: Check,
    pub(crate) features: Vec<String>,
}

/// From a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The library is initialized.
    Ready { version: String, flavour: String },
    /// It cannot be used.
    Refused { reason: String },
    /// A case showed something.
    Found { case: u64, datatype: String, count: u64, large: bool, differences: Vec<Difference> },
    /// Some more cases are done.
    Some(Box<Done>),
    /// All cases are done.
    Done(Box<Done>),
    /// Answer to a trial. The datatype, as this library can build it; none where it cannot.
    Tried { datatype: Option<String>, differences: Vec<Difference> },
    /// A case; none that the library cannot build.
    Shown { case: Option<(String, u64, bool)> },
    /// Misuses that were taken without a word.
    Taken { which: Vec<usize> },
}

/// Results of some cases.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    /// The number after the last case.
    pub(crate) to: u64,
    /// Checks that were avoided.
    pub(crate) avoided: u64,
    pub(crate) cases: u64,
    /// Cases that the library cannot build: functions or types are missing.
    pub(crate) unbuilt: u64,
    pub(crate) compiled: u64,
    pub(crate) seconds: f64,
    pub(crate) features: BTreeMap<String, u64>,
}

/// The case in progress, in a file of a worker: read by the hunter while the worker runs and after it died.
#[derive(Debug)]
pub(crate) struct Place(pub(crate) File);

/// Contents of a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) case: u64,
    pub(crate) check: Check,
    /// Grows with every mark.
    pub(crate) mark: u64,
}

impl Place {
    /// Writes where the worker is.
    pub(crate) fn set(&self, at: At) -> io::Result<()> {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&at.case.to_le_bytes());
        bytes[8..16].copy_from_slice(&(at.check as u64).to_le_bytes());
        bytes[16..].copy_from_slice(&at.mark.to_le_bytes());
        self.0.write_all_at(&bytes, 0)
    }

    /// Reads where it is; none before its first case.
    pub(crate) fn get(&self) -> Option<At> {
        let mut bytes = [0; 24];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let word = |i: usize| bytes[8 * i..8 * i + 8].try_into().map(u64::from_le_bytes).ok();
        let check = *Check::ALL.get(usize::try_from(word(1)?).ok()?)?;
        Some(At { case: word(0)?, check, mark: word(2)? })
    }
}
