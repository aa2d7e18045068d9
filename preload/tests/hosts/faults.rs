//! Faults of MPI libraries that the tests of the corpus find: entries of the corpus on which an
//! unmodified library crashes, hangs or gives wrong bytes.
//!
//! A fault of the MPI library is no fault of ddtc. The tests therefore run the unmodified library
//! first. If it does not survive an entry, the entry is printed and left out under this library,
//! and the other entries are judged. `known_faults` is the table of the faults that were found so
//! far; a fault that the table lacks is printed as a new finding. The number of entries that may be
//! left out is limited, so that a library on which nothing runs does not count as a success.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::setup::{HANGS, Host, Run, lossy};

/// Misbehaviour of an unmodified MPI library on an entry of the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Symptom {
    Crash,
    Hang,
    Bytes,
}

impl fmt::Display for Symptom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Symptom::Crash => "crash",
            Symptom::Hang => "hang",
            Symptom::Bytes => "bytes",
        })
    }
}

/// The table of known faults. Each row has the package and the version of an MPI library, an entry
/// of the corpus, and a symptom.
const TABLE: &str = include_str!("known_faults");

/// Returns true if the table of known faults has the entry `entry` with this symptom for the MPI
/// library. The name of an entry in the table may end with `*`, which stands for any further
/// characters.
pub(crate) fn known(host: Host, entry: &str, symptom: Symptom) -> bool {
    rows(TABLE).any(|row| row.is(host, symptom) && row.names(entry))
}

struct Row<'a>([&'a str; 4]);

impl Row<'_> {
    fn is(&self, host: Host, symptom: Symptom) -> bool {
        let (package, version) = host.release();
        self.0[0] == package && self.0[1] == version && self.0[3] == symptom.to_string()
    }

    fn names(&self, entry: &str) -> bool {
        let name = self.0[2];
        name.strip_suffix('*').map_or(name == entry, |start| entry.starts_with(start))
    }
}

fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    let lines = table.lines().map(|line| line.split('#').next().unwrap_or("").split_whitespace());
    lines.filter_map(|words| {
        let words: Vec<&str> = words.collect();
        (!words.is_empty()).then(|| Row(words.try_into().expect("package, version, entry, symptom")))
    })
}

/// The entries of the corpus that are left out of the tests of an MPI library, each with the
/// symptom for which it is left out.
#[derive(Default)]
pub(crate) struct Excluded(BTreeMap<String, Symptom>);

/// Maximum percentage of the corpus entries on which a library may crash or hang without the
/// preload library. If it fails on more entries, the test fails, because the remaining entries
/// would say too little.
const MAX_PERCENT: usize = 5;

impl Excluded {
    /// Runs the driver of the corpus under the unmodified library again and again. After each run
    /// that does not succeed, the entries at which it died are left out. Returns the left-out
    /// entries once a run survives all others; the answers of that run are in `OUT.RANK`.
    ///
    /// The function `run` returns a run of the driver that writes to the given output file.
    pub(crate) fn by_unmodified_run(
        host: Host,
        ranks: u32,
        entries: usize,
        out: &Path,
        run: impl Fn(&Path) -> Run,
    ) -> Excluded {
        let mut excluded = Excluded::default();
        loop {
            let output = excluded.without(run(out), out, &[]).output();
            if output.status.success() {
                return excluded;
            }
            let said = || format!("{}\n{}", output.status, lossy(&output.stderr));
            let blamed = blamed(ranks, out);
            assert!(!blamed.is_empty(), "{host:?} alone fails outside the corpus: {}", said());
            excluded.0.extend(blamed);
            assert!(
                excluded.0.len() * 100 <= entries * MAX_PERCENT,
                "{host:?} alone fails {:?}: {}",
                excluded.0,
                said()
            );
        }
    }

    /// Prints the entries that are left out, each as a known fault or as a new finding.
    pub(crate) fn named(self, host: Host) -> Excluded {
        self.0.iter().for_each(|(entry, &symptom)| name(host, entry, symptom));
        self
    }

    /// Prints the entries of the corpus for which the unmodified library gives wrong bytes. These
    /// entries are not left out, since a conversion repairs their bytes.
    pub(crate) fn name_wrong(host: Host, entries: &BTreeSet<String>) {
        entries.iter().for_each(|entry| name(host, entry, Symptom::Bytes));
    }

    /// Returns true if the corpus entry of the case `case` is left out.
    pub(crate) fn has(&self, case: &str) -> bool {
        self.0.contains_key(entry_of(case))
    }

    /// Changes a run of the driver so that it leaves out the entries of `self` and those of `more`.
    pub(crate) fn without(&self, run: Run, out: &Path, more: &[String]) -> Run {
        let list = out.with_extension("leave");
        let lines: Vec<&str> = self.0.keys().chain(more).map(String::as_str).collect();
        fs::write(&list, lines.join("\n")).unwrap();
        run.env("DRIVER_LEAVE", list).env("DRIVER_LIMIT", (HANGS / 4).to_string())
    }
}

