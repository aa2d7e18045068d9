//! Findings, which the report lists, and the ledger that writes them to a file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ddtc_hosts::abi::STANDARD;
use ddtc_hosts::policy::Family;
use serde::{Deserialize, Serialize};

use crate::cause::Causes;
use crate::difference::{Check, Class};
use crate::rules::{self, Rule};

/// The library under test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) path: String,
    /// Name of the ABI of the library.
    pub(crate) flavour: String,
}

impl About {
    /// Returns the usual name of the library, such as "Open MPI", followed by its version, for use
    /// in sentences.
    pub(crate) fn title(&self) -> String {
        let families =
            [(Family::Mpich, "MPICH"), (Family::Intel, "Intel MPI"), (Family::OpenMpi, "Open MPI")];
        let known = families.into_iter().find(|(family, _)| family.name() == self.name);
        format!("{} {}", known.map_or(self.name.as_str(), |(_, name)| name), self.version)
    }

    /// Returns true if the library under test has the standard ABI of MPI 5.0.
    pub(crate) fn is_standard(&self) -> bool {
        self.flavour == STANDARD.name
    }

    /// Returns the usual name of the compiler wrapper for programs of the library. MPICH 5.0 has a
    /// separate wrapper for the standard ABI.
    pub(crate) fn wrapper(&self) -> &'static str {
        if self.is_standard() { "mpicc_abi" } else { "mpicc" }
    }
}

/// What the program of a finding did when it ran on another MPI library than the one under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Elsewhere {
    /// Name and version of the library.
    pub(crate) library: String,
    /// The most informative line that the program printed, or a clause about its end. None if the
    /// program ran without showing a difference.
    pub(crate) said: Option<String>,
}

/// Name of the rule of the standard by which a finding is judged. The section and the text of the
/// rule are in [`rules`] and not in the record of the finding, so that they can be changed without
/// another run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuleName {
    pub(crate) name: String,
}

/// A finding: one cause of differences between a library and the standard. Each cause is reported
/// once, as a line of findings.jsonl.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) fingerprint: String,
    pub(crate) class: Class,
    pub(crate) check: Check,
    /// One or two words that say what differs, as in [`crate::difference::Difference::kind`].
    pub(crate) kind: String,
    pub(crate) library: About,
    pub(crate) rule: RuleName,
    /// The shrunk datatype in text notation.
    pub(crate) datatype: String,
    /// The datatype before it was shrunk. None if it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) original: Option<String>,
    pub(crate) count: u64,
    /// Number of constructors in the shrunk datatype, that is, of nodes that are not basic types. 0
    /// if it was not recorded.
    #[serde(default)]
    pub(crate) constructors: u32,
    /// What the definition gives and what the library does, each as a clause without a full stop,
    /// as in [`crate::difference::Difference`].
    pub(crate) expected: String,
    pub(crate) got: String,
    /// What went wrong. For wrong bytes, the effects of the fault on them. If the text of the
    /// expected result and the text of what the library did differ in numbers, the positions of
    /// these numbers in the texts. If a process ended, the way in which it ended. See
    /// [`super::cause`].
    #[serde(default)]
    pub(crate) effects: BTreeSet<String>,
    /// File name of the finding's C program in the folder of the run. None if no program can be
    /// written, for example because the datatype is too large to be accessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) program: Option<String>,
    /// Whether the program showed the finding when it ran with the library. None if there is no
    /// program, or if it could not be written, compiled or run.
    pub(crate) confirmed: Option<bool>,
    /// Seed of the run and number of the case. None if the finding was written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) case: Option<u64>,
    /// Seconds since the run began.
    #[serde(default)]
    pub(crate) seconds: f64,
    /// Other MPI libraries on which the program of the finding ran. It is empty after a run of the
    /// fuzzer, which runs the program on one library only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) elsewhere: Vec<Elsewhere>,
}

impl Finding {
    /// Returns true if the finding is a bug of the library. It does not count as a bug if its
    /// program ran and did not show it.
    pub(crate) fn is_bug(&self) -> bool {
        self.class == Class::Bug && self.confirmed != Some(false)
    }

    /// Returns true if the finding is about a forbidden call, which has no datatype of its own.
    pub(crate) fn is_misuse(&self) -> bool {
        self.rule.name.starts_with("misuse.")
    }

    /// Returns the section and the text of the rule of the standard by which the finding is judged.
    /// Both are empty if no rule has the name that the finding gives.
    pub(crate) fn rule(&self) -> Rule {
        let unknown = Rule { section: "", text: "" };
        rules::rule(&self.rule.name, self.check, &self.kind).unwrap_or(unknown)
    }
}

/// All findings of a run so far, their causes, and the file to which the findings are written.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    /// Length of the file in bytes, up to the end of the last line that was written completely.
    written: u64,
    /// Lines that could not be written yet.
    unwritten: VecDeque<Vec<u8>>,
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
        // Only a lock of another run is an error here, so that a run can also write to a file
        // system without locks.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(io::Error::other("another hunt is writing findings.jsonl: name another folder"));
        }
        if file.metadata()?.len() > 0 {
            let what = "findings.jsonl has the findings of an earlier hunt: name another folder, or move that file away";
            return Err(io::Error::other(what));
        }
        let causes = Causes::default();
        Ok(Ledger { path, file, written: 0, unwritten: VecDeque::new(), causes, findings: Vec::new() })
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
            self.unwritten.push_back(line);
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
        while let Some(line) = self.unwritten.front() {
            if let Err(error) = self.file.write_all(line) {
                // Remove the line from the file if only a part of it was written.
                let _ = self.file.set_len(self.written);
                return Err(error);
            }
            self.written += line.len() as u64;
            self.unwritten.pop_front();
        }
        Ok(())
    }

    /// Returns the number of findings that are only in memory.
    pub(crate) fn unwritten(&self) -> usize {
        self.unwritten.len()
    }

    /// Returns the number of times that each cause was seen. The keys are the names of the causes.
    pub(crate) fn hits(&self) -> BTreeMap<String, u64> {
        self.causes.hits()
    }
}
