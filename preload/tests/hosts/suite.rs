//! mpi4py's own tests: every one that passes on a bare host passes with the library.
//!
//! The whole, on one, two and four ranks, converting by the table and all that it can: `DDTC_MPI4PY=whole cargo test -p ddtc-preload --test hosts --
//! tests_of_mpi4py`. Otherwise what moves data, on two, converting all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clients::manifest;
use crate::setup::{Host, Run, hosts, scratch, succeed};

/// The source of the version that the hosts have.
const SOURCE: &str = "mpi4py-4.1.2";
const SHA256: &str = "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02";

/// Modules of tests that move data with datatypes.
const MOVING: &str = "cco_((nb|pr|pr_ngh|ngh)_)?(buf|vec)|p2p_buf|datatype|msgspec|pack|request";

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

/// What became of each test on each rank.
type Verdicts = BTreeMap<(u32, String), String>;

fn verdicts(log: &Path, ranks: u32) -> Verdicts {
    let mut all = Verdicts::new();
    for rank in 0..ranks {
        let text = fs::read_to_string(log.with_extension(rank.to_string())).unwrap_or_default();
        for line in text.lines() {
            let (verdict, test) = line.split_once(' ').unwrap();
            // What fails in a part stays failed.
            let now = all.entry((rank, test.to_owned())).or_default();
            if now != "fail" {
                verdict.clone_into(now);
            }
        }
    }
    all
}

/// How a job is run.
#[derive(Clone, Copy, Debug)]
enum Way {
    Bare,
    Table,
    All,
}

/// One run of the tests.
struct Job<'a> {
    host: Host,
    ranks: u32,
    main: &'a Path,
    folder: &'a Path,
    part: &'a [&'a str],
}

impl Job<'_> {
    fn run(&self, way: Way) -> Verdicts {
        let log = self.folder.join(format!("{way:?}"));
        for rank in 0..self.ranks {
            let _ = fs::remove_file(log.with_extension(rank.to_string()));
        }
        let run = self.host.ranks(self.ranks, self.host.root().join("bin/python"));
        let run = run.arg(manifest("tests/python/suite.py")).arg(&log).arg(self.main).arg("--no-builddir");
        let run = self.part.iter().fold(run, Run::arg);
        let run = match way {
            Way::Bare => run,
            Way::Table => run.preload(),
            Way::All => run.preload().env("DDTC_POLICY", "all"),
        };
        // Tests that fail make it fail.
        let _ = run.output();
        verdicts(&log, self.ranks)
    }

    /// Tests that pass bare and not this way, three times. `bare`: what the first run of the bare host came to.
    fn worse(&self, way: Way, bare: &Verdicts) -> BTreeSet<(u32, String)> {
        let passed = |all: &Verdicts, test: &(u32, String)| all.get(test).is_some_and(|v| v == "pass");
        let differ = |bare: &Verdicts| {
            let with = self.run(way);
            let tests = bare.keys().filter(|test| passed(bare, test) && !passed(&with, test));
            tests.cloned().collect::<BTreeSet<_>>()
        };
        let mut worse = differ(bare);
        for _ in 1..3 {
            if worse.is_empty() {
                break;
            }
            let again = differ(&self.run(Way::Bare));
            worse.retain(|test| again.contains(test));
        }
        worse
    }
}

#[test]
fn the_tests_of_mpi4py_pass_as_on_the_bare_host() {
    let whole = std::env::var("DDTC_MPI4PY").is_ok_and(|v| v == "whole");
    let main = tests();
    let (sizes, part): (&[u32], &[&str]) = if whole { (&[1, 2, 4], &[]) } else { (&[2], &["-i", MOVING]) };
    let ways: &[Way] = if whole { &[Way::Table, Way::All] } else { &[Way::All] };
    let mut differences = String::new();
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        for &ranks in sizes {
            let folder = scratch(&format!("mpi4py-{host:?}-{ranks}"));
            let job = Job { host, ranks, main: &main, folder: &folder, part };
            let bare = job.run(Way::Bare);
            assert!(bare.values().filter(|v| *v == "pass").count() > 100, "{host:?}: {bare:?}");
            for &way in ways {
                for (rank, test) in job.worse(way, &bare) {
                    differences += &format!("{host:?}, {ranks} ranks, {way:?}: rank {rank}: {test}\n");
                }
            }
            fs::remove_dir_all(folder).unwrap();
        }
    }
    assert_eq!(differences, "", "tests that pass on the bare host and not with the library, three times");
}
