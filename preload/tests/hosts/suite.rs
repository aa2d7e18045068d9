//! Runs the tests of mpi4py. Every test that passes under the unmodified MPI library must pass with
//! the preload library.
//!
//! To save time, the tests run with the preload library first. The unmodified library then runs
//! only the tests that did not pass in the first run, since only these can differ. Each rank must
//! find the same number of tests in both runs. If something differs, the unmodified library runs
//! all tests.
//!
//! By default, the tests that move data with datatypes run on two ranks, and everything that can be
//! converted is converted. `DDTC_MPI4PY=whole` runs all tests on one, two and four ranks of each
//! library, by the policy table, with everything converted, and with the convertor hook alone.
//! Words after `whole`, separated by commas, select some of these runs: `whole,mpich,2,all`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use crate::clients::manifest;
use crate::setup::{Host, Run, hosts, lossy, report, scratch, succeed};

/// The name and version of the source of mpi4py. The version is the one that the virtual
/// environments have.
const SOURCE: &str = "mpi4py-4.1.2";
const SHA256: &str = "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02";

/// Pattern for the names of those modules of tests that move data with datatypes.
const MOVING: &str = "cco_((nb|pr|pr_ngh|ngh)_)?(buf|vec)|p2p_buf|datatype|msgspec|pack|request";

/// Tests at which an unmodified MPI library crashes or hangs, so that the tests after them would
/// not run. A row has the library, the number of ranks (0 for any number), and a pattern of test
/// names for mpi4py's option `-x`.
const EXCLUDED_TESTS: [(Host, u32, &str); 0] = [];

/// Returns the path of the main program of mpi4py's tests. The first call fetches the source of
/// mpi4py if it is missing.
fn tests() -> &'static Path {
    static MAIN: OnceLock<PathBuf> = OnceLock::new();
    MAIN.get_or_init(|| {
        let main = hosts().join(SOURCE).join("test/main.py");
        if !main.exists() {
            fetch();
        }
        main
    })
}

/// Fetches the source of mpi4py and unpacks it.
fn fetch() {
    let file = hosts().join(format!("{SOURCE}.tar.gz"));
    let help = "pip could not fetch the source of mpi4py: see its message; PIP_INDEX_URL or PIP_FIND_LINKS say where to look";
    let mut pip = Command::new(Host::Mpich.root().join("bin/pip"));
    pip.args(["download", "--quiet", "--no-deps", "--no-binary", "mpi4py", "--dest"]).arg(hosts());
    succeed(pip.arg(SOURCE.replacen('-', "==", 1)), help);
    let mut sum = Command::new("sha256sum");
    let said = sum.arg(&file).output().unwrap_or_else(|e| panic!("sha256sum: {e}: install coreutils"));
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.starts_with(SHA256), "{}: another source than the pinned one: {said}", file.display());
    let mut tar = Command::new("tar");
    succeed(tar.arg("-xzf").arg(&file).arg("-C").arg(hosts()), "tar is needed: install tar");
}

/// A line that ends the log of each rank in the text of [`logs`].
const BETWEEN_LOGS: &str = "\x1e\n";

/// Returns the logs of all ranks as one text. The log of a rank that has written none is empty.
pub(crate) fn logs(log: &Path, ranks: u32) -> String {
    let one = |rank: u32| fs::read_to_string(log.with_extension(rank.to_string())).unwrap_or_default();
    (0..ranks).map(|rank| one(rank) + BETWEEN_LOGS).collect()
}

/// Adds to a run of Python the arguments that make it run tests of mpi4py and write `log`. `only`
/// is a file with the names of the tests that run; if it is `None`, all tests run. The caller may
/// add arguments for mpi4py's main program.
pub(crate) fn with_tests(run: Run, log: &Path, only: Option<&Path>) -> Run {
    let run = run.arg(manifest("tests/python/suite.py")).arg(log).arg(only.unwrap_or(Path::new("-")));
    run.arg(tests()).arg("--no-builddir")
}

