//! Findings: what is reported, what names its cause, and the ledger that knows which causes were reported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ddtc::datatype::Datatype;
use serde::{Deserialize, Serialize};

use super::coverage::features;
use super::difference::{Check, Class, Difference, Rule};

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
    /// Whether it is a bug that a program has shown, or that no program could be asked about.
    pub(crate) fn is_bug(&self) -> bool {
        self.class == Class::Bug && self.confirmed != Some(false)
    }
}

/// The cause behind a difference that was shrunk. Wrong bytes are one cause whichever call moves them.
pub(crate) fn fingerprint(shrunk: &Difference) -> String {
    let family = family(shrunk.check, &shrunk.kind);
    // A reading of the standard is one, wherever it shows; and what does not show alone is no matter of its datatype.
    let alone = !shrunk.kind.ends_with(AFTER_OTHERS);
    if shrunk.class != Class::Bug || SHAPELESS.contains(&shrunk.kind.as_str()) || !alone {
        return family;
    }
    let shape = shrunk.datatype.parse().map(|t| shape(&t)).unwrap_or_default();
    let words: Vec<String> = shape.iter().map(|f| f.replace(' ', "-").replace(['^', '+'], "")).collect();
    let large = if shrunk.large { ".large" } else { "" };
    format!("{family}.{}{large}", words.join("+"))
}

/// Kinds of one cause.
fn family(check: Check, kind: &str) -> String {
    // What a check of moved bytes sees when they are not those that were to be moved.
    const BYTES: [&str; 14] = [
        "packed",
        "packed-at-position",
        "unpacked",
        "received",
        "sent",
        "sent-to-itself",
        "allgather",
        "gather",
        "scatter",
        "alltoallw",
        "put",
        "get",
        "gap",
        "outside",
    ];
    let moves = !matches!(check, Check::External32 | Check::Commit);
    match kind {
        "padding" => "padding".to_owned(),
        _ if moves && BYTES.contains(&kind) => "bytes".to_owned(),
        _ => format!("{check}.{kind}"),
    }
}

/// End of the kinds of differences that take what other cases left behind.
pub(crate) const AFTER_OTHERS: &str = "-after-others";

/// Kinds that have one cause whatever the datatype.
const SHAPELESS: [&str; 2] = ["fresh-name", "name"];

/// Shapes, the most telling first: a cause is named by the first that its shrunk datatype has, beside one that says where.
const TELLING: [&str; 20] = [
    "empty member",
    "byte stride -1",
    "depth 32",
    "depth 16",
    "depth 8",
    "past 2^31",
    "f90_real",
    "f90_complex",
    "f90_integer",
    "value_index",
    "32-byte",
    "16-byte",
    "long double",
    "pair",
    "mixed",
    "long table",
    "negative extent",
    "zero extent",
    "overlap of copies",
    "nothing",
];

/// What of a shrunk datatype tells its cause: the most telling shape, or else the constructors.
pub(crate) fn shape(t: &Datatype) -> BTreeSet<&'static str> {
    let found = features(t);
    if let Some(first) = TELLING.into_iter().find(|f| found.contains(f)) {
        return BTreeSet::from([first]);
    }
    let constructors = found.iter().copied().filter(|f| is_constructor(f));
    let shapes = ["zero blocklength", "stride -1", "stride 0", "backwards", "misaligned"];
    let constructors: BTreeSet<&str> =
        constructors.chain(shapes.into_iter().filter(|s| found.contains(s))).collect();
    if constructors.is_empty() { found } else { constructors }
}

/// What is known of one cause.
#[derive(Debug)]
struct Known {
    family: String,
    shape: BTreeSet<&'static str>,
    hits: u64,
}

/// All causes so far.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines in the file.
    written: u64,
    /// Lines that could not be written.
    left: VecDeque<Vec<u8>>,
    known: BTreeMap<String, Known>,
    pub(crate) findings: Vec<Finding>,
}

impl Ledger {
    /// An empty ledger in a folder, locked until it is dropped.
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
        let known = BTreeMap::new();
        Ok(Ledger { path, file, written: 0, left: VecDeque::new(), known, findings: Vec::new() })
    }

    /// Removes the file of a ledger without findings.
    pub(crate) fn discard(self) {
        if self.findings.is_empty() {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Whether a difference shows nothing but causes that are known. Now and then one is looked at all the same, since a cause may hide
    /// behind another.
    pub(crate) fn explains(&mut self, found: &Difference) -> bool {
        let family = family(found.check, &found.kind);
        let open = found.class != Class::Bug || SHAPELESS.contains(&found.kind.as_str());
        let shown: BTreeSet<&str> = match found.datatype.parse() {
            Ok(t) => features(&t),
            Err(_) => BTreeSet::new(),
        };
        let known = self
            .known
            .values_mut()
            .find(|k| k.family == family && (open || k.shape.iter().all(|f| shown.contains(f))));
        let Some(known) = known else { return false };
        known.hits += 1;
        // Doubling intervals.
        open || !known.hits.is_power_of_two()
    }

    /// Counts a shrunk difference: true if its cause is new.
    pub(crate) fn is_new(&mut self, shrunk: &Difference) -> bool {
        let name = fingerprint(shrunk);
        if let Some(known) = self.known.get_mut(&name) {
            known.hits += 1;
            return false;
        }
        let shape = shrunk.datatype.parse().map(|t| shape(&t)).unwrap_or_default();
        self.known.insert(name, Known { family: family(shrunk.check, &shrunk.kind), shape, hits: 1 });
        true
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

    /// How often each cause was seen.
    pub(crate) fn hits(&self) -> BTreeMap<String, u64> {
        self.known.iter().map(|(name, known)| (name.clone(), known.hits)).collect()
    }
}

fn is_constructor(feature: &str) -> bool {
    super::coverage::CONSTRUCTORS.contains(&feature)
}
