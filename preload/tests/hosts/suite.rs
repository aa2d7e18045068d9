//! mpi4py's own tests: every one that passes on a bare host passes with the library.
//!
//! The bare host runs what did not pass with the library, which is what could differ, and says that it would have run as many tests; whole it runs
//! where something differs.
//!
//! By default what moves data with datatypes, on two ranks, converting all that it can. `DDTC_MPI4PY` asks for the whole: `whole` on one, two and four
//! ranks of each host, by the table too; words after it, parted by commas, narrow it: `whole,mpich,2,all`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::clients::manifest;
use crate::setup::{Host, Run, hosts, lossy, report, scratch, succeed};

/// The source of the version that the hosts have.
const SOURCE: &str = "mpi4py-4.1.2";
const SHA256: &str = "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02";

/// Modules of tests that move data with datatypes.
const MOVING: &str = "cco_((nb|pr|pr_ngh|ngh)_)?(buf|vec)|p2p_buf|datatype|msgspec|pack|request";

/// Tests at which a bare host crashes or hangs, so that none after them would run: host, number of ranks (0: any), pattern of names for mpi4py's `-x`.
const LEFT_OUT: [(Host, u32, &str); 0] = [];

/// The tests of mpi4py, fetched once.
fn tests() -> PathBuf {
    let folder = hosts().join(SOURCE);
    let main = folder.join("test/main.py");
    if !main.exists() {
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
    main
}

/// How a job is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Bare,
    Table,
    All,
    /// Nothing is staged: what moves by kernels does so inside the host.
    Inside,
}

/// A test on a rank.
type Test = (u32, String);

/// Outcome of one run of the tests.
#[derive(Default)]
struct Outcome {
    verdicts: BTreeMap<Test, String>,
    /// Tests that each rank says it has run, if it came to its end.
    ran: Vec<u64>,
    /// Tests that each rank says it has found, those that it did not run among them.
    loaded: Vec<u64>,
    /// Jobs that did not come to their end, and where.
    died: Vec<String>,
    /// Ranks that had the library.
    with: u32,
}

impl Outcome {
    fn read(log: &Path, ranks: u32) -> Outcome {
        let mut outcome = Outcome::default();
        for rank in 0..ranks {
            let text = fs::read_to_string(log.with_extension(rank.to_string())).unwrap_or_default();
            outcome.rank(rank, &text);
        }
        outcome
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
                    // What fails in a part stays failed.
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

    /// Tests that pass on every rank that has them.
    fn passing(&self) -> usize {
        let names = |passes: bool| -> BTreeSet<&String> {
            let tests = self.verdicts.keys().filter(|test| self.passes(test) == passes);
            tests.map(|(_, name)| name).collect()
        };
        names(true).difference(&names(false)).count()
    }

    /// Tests and classes that do not pass on every rank, by the names that suite.py takes.
    fn left(&self) -> BTreeSet<&str> {
        let left = self.verdicts.keys().filter(|test| !self.passes(test));
        left.map(|(_, name)| match name.split_once(' ') {
            // What a class prepares for its tests.
            Some(("setUpClass" | "tearDownClass" | "setUpModule" | "tearDownModule", of)) => {
                of.trim_matches(['(', ')'])
            }
            // A part of a test.
            Some((test, _)) => test,
            None => name,
        })
        .collect()
    }
}

/// Lists in words what passes on the bare host and not with the library: tests on their ranks, and the end of the job.
fn differences(bare: &Outcome, with: &Outcome) -> BTreeSet<String> {
    let tests = bare.verdicts.keys().filter(|test| bare.passes(test) && !with.passes(test));
    let tests = tests.map(|(rank, test)| format!("rank {rank}: {test}"));
    tests.chain(with.died.iter().map(|_| "the job does not come to its end".to_owned())).collect()
}

/// One job of the tests.
struct Job<'a> {
    host: Host,
    ranks: u32,
    main: &'a Path,
    folder: &'a Path,
    part: &'a [&'a str],
}

