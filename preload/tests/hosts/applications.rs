//! Layouts of applications: the rows of `ddtbench.c`, whose bytes are compared with what loops leave that pack by hand.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use crate::setup::{Host, Run, hosts, library, lossy, package, reports, same, scratch};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// Rows of the program, which says how many it had.
const ROWS: usize = 69;

/// How programs run with the library.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    policy: &'static str,
    /// Whether types are compiled when their uses pay for that, as users have it, and not at the first.
    lazily: bool,
    /// Whether much is converted, whatever the policy of the host says.
    pub(crate) converts: bool,
}

/// As shipped, all at once, and all as it pays: from one use to the next the host's calls become converted ones.
pub(crate) const WAYS: [Way; 3] = [
    Way { name: "shipped", policy: "table", lazily: true, converts: false },
    Way { name: "all", policy: "all", lazily: false, converts: true },
    Way { name: "lazily", policy: "all", lazily: true, converts: false },
];

impl Way {
    pub(crate) fn of(&self, run: Run) -> Run {
        let mut run = run.preload().env("DDTC_POLICY", self.policy);
        if self.lazily {
            run.command.env_remove("DDTC_LAZY_THRESHOLD");
        }
        run
    }
}

fn checked(host: Host, rows: &[&str]) -> Run {
    let run = host.ranks(2, host.compile("ddtbench", &["-O2"])).arg("check");
    rows.iter().fold(run, |run, word| run.arg(word))
}

#[test]
fn messages_of_applications_are_those_packed_by_hand() {
    let mut first = String::new();
    for host in HOSTS {
        let (bare, _) = checked(host, &[]).text();
        assert!(bare.ends_with(&format!("rows {ROWS} wrong 0\n")), "{host:?} {bare}");
        if first.is_empty() {
            first.clone_from(&bare);
        }
        same(&format!("{host:?}, bare (left), {:?} (right)", HOSTS[0]), &bare, &first);
        for way in WAYS {
            let folder = scratch(&format!("applications-{host:?}-{}", way.name));
            let run = way.of(checked(host, &[])).env("DDTC_REPORT", folder.join("report%r.json"));
            let (text, errors) = run.text();
            same(&format!("{host:?} {} {errors}", way.name), &text, &bare);
            for said in reports(&folder, 2) {
                assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {} {said:?}", way.name);
                // Two rounds with three messages of most rows.
                assert!(!way.converts || said["messages_packed"] > 100, "{host:?} {said:?}");
            }
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

/// A transpose: rows are sent, which Intel MPI's table leaves to it, and columns received, which are converted. The rows go along.
#[test]
fn both_sides_of_a_transpose_are_converted() {
    for host in [Host::Mpich, Host::Intel] {
        for said in transposed(host, "2", |_| ()) {
            assert!(said["messages_packed"] > 10 && said["messages_unpacked"] > 10, "{host:?} {said:?}");
        }
    }
}

/// Nobody times what collective calls move: Open MPI's convertor hook is enabled once that is much.
#[test]
fn a_program_of_transposes_is_served_inside() {
    let as_users_have_it = |run: &mut Run| {
        run.command.env_remove("DDTC_LAZY_THRESHOLD");
    };
    for said in transposed(Host::OpenMpi, "20", as_users_have_it) {
        assert!(said["hook_bytes_packed"] > 0 && said["hook_bytes_unpacked"] > 0, "{said:?}");
    }
}

/// Two datatypes of each of FFT2's rows, with so many exchanges: the report of each rank.
fn transposed(host: Host, exchanges: &str, set: impl Fn(&mut Run)) -> Vec<HashMap<String, u64>> {
    let folder = scratch(&format!("transposed-{host:?}"));
    let run = checked(host, &["2", exchanges, "FFT2"]).preload().env("DDTC_POLICY", "table");
    let mut run = run.env("DDTC_REPORT", folder.join("report%r.json"));
    set(&mut run);
    let (text, _) = run.text();
    assert!(text.ends_with(" wrong 0\n"), "{host:?} {text}");
    let said = reports(&folder, 2);
    fs::remove_dir_all(folder).unwrap();
    said
}

/// Bytes that a derived datatype's message gets wrong, in what it maps and in a gap.
#[test]
fn wrong_bytes_of_applications_are_seen() {
    for host in HOSTS {
        // What rank 1 receives is sent back as it is, and another flip of the last byte heals it.
        for (fault, ranks) in [("last-of-long-message", "0 1"), ("behind-of-long-message", "1 1")] {
            let library = host.compile("faulty", &["-shared", "-fPIC"]);
            let run = checked(host, &["1", "1", "MILC"]).env("LD_PRELOAD", library).env("FAULT", fault);
            let output = run.output();
            let text = lossy(&output.stdout);
            assert!(!output.status.success(), "{host:?} {fault} {text}");
            let wrong = text.lines().filter(|line| line.ends_with(&format!(" WRONG {ranks}"))).count();
            assert_eq!(wrong, 4, "{host:?} {fault} {text}{}", lossy(&output.stderr));
        }
        assert!(checked(host, &["1", "1", "MILC"]).output().status.success(), "{host:?}");
    }
}

/// The driver that times the rows: a table of what it was asked for. What it measures, no test knows.
#[test]
fn applications_are_timed_with_the_library_and_without() {
    for host in HOSTS {
        host.root();
    }
    let script = package().parent().expect("workspace").join("benches/applications.py");
    let mut driver = Command::new(script);
    driver.arg("--library").arg(library()).arg("--wheels").arg(hosts());
    driver.args(["--rounds", "1", "--outer", "2", "--inner", "2", "--case", "MILC"]);
    let output = driver.output().expect("python3 is needed: install python3");
    let (text, errors) = (lossy(&output.stdout), lossy(&output.stderr));
    assert!(output.status.success(), "{text}{errors}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("MILC_su3_zd")).collect();
    assert_eq!(rows.len(), 4 * HOSTS.len(), "{text}{errors}");
    for row in rows {
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words.len(), 18, "{row}");
        assert!(words[3..].iter().all(|word| word.parse::<f64>().is_ok()), "{row}");
    }
}
