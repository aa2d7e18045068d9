//! Tests of `ddtc check` with faults that are planted in addition to the faults that each MPI
//! library has. `ddtc check` must find each planted fault, by a program that fails on the faulty
//! library and passes on the MPI library itself.
//!
//! `DDTC_PLANTED=whole` runs all faults on all libraries with three seeds, and prints how long each
//! search took. Words after `whole`, separated by commas, select libraries and faults.
//! docs/history/testing.md has a record of such a run.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::hunt::{Finding, Hunt, include};
use crate::setup::{Host, lossy, scratch, succeed};

/// Names of the faults that are planted. There are faults of different kinds: bytes that are
/// flipped, lost, moved or written beyond the type, in packing, unpacking and messages, and wrong
/// numbers from queries of a type.
const FAULTS: [&str; 10] = [
    "last-of-indexed",
    "lost-of-hindexed",
    "swapped-of-vector",
    "first-of-struct",
    "behind-of-contiguous",
    "last-of-long-message",
    "behind-of-truncated",
    "elements-of-vector",
    "contents-of-hindexed",
    "true-extent-of-subarray",
];

const HOSTS: [Host; 3] = [Host::Mpich, Host::OpenMpi, Host::Intel];

/// Seconds after which a search by `ddtc check` ends by itself. The limit is far longer than any
/// search takes, so a fault that is not found by then counts as missed.
const HUNTED: &str = "1800";

/// Returns true if the finding `f` shows the planted fault: its program fails on the faulty
/// library, as `ddtc check` has confirmed, and passes on the MPI library alone.
fn is_planted(host: Host, folder: &Path, f: &Finding) -> bool {
    if f.class != "bug" || f.confirmed != "true" {
        return false;
    }
    let source = folder.join(format!("{}.c", f.fingerprint));
    let program = folder.join("planted");
    let mut compiler = Command::new(host.compiler());
    succeed(compiler.args(["-O1", "-w", "-o"]).arg(&program).arg(&source), "a program of a finding");
    host.run(&program).output().status.success()
}

/// Runs `ddtc check` on an MPI library with the planted fault `fault` until it has found the fault.
/// Returns the finding, and the seconds that the search took.
fn found(host: Host, fault: &str, seed: u64) -> (Finding, f64) {
    let library = host.compile("faulty", &["-shared", "-fPIC"]);
    let (name, seed) = (format!("planted-{host:?}-{fault}-{seed}"), seed.to_string());
    let mut hunt = Hunt::new(&name, &library, &include(host), &["--seconds", HUNTED, "--seed", &seed]);
    hunt.command.env("LD_LIBRARY_PATH", host.root().join("lib")).env("FAULT", fault);
    let programs = scratch(&format!("{name}-programs"));
    let mut child = hunt.command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (began, mut seen) = (Instant::now(), 0);
    // Read new findings while the search runs. The program of each finding is copied into the
    // folder `programs`, where it is compiled and run.
    let found = loop {
        let ended = child.try_wait().unwrap();
        let text = std::fs::read_to_string(hunt.folder.join("findings.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let new: Vec<Finding> = whole.lines().skip(seen).map(Finding::read).collect();
        seen += new.len();
        let planted = new.into_iter().find(|f| {
            let program = format!("{}.c", f.fingerprint);
            let there = std::fs::copy(hunt.folder.join(&program), programs.join(&program)).is_ok();
            there && is_planted(host, &programs, f)
        });
        if let Some(planted) = planted {
            break Some(planted);
        }
        if ended.is_some() {
            break None;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    let found = found.unwrap_or_else(|| {
        panic!("{fault} on {host:?} from seed {seed} after {:?}: {}", began.elapsed(), lossy(&output.stderr))
    });
    for folder in [&hunt.folder, &programs] {
        // The search was killed. One of its worker or compiler processes may still write a last
        // file, so that the folder cannot be removed at once.
        for _ in 0..50 {
            if std::fs::remove_dir_all(folder).is_ok() || !folder.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    let seconds = found.seconds;
    (found, seconds)
}

/// Checks the first four planted faults on every MPI library with one seed. With
/// `DDTC_PLANTED=whole`, checks all faults with three seeds.
#[test]
fn planted_faults_are_found_beside_the_host_s_own() {
    let words = std::env::var("DDTC_PLANTED").unwrap_or_default();
    let words: Vec<&str> = words.split(',').filter(|word| !word.is_empty()).collect();
    let whole = words.first() == Some(&"whole");
    let hosts = HOSTS.map(|host| (host, format!("{host:?}").to_lowercase()));
    let is_named = |word: &&&str| FAULTS.contains(*word) || hosts.iter().any(|(_, name)| name == *word);
    assert_eq!(words.iter().skip(1).find(|word| !is_named(word)), None, "neither a host nor a fault");
    // Returns true if `name`, which is the name of a library or of a fault, is to be tried. `among`
    // returns true for words of the same sort as `name`. `name` is to be tried if it is among the
    // words of `DDTC_PLANTED`, or if none of these words is of the same sort.
    let chosen = |name: &str, among: &dyn Fn(&str) -> bool| {
        let mut named = words.iter().skip(1).filter(|word| among(word)).peekable();
        named.peek().is_none() || named.any(|word| *word == name)
    };
    let (faults, seeds): (&[&str], &[u64]) = if whole { (&FAULTS, &[1, 2, 3]) } else { (&FAULTS[..4], &[1]) };
    for (host, name) in &hosts {
        for fault in faults {
            let host = *host;
            let is_host = |word: &str| hosts.iter().any(|(_, name)| name == word);
            if !chosen(name, &is_host) || !chosen(fault, &|word| FAULTS.contains(&word)) {
                continue;
            }
            let mut line = format!("| {host:?} | {fault} |");
            for &seed in seeds {
                let (f, seconds) = found(host, fault, seed);
                line += &format!(" {seconds:.1} s, `{}` |", f.fingerprint);
            }
            eprintln!("{line}");
        }
    }
}