impl Job<'_> {
    /// `only`: the names of tests and classes to run, or all.
    fn run(&self, way: Way, only: Option<&BTreeSet<&str>>) -> Outcome {
        let log = self.folder.join(format!("{way:?}"));
        for file in fs::read_dir(self.folder).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        let names = self.folder.join("only");
        if let Some(only) = only {
            fs::write(&names, only.iter().map(|name| format!("{name}\n")).collect::<String>()).unwrap();
        }
        let run = self.host.ranks(self.ranks, self.host.root().join("bin/python"));
        // Processes that are started later are reached by the network alone.
        let run = run.env("I_MPI_FABRICS", "shm:ofi").env("FI_PROVIDER", "tcp");
        let run = run.env("OMPI_MCA_btl", "self,sm,tcp").env("OMPI_MCA_btl_tcp_if_include", "lo");
        let run = run.arg(manifest("tests/python/suite.py")).arg(&log);
        let run = run.arg(if only.is_some() { &names } else { Path::new("-") });
        let run = run.arg(self.main).arg("--no-builddir");
        let run = self.part.iter().fold(run, Run::arg);
        let left_out =
            LEFT_OUT.iter().filter(|(host, n, _)| *host == self.host && [0, self.ranks].contains(n));
        let run = left_out.fold(run, |run, (_, _, pattern)| run.arg("-x").arg(pattern));
        let run = match way {
            Way::Bare => run,
            Way::Table => run.preload(),
            Way::All | Way::Inside => {
                let policy = if way == Way::All { "all" } else { "none" };
                let run = run.preload().env("DDTC_POLICY", policy);
                run.env("DDTC_REPORT", self.folder.join("report-%p-%r.json"))
            }
        };
        let said = run.output();
        let mut outcome = Outcome::read(&log, self.ranks);
        if !said.status.success() {
            let text = lossy(&said.stderr);
            let end: Vec<&str> = text.lines().rev().take(30).collect();
            let end: Vec<&str> = end.into_iter().rev().collect();
            outcome.died.push(format!("the job says {}:\n{}", said.status, end.join("\n")));
        }
        assert_eq!(
            outcome.with,
            if way == Way::Bare { 0 } else { self.ranks },
            "{self}, {way:?}: ranks with it"
        );
        outcome
    }

    /// A run of the bare host, whose end must be seen: what is not run can't differ.
    fn bare(&self, only: Option<&BTreeSet<&str>>) -> Outcome {
        let mut died = Vec::new();
        for _ in 0..3 {
            let outcome = self.run(Way::Bare, only);
            if outcome.died.is_empty() {
                return outcome;
            }
            say(&format!("{self}: the bare host ended or hung by itself: {}", outcome.died.join("\n")));
            died = outcome.died;
        }
        panic!(
            "{self}: the bare host does not come to its end, three times; where it is its own fault, LEFT_OUT takes the test:\n{}",
            died.join("\n")
        );
    }

    /// Returns what differs this way, three times, and what there was.
    fn worse(&self, way: Way) -> (BTreeSet<String>, String) {
        let with = self.run(way, None);
        match way {
            Way::All => self.converted(["messages_packed", "messages_unpacked"]),
            // On one rank each of its types is made for one call, and kernels serve the second.
            Way::Inside if self.host == Host::OpenMpi && self.ranks > 1 => {
                self.converted(["hook_bytes_packed", "hook_bytes_unpacked"]);
            }
            _ => {}
        }
        let left = with.left();
        // A job that did not come to its end says nothing of the tests that it did not reach.
        let only = with.died.is_empty().then_some(&left);
        let bare = self.bare(only);
        if only.is_some() {
            assert_eq!(bare.loaded, with.loaded, "{self}, {way:?}: tests that there are");
            assert!(with.passing() > 100, "{self}, {way:?}: {:?}", with.verdicts);
        }
        let mut worse = differences(&bare, &with);
        for _ in 1..3 {
            if worse.is_empty() {
                break;
            }
            say(&format!("{self}, {way:?}: not as bare, tried again: {worse:#?}\n{}", with.died.join("\n")));
            let again = differences(&self.bare(None), &self.run(way, None));
            worse.retain(|test| again.contains(test));
        }
        let ran = with.ran.iter().max().unwrap_or(&0);
        (worse, format!("{way:?} {} of {ran}, bare {} of the others", with.passing(), bare.passing()))
    }

    /// The tests have messages and collective calls that are converted if all are; those of one rank alone receive none.
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

/// To be seen where the test succeeds too.
fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Jobs that are asked for.
struct Asked {
    hosts: Vec<Host>,
    ranks: Vec<u32>,
    ways: Vec<Way>,
    part: &'static [&'static str],
}

impl Asked {
    /// `whole`: the value of `DDTC_MPI4PY`.
    fn read(whole: Option<&str>) -> Asked {
        const HOSTS: [(&str, Host); 3] =
            [("mpich", Host::Mpich), ("intel", Host::Intel), ("openmpi", Host::OpenMpi)];
        const RANKS: [(&str, u32); 3] = [("1", 1), ("2", 2), ("4", 4)];
        const WAYS: [(&str, Way); 3] = [("table", Way::Table), ("all", Way::All), ("inside", Way::Inside)];
        fn of<T: Copy>(all: &[(&str, T)], words: &[&str]) -> Vec<T> {
            let named: Vec<T> =
                all.iter().filter(|(name, _)| words.contains(name)).map(|(_, t)| *t).collect();
            if named.is_empty() { all.iter().map(|(_, t)| *t).collect() } else { named }
        }
        let Some(words) = whole else {
            return Asked {
                hosts: of(&HOSTS, &[]),
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
        Asked { hosts: of(&HOSTS, &words), ranks: of(&RANKS, &words), ways: of(&WAYS, &words), part: &[] }
    }
}

#[test]
fn the_tests_of_mpi4py_pass_as_on_the_bare_host() {
    let asked = Asked::read(std::env::var("DDTC_MPI4PY").ok().as_deref());
    let main = tests();
    let mut worse = String::new();
    for &host in &asked.hosts {
        for &ranks in &asked.ranks {
            let folder = scratch(&format!("mpi4py-{host:?}-{ranks}"));
            let job = Job { host, ranks, main: &main, folder: &folder, part: asked.part };
            let start = Instant::now();
            let mut line = format!("{job}");
            for &way in &asked.ways {
                let (tests, told) = job.worse(way);
                line += &format!(", {told}");
                worse.extend(tests.iter().map(|test| format!("{job}, {way:?}: {test}\n")));
            }
            say(&format!("{line}, in {} s", start.elapsed().as_secs()));
            fs::remove_dir_all(folder).unwrap();
        }
    }
    assert_eq!(worse, "", "tests that pass on the bare host and not with the library, three times");
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
    // Nor are parts that fail though the test says otherwise afterwards, or tests that are left out.
    for text in ["begin a\npass a\nfail b\npass b\nend 2\n", "begin a\npass a\nskip b\nend 2\n"] {
        assert!(differences(&whole, &ends(text)).contains("rank 0: b"), "{text}");
    }
    // Those are what the bare host runs, a class whole where it is the class that does not come up.
    let some = ends("pass a.A.a\nskip a.A.b\nskip setUpClass (a.B)\nfail a.C.c (i=1)\nloaded 5\nend 5\n");
    assert_eq!((some.left(), &some.loaded[..]), (["a.A.b", "a.B", "a.C.c"].into(), &[5][..]));
    assert_eq!(ends("").died, ["rank 0 ended or hung where it began"]);
}
