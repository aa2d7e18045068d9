//! Findings: what is reported, and the ledger that writes it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cause::Causes;
use crate::difference::{Check, Class, Rule};

/// Which library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) path: String,
    pub(crate) flavour: String,
}

/// One cause, reported once: a line of findings.jsonl.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) fingerprint: String,
    pub(crate) class: Class,
    pub(crate) check: Check,
    pub(crate) library: About,
    pub(crate) rule: Rule,
    /// In text notation, shrunk.
    pub(crate) datatype: String,
    /// Before it was shrunk.
    pub(crate) original: String,
    pub(crate) count: u64,
    /// Constructors of the shrunk datatype: its nodes that are not named types.
    pub(crate) constructors: u32,
    pub(crate) expected: String,
    pub(crate) got: String,
    /// Effects on bytes, numbers that differ, or how a process ended: see [`super::cause`].
    pub(crate) effects: BTreeSet<String>,
    /// Name of the C program in the folder.
    pub(crate) program: String,
    /// Whether the program shows it against the library; none where it could not be asked.
    pub(crate) confirmed: Option<bool>,
    pub(crate) seed: u64,
    pub(crate) case: u64,
    /// Since the run began.
    pub(crate) seconds: f64,
}

impl Finding {
    /// Says whether it is a bug that a program has shown, or that no program could be asked about.
    pub(crate) fn is_bug(&self) -> bool {
        self.class == Class::Bug && self.confirmed != Some(false)
    }
}

/// All findings so far, and their causes.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines in the file.
    written: u64,
    /// Lines that could not be written.
    left: VecDeque<Vec<u8>>,
    pub(crate) causes: Causes,
    pub(crate) findings: Vec<Finding>,
}

impl Ledger {
    /// Returns an empty ledger in a folder, locked until it is dropped.
    ///
    /// # Errors
    /// A folder with the findings of another hunt, which are nobody's to lose; what the system says of the file.
    pub(crate) fn new(folder: &Path) -> io::Result<Ledger> {
        let path = folder.join("findings.jsonl");
        let file = File::options().append(true).create(true).open(&path)?;
        // A file system without locks keeps nobody from hunting.
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

    /// Removes the file of a ledger without findings.
    pub(crate) fn discard(self) {
        if self.findings.is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Writes a finding as a line, at once. What cannot be written is said, kept in memory, and tried again with the next.
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

    /// Writes the lines that are left, each whole or not at all.
    ///
    /// # Errors
    /// What the system says; the lines stay.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        while let Some(line) = self.left.front() {
            if let Err(error) = self.file.write_all(line) {
                // A part of a line is none.
                let _ = self.file.set_len(self.written);
                return Err(error);
            }
            self.written += line.len() as u64;
            self.left.pop_front();
        }
        Ok(())
    }

    /// Findings that are in memory only.
    pub(crate) fn unwritten(&self) -> usize {
        self.left.len()
    }

    /// Returns how often each cause was seen.
    pub(crate) fn hits(&self) -> BTreeMap<String, u64> {
        self.causes.hits()
    }
}