/// The way in which a job runs: without the preload library, or with it under one of three
/// policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Unmodified,
    Table,
    All,
    /// No message is packed into a staging buffer, and compiled code moves bytes only through the
    /// convertor hook.
    Inside,
}

/// A test on a rank: the number of the rank and the name of the test.
type Test = (u32, String);

/// The outcome of one job that ran tests of mpi4py.
#[derive(Default)]
pub(crate) struct Outcome {
    verdicts: BTreeMap<Test, String>,
    /// For each rank that came to its end, the number of tests that it has run.
    ran: Vec<u64>,
    /// For each rank, the number of tests that it has found, including those that it did not run.
    loaded: Vec<u64>,
    /// Descriptions of the ranks or jobs that did not come to their end, each with the test at
    /// which they ended.
    died: Vec<String>,
    /// Number of ranks that had the preload library.
    with: u32,
}

impl Outcome {
    /// Reads the text that [`logs`] returns.
    pub(crate) fn from_logs(text: &str) -> Outcome {
        let mut outcome = Outcome::default();
        for (rank, log) in (0..).zip(text.split_terminator(BETWEEN_LOGS)) {
            outcome.rank(rank, log);
        }
        outcome
    }

    /// Returns true if some tests passed and every rank came to its end.
    ///
    /// # Panics
    /// Panics if a rank has found no test: the pattern that selects tests is then wrong.
    pub(crate) fn came_to_its_end(&self) -> bool {
        assert!(!self.loaded.contains(&0), "the pattern for names of mpi4py's files matches none");
        self.died.is_empty() && self.passing() > 0
    }

    fn rank(&mut self, rank: u32, text: &str) {
        let (mut ended, mut last) = (false, "it began");
        for (verdict, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
            match verdict {
                "with" => self.with += 1,
                "loaded" => self.loaded.push(rest.parse().unwrap()),
                "end" => {
                    ended = true;
                    self.ran.push(rest.parse().unwrap());
                }
                _ => {
                    // A test counts as failed if one of its parts has failed, even if a later line
                    // says that the test has passed.
                    let now = self.verdicts.entry((rank, rest.to_owned())).or_default();
                    if now != "fail" {
                        verdict.clone_into(now);
                    }
                    last = rest;
                }
            }
        }
        if !ended {
            self.died.push(format!("rank {rank} ended or hung where {last}"));
        }
    }

    fn passes(&self, test: &Test) -> bool {
        self.verdicts.get(test).is_some_and(|v| v == "pass")
    }

    /// Returns the number of tests that pass on every rank that runs them.
    fn passing(&self) -> usize {
        let names = |passes: bool| -> BTreeSet<&String> {
            let tests = self.verdicts.keys().filter(|test| self.passes(test) == passes);
            tests.map(|(_, name)| name).collect()
        };
        names(true).difference(&names(false)).count()
    }

    /// Returns the names of the tests that do not pass on every rank, in the form in which suite.py
    /// takes names. If the preparation of a class or module fails, the name of the class or module
    /// is returned.
    fn unsuccessful(&self) -> BTreeSet<&str> {
        let unsuccessful = self.verdicts.keys().filter(|test| !self.passes(test));
        unsuccessful
            .map(|(_, name)| match name.split_once(' ') {
                // A function that prepares or cleans up for all tests of a class or module failed.
                // The name in parentheses is that of the class or module.
                Some(("setUpClass" | "tearDownClass" | "setUpModule" | "tearDownModule", of)) => {
                    of.trim_matches(['(', ')'])
                }
                // The line is about a part of a test. The name of the test comes before the blank.
                Some((test, _)) => test,
                None => name,
            })
            .collect()
    }
}

