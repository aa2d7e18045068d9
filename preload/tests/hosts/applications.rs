//! Tests of the datatypes of real applications, which are the rows of the C program `ddtbench`. The
//! program compares the bytes of each message of a derived datatype with those of a message that is
//! packed by hand in loops.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use crate::setup::{Host, Run, hosts, library, lossy, package, reports, same, scratch};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// Number of rows of the program `ddtbench`. The program prints the number of rows that it has run.
const ROWS: usize = 69;

/// Settings of the preload library with which a program is run.
pub(crate) struct Way {
    pub(crate) name: &'static str,
    policy: &'static str,
    /// If true, a type is compiled when its uses pay for the compilation, which is the default for
    /// users. If false, a type is compiled at its first use.
    lazily: bool,
    /// True if many messages must be converted with these settings, whatever the policy table for
    /// the MPI library contains.
    pub(crate) converts: bool,
}

/// Three ways to run a program. `shipped` has the settings that users have by default. `all`
/// converts everything from the first use of a type on. `lazily` converts every type as soon as its
/// compilation pays, so that the MPI library executes the first calls for a type and compiled code
/// the later calls.
pub(crate) const WAYS: [Way; 3] = [
    Way { name: "shipped", policy: "table", lazily: true, converts: false },
    Way { name: "all", policy: "all", lazily: false, converts: true },
    Way { name: "lazily", policy: "all", lazily: true, converts: false },
];

impl Way {
    pub(crate) fn set_up(&self, run: Run) -> Run {
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
        let (unmodified, _) = checked(host, &[]).text();
        assert!(unmodified.ends_with(&format!("rows {ROWS} wrong 0\n")), "{host:?} {unmodified}");
        if first.is_empty() {
            first.clone_from(&unmodified);
        }
        same(&format!("{host:?}, unmodified (left), {:?} (right)", HOSTS[0]), &unmodified, &first);
        for way in WAYS {
            let folder = scratch(&format!("applications-{host:?}-{}", way.name));
            let run = way.set_up(checked(host, &[])).env("DDTC_REPORT", folder.join("report%r.json"));
            let (text, errors) = run.text();
            same(&format!("{host:?} {} {errors}", way.name), &text, &unmodified);
            for said in reports(&folder, 2) {
                assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {} {said:?}", way.name);
                // The program runs two rounds, and most of its rows send three messages in a round.
                // A rank therefore packs more than 100 messages if everything is converted.
                assert!(!way.converts || said["messages_packed"] > 100, "{host:?} {said:?}");
            }
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

/// Checks that both sides of a transpose are converted. In a transpose, the sender uses a datatype
/// of rows and the receiver uses a datatype of columns. The policy table for Intel MPI converts
/// only the columns by itself. The rows are converted because the columns are.
#[test]
fn both_sides_of_a_transpose_are_converted() {
    for host in [Host::Mpich, Host::Intel] {
        for said in transposed(host, "2", |_| ()) {
            assert!(said["messages_packed"] > 10 && said["messages_unpacked"] > 10, "{host:?} {said:?}");
        }
    }
}

/// Checks that the convertor hook of Open MPI serves a program that only transposes matrices by
/// collective calls. The preload library does not measure the time of collective calls, so it
/// enables the hook once these calls have moved many bytes.
#[test]
fn a_program_of_transposes_is_served_inside() {
    let as_users_have_it = |run: &mut Run| {
        run.command.env_remove("DDTC_LAZY_THRESHOLD");
    };
    for said in transposed(Host::OpenMpi, "20", as_users_have_it) {
        assert!(said["hook_bytes_packed"] > 0 && said["hook_bytes_unpacked"] > 0, "{said:?}");
    }
}

/// Runs the rows of the program `ddtbench` whose names begin with `FFT2`, with both datatypes of
/// each row, in two rounds of `exchanges` exchanges. Returns the report of each rank.
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

/// Checks that the program `ddtbench` notices wrong bytes in messages of derived datatypes. One
/// fault changes a byte that belongs to the type, and another fault changes a byte in a gap of the
/// type.
#[test]
fn wrong_bytes_of_applications_are_seen() {
    for host in HOSTS {
        // A library with a planted fault flips one byte of each message that a rank receives, and
        // rank 1 sends back what it has received. If the byte is the last one of the message, the
        // second flip on the way back repairs the byte, so that only rank 1 sees an error. A byte
        // after the message is wrong on both ranks.
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

/// Checks benches/applications.py, which measures the times of the rows of `ddtbench`. The script
/// must print a table of the rows that the test asks for. The measured times are not judged.
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
