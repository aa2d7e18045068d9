//! Tests of the measured times of layouts. The preload library measures, on the program's own
//! buffers, how long the MPI library and compiled code take for a layout. The measurement must
//! change no byte, and the times must be in the report and, for the next run, in the profile cache.

use std::fs;
use std::path::Path;

use crate::setup::{Host, lossy, same, scratch, sorted};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// Runs a program that sends 400 messages of one type under the policy `measure`, and returns the
/// report and the text on standard error. `more` has additional environment variables.
fn messages(host: Host, folder: &Path, more: &[(&str, &str)]) -> (String, String) {
    let file = folder.join("report.json");
    let run = host.run(host.compile("bypassed", &[])).arg("gaps").arg("400").preload();
    let run = run.env("DDTC_POLICY", "measure").env("DDTC_PROFILE_CACHE", "1").env("XDG_CACHE_HOME", folder);
    let run = more.iter().fold(run, |run, (name, value)| run.env(name, value));
    let out = run.env("DDTC_REPORT", &file).output();
    assert!(out.status.success(), "{host:?} {out:?}");
    (fs::read_to_string(file).unwrap(), lossy(&out.stderr))
}

/// Returns those texts of a JSON report that describe messages whose layout was timed.
fn timed(report: &str) -> Vec<&str> {
    report.split('"').filter(|text| text.starts_with("messages from ")).collect()
}

#[test]
fn what_is_timed_is_said_and_kept() {
    for host in HOSTS {
        let folder = scratch(&format!("measured-{host:?}"));
        let (first, _) = messages(host, &folder, &[]);
        // The program's messages have 64 blocks of 4 bytes, which are 256 bytes.
        let [line] = timed(&first)[..] else { panic!("{host:?} {first}") };
        assert!(
            line.starts_with("messages from 256 B: ") && line.contains("; 256 B take the MPI library "),
            "{line}"
        );
        let kept = fs::read_dir(folder.join("ddtc")).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(&kept).unwrap();
        assert!(text.starts_with("ddtc measured 8, ") && text.lines().count() == 2, "{text}");
        // Overwrite the times in the profile cache. The next run must take its times from this
        // file, so it must report the numbers that the test writes here.
        let other = |line: &str| match line.split_once(" 08 ") {
            Some((key, _)) => format!("{key} 08 0000000256 0000123456 0000000789 0000000012\n"),
            None => format!("{line}\n"),
        };
        fs::write(&kept, text.lines().map(other).collect::<String>()).unwrap();
        let (second, errors) = messages(host, &folder, &[]);
        let said =
            "messages from 256 B: converted; 256 B take the MPI library 123456 ns, ddtc 789 ns, a copy 12 ns";
        assert_eq!(timed(&second), [said], "{host:?} {second}\n{errors}");
        // A run without the profile cache, and a run with a policy that measures nothing, must
        // neither use the file of the profile cache nor write it again.
        let (third, _) = messages(host, &folder, &[("DDTC_PROFILE_CACHE", "0")]);
        assert!(timed(&third).len() == 1 && timed(&third) != [said], "{host:?} {third}");
        let (fourth, _) = messages(host, &folder, &[("DDTC_POLICY", "table")]);
        assert!(timed(&fourth).is_empty(), "{host:?} {fourth}");
        assert!(fs::read_to_string(&kept).unwrap().contains("123456"));
        // A file of the profile cache that is not of the right form must be named in an error
        // message and replaced by a new file.
        fs::write(&kept, "what is this\n").unwrap();
        let (fifth, errors) = messages(host, &folder, &[]);
        assert!(errors.contains("line 1 does not have the form of this file"), "{host:?} {errors}");
        assert_eq!(timed(&fifth).len(), 1, "{host:?} {fifth}");
        assert!(fs::read_to_string(&kept).unwrap().starts_with("ddtc measured 8, "));
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks that the measurements change nothing that a program sees: its bytes and statuses must be
/// those of a run under the unmodified MPI library.
#[test]
fn what_is_timed_changes_nothing_else() {
    for host in HOSTS {
        for (program, ranks) in [("messages", 2), ("exchanges", 2), ("bottom", 2)] {
            let program = host.compile(program, &[]);
            let unmodified = sorted(&host.ranks(ranks, &program).text().0);
            for threshold in ["0", "2000"] {
                let run = host.ranks(ranks, &program).preload().env("DDTC_POLICY", "measure");
                let text = sorted(&run.env("DDTC_LAZY_THRESHOLD", threshold).text().0);
                same(&format!("{host:?} {}", program.display()), &text, &unmodified);
            }
        }
    }
}
