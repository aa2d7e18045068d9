//! Findings, which the report lists, and the ledger that writes them to a file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cause::Causes;
use crate::difference::{Check, Class, Rule};

/// The library under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) path: String,
    pub(crate) flavour: String,
}

/// A finding: one cause, which is reported once, as a line of findings.jsonl.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) fingerprint: String,
    pub(crate) class: Class,
    pub(crate) check: Check,
    pub(crate) library: About,
    pub(crate) rule: Rule,
    /// The shrunk datatype in text notation.
    pub(crate) datatype: String,
    /// The datatype before it was shrunk.
    pub(crate) original: String,
    pub(crate) count: u64,
    /// Number of constructors in the shrunk datatype, that is, of nodes that are not basic types.
    pub(crate) constructors: u32,
    pub(crate) expected: String,
    pub(crate) got: String,
    /// Effects on bytes, positions of numbers that differ, or the way in which a process ended. See
    /// [`super::cause`].
    pub(crate) effects: BTreeSet<String>,
    /// File name of the finding's C program in the folder of the run.
    pub(crate) program: String,
    /// Whether the program showed the finding when it ran with the library. None if there is no
    /// program, or if it could not be written, compiled or run.
    pub(crate) confirmed: Option<bool>,
    pub(crate) seed: u64,
    pub(crate) case: u64,
    /// Seconds since the run began.
    pub(crate) seconds: f64,
}

impl Finding {
    /// Returns true if the finding is a bug, unless its program ran and did not show it.
    pub(crate) fn is_bug(&self) -> bool {
        self.class == Class::Bug && self.confirmed != Some(false)
    }
}

/// All findings so far, and their causes.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    /// Length of the file in bytes, up to the end of the last line that was written completely.
    written: u64,
    /// Lines that could not be written yet.
    left: VecDeque<Vec<u8>>,
    pub(crate) causes: Causes,
    pub(crate) findings: Vec<Finding>,
}

impl Ledger {
    /// Returns an empty ledger whose file is in `folder`. The file stays locked until the ledger is
    /// dropped.
    ///
    /// # Errors
    /// Returns an error if the folder has the findings of an earlier run, if another run holds the
    /// lock, or if the system refuses to open the file. Findings of an earlier run are never
    /// overwritten.
    pub(crate) fn new(folder: &Path) -> io::Result<Ledger> {
        let path = folder.join("findings.jsonl");
        let file = File::options().append(true).create(true).open(&path)?;
        // A file system without locks does not prevent a run.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(io::Error::other("another hunt is writing findings.jsonl: name another folder"));
        }
        if file.metadata()?.len() > 0 {
            let what = "findings.jsonl has the findings of an earlier hunt: name another folder, or move that file away";
            return Err(io::Error::other(what));
        }
        let causes = Causes::default();
        Ok(Ledger { path, file, written: 0, left: VecDeque::new(), causes, findings: Vec::new() })
    }

    /// Removes the file of a ledger if it has no findings.
    pub(crate) fn discard(self) {
        if self.findings.is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Writes a finding as a line immediately. If the line cannot be written, prints a message,
    /// keeps the line in memory, and tries again to write it with the next finding.
    pub(crate) fn record(&mut self, finding: Finding) {
        let line = serde_json::to_vec(&finding).map_err(io::Error::other);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            self.left.push_back(line);
            self.write()
        });
        if let Err(error) = written {
            eprintln!(
                "ddtc: {}: {error}; the finding is kept in memory and shown at the end",
                self.path.display()
            );
        }
        self.findings.push(finding);
    }

    /// Writes the lines that are not written yet. Each line is written completely or not at all.
    ///
    /// # Errors
    /// Returns the system's error. The lines that are not written stay in memory.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        while let Some(line) = self.left.front() {
            if let Err(error) = self.file.write_all(line) {
                // Remove a line that was written only in part.
                let _ = self.file.set_len(self.written);
                return Err(error);
            }
            self.written += line.len() as u64;
            self.left.pop_front();
        }
        Ok(())
    }

    /// Returns the number of findings that are only in memory.
    pub(crate) fn unwritten(&self) -> usize {
        self.left.len()
    }

    /// Returns how often each cause was seen.
    pub(crate) fn hits(&self) -> BTreeMap<String, u64> {
        self.causes.hits()
    }
}
