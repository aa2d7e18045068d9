//! Layouts of applications: the rows of `ddtbench.c`. The bytes of each message are compared with
//! those of a message that loops pack by hand.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use crate::setup::{Host, Run, hosts, library, lossy, package, reports, same, scratch};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// Number of rows of the program, which prints how many it has run.
const ROWS: usize = 69;

/// A way to run a program with the preload library.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    policy: &'static str,
    /// If true, a type is compiled when its uses pay for the compilation, which is the default for
    /// users. If false, a type is compiled at its first use.
    lazily: bool,
    /// True if many messages must be converted, whatever the policy for the MPI library says.
    pub(crate) converts: bool,
}

/// Three ways: the shipped settings, conversion of everything from the first use on, and conversion
/// of every type as soon as that pays. In the last way the calls for one type change from the MPI
/// library to converted ones between two uses.
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
                // The program runs two rounds with three messages for most rows.
                assert!(!way.converts || said["messages_packed"] > 100, "{host:?} {said:?}");
            }
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

/// Checks that both sides of a transpose are converted. The sender uses a datatype of rows and the
/// receiver one of columns. The table for Intel MPI converts the columns only, and the rows are
/// converted along with them.
#[test]
fn both_sides_of_a_transpose_are_converted() {
    for host in [Host::Mpich, Host::Intel] {
        for said in transposed(host, "2", |_| ()) {
            assert!(said["messages_packed"] > 10 && said["messages_unpacked"] > 10, "{host:?} {said:?}");
        }
    }
}

/// Checks that the convertor hook of Open MPI serves a program that only transposes. Collective
/// calls are not timed, so the hook is enabled once they have moved many bytes.
#[test]
fn a_program_of_transposes_is_served_inside() {
    let as_users_have_it = |run: &mut Run| {
        run.command.env_remove("DDTC_LAZY_THRESHOLD");
    };
    for said in transposed(Host::OpenMpi, "20", as_users_have_it) {
        assert!(said["hook_bytes_packed"] > 0 && said["hook_bytes_unpacked"] > 0, "{said:?}");
    }
}

/// Runs both datatypes of each FFT2 row with `exchanges` exchanges, and returns the report of each
/// rank.
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

/// Checks that the program notices wrong bytes in messages of derived datatypes, both in the bytes
/// of the type and in a gap.
#[test]
fn wrong_bytes_of_applications_are_seen() {
    for host in HOSTS {
        // Rank 1 sends back what it has received. For the last byte of the message, a second flip
        // on the way back repairs the byte, so that only rank 1 sees an error.
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

/// Checks the driver that times the rows: it must print a table of the rows that it was asked for.
/// The measured times are not judged.
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