/// Returns descriptions of what succeeds in the run `bare` under the unmodified library and does
/// not succeed in the run `with` with the preload library. A description names a test and its rank,
/// or says that the job did not come to its end.
pub(crate) fn differences(bare: &Outcome, with: &Outcome) -> BTreeSet<String> {
    let tests = bare.verdicts.keys().filter(|test| bare.passes(test) && !with.passes(test));
    let tests = tests.map(|(rank, test)| format!("rank {rank}: {test}"));
    tests.chain(with.died.iter().map(|_| "the job does not come to its end".to_owned())).collect()
}

/// A job that runs tests of mpi4py on the ranks of an MPI library.
struct Job<'a> {
    host: Host,
    ranks: u32,
    folder: &'a Path,
    part: &'a [&'a str],
}

impl Job<'_> {
    /// Runs the job and returns its outcome. `only` has the names of the tests and classes that
    /// run; if it is `None`, all tests run.
    fn run(&self, way: Way, only: Option<&BTreeSet<&str>>) -> Outcome {
        // Remove the files of the job that ran before, and write the names of the tests that are to
        // run.
        let log = self.folder.join(format!("{way:?}"));
        for file in fs::read_dir(self.folder).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        let names = self.folder.join("only");
        if let Some(only) = only {
            fs::write(&names, only.iter().map(|name| format!("{name}\n")).collect::<String>()).unwrap();
        }
        let run = self.host.ranks(self.ranks, self.host.root().join("bin/python"));
        // Some tests of mpi4py start further processes. These can be reached only over the network,
        // so these variables permit the network besides shared memory.
        let run = run.env("I_MPI_FABRICS", "shm:ofi").env("FI_PROVIDER", "tcp");
        let run = run.env("OMPI_MCA_btl", "self,sm,tcp").env("OMPI_MCA_btl_tcp_if_include", "lo");
        let run = with_tests(run, &log, only.is_some().then_some(&names));
        let run = self.part.iter().fold(run, Run::arg);
        let excluded =
            EXCLUDED_TESTS.iter().filter(|(host, n, _)| *host == self.host && [0, self.ranks].contains(n));
        let run = excluded.fold(run, |run, (_, _, pattern)| run.arg("-x").arg(pattern));
        let run = match way {
            Way::Unmodified => run,
            Way::Table => run.preload(),
            Way::All | Way::Inside => {
                let policy = if way == Way::All { "all" } else { "none" };
                let run = run.preload().env("DDTC_POLICY", policy);
                run.env("DDTC_REPORT", self.folder.join("report-%p-%r.json"))
            }
        };
        let said = run.output();
        let mut outcome = Outcome::from_logs(&logs(&log, self.ranks));
        if !said.status.success() {
            let text = lossy(&said.stderr);
            let end: Vec<&str> = text.lines().rev().take(30).collect();
            let end: Vec<&str> = end.into_iter().rev().collect();
            outcome.died.push(format!("the job says {}:\n{}", said.status, end.join("\n")));
        }
        assert_eq!(
            outcome.with,
            if way == Way::Unmodified { 0 } else { self.ranks },
            "{self}, {way:?}: ranks with it"
        );
        outcome
    }

    /// Runs the tests under the unmodified library and returns the outcome. The run must come to
    /// its end, since a test that did not run could not be compared. The run is tried three times.
    fn run_unmodified(&self, only: Option<&BTreeSet<&str>>) -> Outcome {
        let mut died = Vec::new();
        for _ in 0..3 {
            let outcome = self.run(Way::Unmodified, only);
            if outcome.died.is_empty() {
                return outcome;
            }
            say(&format!("{self}: the unmodified host ended or hung by itself: {}", outcome.died.join("\n")));
            died = outcome.died;
        }
        panic!(
            "{self}: the unmodified host does not come to its end, three times; where it is its own fault, EXCLUDED_TESTS takes the test:\n{}",
            died.join("\n")
        );
    }

    /// Runs the tests in the given way, and returns the differences from the unmodified library
    /// that occur in each of three runs, together with a summary in words.
    fn worse(&self, way: Way) -> (BTreeSet<String>, String) {
        let with = self.run(way, None);
        match way {
            Way::All => self.converted(["messages_packed", "messages_unpacked"]),
            // On one rank the hook need not move anything: the tests make each type for one call,
            // and compiled code serves a type only from its second call on.
            Way::Inside if self.host == Host::OpenMpi && self.ranks > 1 => {
                self.converted(["hook_bytes_packed", "hook_bytes_unpacked"]);
            }
            _ => {}
        }
        let unsuccessful = with.unsuccessful();
        // If the job with the preload library did not come to its end, the unmodified library runs
        // all tests, since it is not known what the tests that the job did not reach would do.
        let only = with.died.is_empty().then_some(&unsuccessful);
        let unmodified = self.run_unmodified(only);
        if only.is_some() {
            assert_eq!(unmodified.loaded, with.loaded, "{self}, {way:?}: tests that there are");
            assert!(with.passing() > 100, "{self}, {way:?}: {:?}", with.verdicts);
        }
        let mut worse = differences(&unmodified, &with);
        for _ in 1..3 {
            if worse.is_empty() {
                break;
            }
            say(&format!(
                "{self}, {way:?}: not as unmodified, tried again: {worse:#?}\n{}",
                with.died.join("\n")
            ));
            let again = differences(&self.run_unmodified(None), &self.run(way, None));
            worse.retain(|test| again.contains(test));
        }
        let ran = with.ran.iter().max().unwrap_or(&0);
        (
            worse,
            format!("{way:?} {} of {ran}, unmodified {} of the others", with.passing(), unmodified.passing()),
        )
    }

    /// Asserts that messages and collective calls of the tests were converted. `counts` names two
    /// counters, of packed and of unpacked messages or bytes, whose sums over all reports are
    /// compared with 0. If there is only one rank, receives need not be converted.
    fn converted(&self, counts: [&str; 2]) {
        let files = fs::read_dir(self.folder).unwrap().map(|file| file.unwrap().path());
        let reports = files.filter(|file| file.to_string_lossy().contains("report-"));
        let all: Vec<_> = reports.map(|file| report(&fs::read_to_string(file).unwrap())).collect();
        let sum = |name: &str| all.iter().map(|said| said[name]).sum::<u64>();
        let [packed, unpacked] = counts.map(sum);
        assert!(
            packed > 0 && (unpacked > 0 || self.ranks == 1),
            "{self}: {packed} packed, {unpacked} unpacked"
        );
        assert_eq!(sum("panics"), 0, "{self}");
    }
}