/// Returns the corpus entries that the ranks were executing when they died, from the ranks' output
/// files.
fn blamed(ranks: u32, out: &Path) -> BTreeMap<String, Symptom> {
    let text = |rank: u32| fs::read_to_string(out.with_extension(rank.to_string())).unwrap_or_default();
    (0..ranks).flat_map(|rank| marks(&text(rank))).collect()
}

/// Runs the driver with the preload library, without the entries on which the unmodified library
/// dies. Asserts that the driver succeeds, and returns its text on standard error.
pub(crate) fn survives(ranks: u32, out: &Path, run: Run) -> String {
    let output = run.output();
    let errors = lossy(&output.stderr);
    let at = || blamed(ranks, out);
    assert!(output.status.success(), "with the library alone: {:?}: {}\n{errors}", at(), output.status);
    errors
}

/// Returns the name of the corpus entry of a case, whose name is `ENTRY:COUNT`.
pub(crate) fn entry_of(case: &str) -> &str {
    case.rsplit_once(':').map_or(case, |(entry, _)| entry)
}

/// Returns the corpus entries at which the driver died. The driver's output has a line `CASE
/// !SIGNAL` for each of them; the signal SIGALRM stands for a hang.
fn marks(text: &str) -> BTreeMap<String, Symptom> {
    let mark = |line: &str| {
        let (case, signal) = line.split_once(" !")?;
        let hang = signal.parse() == Ok(libc::SIGALRM);
        Some((entry_of(case).to_owned(), if hang { Symptom::Hang } else { Symptom::Crash }))
    };
    text.lines().filter_map(mark).collect()
}

/// Prints a fault of an unmodified MPI library directly to standard error, so that it can be seen
/// even if the test succeeds and its output is captured.
fn name(host: Host, entry: &str, symptom: Symptom) {
    let (package, version) = host.release();
    let what = if known(host, entry, symptom) { "known fault" } else { "NEW FINDING" };
    let line = format!("{what} of {host:?} alone: {package} {version} {entry} {symptom}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

#[test]
fn the_table_of_faults_names_hosts_and_entries() {
    let entries: Vec<String> = ddtc::internal::corpus::application()
        .into_iter()
        .chain(ddtc::internal::corpus::corner())
        .map(|e| e.name)
        .collect();
    for row in rows(TABLE) {
        let external = crate::external::has(row.0[2]) || crate::reduce::has(row.0[2]);
        assert!(external || entries.iter().any(|e| row.names(e)), "{:?}", row.0);
        let mut symptoms = [Symptom::Crash, Symptom::Hang, Symptom::Bytes].into_iter();
        assert!(symptoms.any(|s| Host::ALL.iter().any(|&h| row.is(h, s))), "{:?}", row.0);
    }
    assert!(known(Host::Intel, "deep.100", Symptom::Crash));
    assert!(!known(Host::Mpich, "deep.100", Symptom::Crash));
}

#[test]
fn marks_of_the_driver_are_faults() {
    let text = "fine:1 4 0 4 0 11 00 0 4 00 00010203\ndeep.100:17 !6\nslow:1 !14\nended:2 !0\n";
    let expected = [("deep.100", Symptom::Crash), ("ended", Symptom::Crash), ("slow", Symptom::Hang)];
    assert_eq!(marks(text), expected.map(|(e, s)| (e.to_owned(), s)).into());
}

/// Calls [`Excluded::by_unmodified_run`] with a shell script in place of the driver. The script
/// dies at the first of `entries` that is not left out. The number of entries in the corpus, on
/// which it depends how many may be left out, is given as five hundred.
fn surveyed(name: &str, entries: &str) -> Excluded {
    let folder = crate::setup::scratch(name);
    let out = folder.join("unmodified");
    let script = format!(
        "for e in {entries}; do grep -qx $e $DRIVER_LEAVE || {{ echo \"$e:3 !11\" > {}.0; exit 1; }}; done",
        out.display()
    );
    let excluded = Excluded::by_unmodified_run(Host::Mpich, 1, 500, &out, |_| {
        Host::Mpich.run("sh").arg("-c").arg(&script)
    });
    fs::remove_dir_all(folder).unwrap();
    excluded
}

#[test]
fn what_a_bare_host_does_not_survive_is_left_out() {
    let excluded = surveyed("few", "one two");
    assert!(excluded.has("one:1") && excluded.has("two:17") && !excluded.has("three:1"), "{:?}", excluded.0);
    assert!(surveyed("none", "").0.is_empty());
}

#[test]
#[should_panic(expected = "Mpich alone fails {")]
fn not_everything_may_be_left_out() {
    surveyed("many", "$(seq 1 26)");
}