impl std::fmt::Display for Job<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, {} ranks", self.host, self.ranks)
    }
}

/// Prints the line directly to standard error, so that it can be seen even if the test succeeds and
/// its output is captured.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// The jobs that the environment variable `DDTC_MPI4PY` asks for: each of the libraries with each
/// number of ranks in each way.
struct Asked {
    hosts: Vec<Host>,
    ranks: Vec<u32>,
    ways: Vec<Way>,
    part: &'static [&'static str],
}

impl Asked {
    /// Returns the jobs that are asked for, where `whole` is the value of `DDTC_MPI4PY`, or `None`
    /// if it is not set.
    fn read(whole: Option<&str>) -> Asked {
        const HOSTS: [(&str, Host); 3] =
            [("mpich", Host::Mpich), ("intel", Host::Intel), ("openmpi", Host::OpenMpi)];
        const RANKS: [(&str, u32); 3] = [("1", 1), ("2", 2), ("4", 4)];
        const WAYS: [(&str, Way); 3] = [("table", Way::Table), ("all", Way::All), ("inside", Way::Inside)];
        fn chosen<T: Copy>(all: &[(&str, T)], words: &[&str]) -> Vec<T> {
            let named: Vec<T> =
                all.iter().filter(|(name, _)| words.contains(name)).map(|(_, t)| *t).collect();
            if named.is_empty() { all.iter().map(|(_, t)| *t).collect() } else { named }
        }
        let Some(words) = whole else {
            return Asked {
                hosts: chosen(&HOSTS, &[]),
                ranks: vec![2],
                ways: vec![Way::All],
                part: &["-i", MOVING],
            };
        };
        let words: Vec<&str> = words.split(',').collect();
        let known = |word: &&str| {
            let names =
                HOSTS.iter().map(|h| h.0).chain(RANKS.iter().map(|r| r.0)).chain(WAYS.iter().map(|w| w.0));
            names.into_iter().any(|name| name == *word)
        };
        let good = words[0] == "whole" && words[1..].iter().all(known);
        assert!(
            good,
            "DDTC_MPI4PY={}: whole, perhaps with a comma before each of mpich, intel, openmpi, 1, 2, 4, table, all, inside",
            words.join(",")
        );
        Asked {
            hosts: chosen(&HOSTS, &words),
            ranks: chosen(&RANKS, &words),
            ways: chosen(&WAYS, &words),
            part: &[],
        }
    }
}

#[test]
fn the_tests_of_mpi4py_pass_as_on_the_bare_host() {
    let asked = Asked::read(std::env::var("DDTC_MPI4PY").ok().as_deref());
    let mut worse = String::new();
    for &host in &asked.hosts {
        for &ranks in &asked.ranks {
            let folder = scratch(&format!("mpi4py-{host:?}-{ranks}"));
            let job = Job { host, ranks, folder: &folder, part: asked.part };
            let start = Instant::now();
            let mut line = format!("{job}");
            for &way in &asked.ways {
                let (tests, summary) = job.worse(way);
                line += &format!(", {summary}");
                worse.extend(tests.iter().map(|test| format!("{job}, {way:?}: {test}\n")));
            }
            say(&format!("{line}, in {} s", start.elapsed().as_secs()));
            fs::remove_dir_all(folder).unwrap();
        }
    }
    assert_eq!(worse, "", "tests that pass on the unmodified host and not with the library, three times");
}

#[test]
fn runs_that_end_early_are_no_agreement() {
    let ends = |text: &str| {
        let mut outcome = Outcome::default();
        outcome.rank(0, text);
        outcome
    };
    let whole = ends("begin a\npass a\nbegin b\npass b\nbegin c\nfail c (i=1)\nend 3\n");
    assert!(whole.died.is_empty() && differences(&whole, &whole).is_empty());
    assert_eq!((whole.passing(), &whole.ran[..]), (2, &[3][..]));
    let died = ends("with libddtc_preload.so\nbegin a\npass a\nbegin b\n");
    assert_eq!(died.died, ["rank 0 ended or hung where b"]);
    let differ: Vec<String> = differences(&whole, &died).into_iter().collect();
    assert_eq!(differ, ["rank 0: b", "the job does not come to its end"]);
    // A test counts as different if one of its parts has failed, although the test itself is
    // reported as passed afterwards, or if it was skipped.
    for text in ["begin a\npass a\nfail b\npass b\nend 2\n", "begin a\npass a\nskip b\nend 2\n"] {
        assert!(differences(&whole, &ends(text)).contains("rank 0: b"), "{text}");
    }
    // `unsuccessful` returns the tests that did not succeed, which are then repeated with the
    // unmodified library. If the set-up of a class failed, they include the whole class.
    let some = ends("pass a.A.a\nskip a.A.b\nskip setUpClass (a.B)\nfail a.C.c (i=1)\nloaded 5\nend 5\n");
    assert_eq!((some.unsuccessful(), &some.loaded[..]), (["a.A.b", "a.B", "a.C.c"].into(), &[5][..]));
    assert_eq!(ends("").died, ["rank 0 ended or hung where it began"]);
}
