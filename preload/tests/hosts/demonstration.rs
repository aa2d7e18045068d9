//! Tests of the example program in docs/examples/shallow/. Its results must be the same without and
//! with conversion, and the number of packs for each edge of its grid must be as expected.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup::{Host, library, lossy, of_type, scratch, succeed};

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("workspace").join("docs/examples/shallow")
}

/// Returns the words of the program's output that do not depend on time: the numbers of ranks,
/// cells and steps, and the sum over the grid.
fn result(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words.len(), 17, "{text}");
    [&words[..6], &words[15..]].concat().join(" ")
}

/// Returns, from a report, the number of packs for each edge of the grid that a rank sent to a
/// neighbour.
fn packs_of_edges(report: &str) -> Vec<u64> {
    let edges = report.lines().filter(|line| line.contains("[double,float]"));
    edges.map(|line| of_type(line, "packs")).filter(|&n| n > 0).collect()
}

#[test]
fn its_results_are_those_of_the_bare_host() {
    let folder = scratch("demonstration");
    for host in Host::ALL {
        let program = folder.join(format!("shallow-{host:?}"));
        let mut compiler = Command::new(host.compiler());
        compiler
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(demo().join("shallow.c"));
        succeed(compiler.arg("-lm"), "a C compiler (cc) is needed: install gcc");
        for ranks in [1, 2, 4] {
            let run = |name: &str| {
                let run = host.ranks(ranks, &program).arg("--cells").arg("24").arg("--steps").arg("9");
                run.arg("--every").arg("4").arg("--picture").arg(folder.join(name))
            };
            let unmodified = result(&run("unmodified.pgm").text().0);
            for policy in ["all", "table"] {
                let report = folder.join("report.json");
                let run = run("with.pgm").preload().env("DDTC_POLICY", policy).env("DDTC_REPORT", &report);
                // With a threshold of 0 bytes, types are converted from their first use on, so the
                // numbers of packs that are compared below do not depend on the speed of the
                // machine.
                let run = if policy == "all" { run.env("DDTC_LAZY_THRESHOLD", "0") } else { run };
                assert_eq!(result(&run.text().0), unmodified, "{host:?} {ranks} {policy}");
                let pictures =
                    ["unmodified.pgm", "with.pgm"].map(|name| fs::read(folder.join(name)).unwrap());
                assert!(
                    pictures[0] == pictures[1] && pictures[0].starts_with(b"P5"),
                    "{host:?} {ranks} {policy}"
                );
                if policy == "all" && ranks > 1 {
                    // A rank has a neighbour at one of the four edges of its part of the grid if
                    // there are 2 ranks, and at two edges if there are 4. Each edge with a
                    // neighbour is packed once in each of the 9 steps, except in the first step, in
                    // which the communicator is new and the call is left to the MPI library.
                    let neighbours = ranks as usize / 2;
                    for rank in 0..ranks {
                        let said = fs::read_to_string(folder.join(format!("report.{rank}.json"))).unwrap();
                        assert_eq!(
                            packs_of_edges(&said),
                            vec![8; neighbours],
                            "{host:?} {rank} of {ranks}\n{said}"
                        );
                    }
                }
            }
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn before_and_after_are_compared() {
    let compare = |arguments: &[&str]| {
        let mut command = Command::new("python3");
        command.arg("-B").arg(demo().join("compare.py")).args(arguments);
        command.arg("--mpicc").arg(Host::Mpich.compiler());
        command.args(["--cells", "8,16", "--steps", "40", "--rounds", "2", "--policy", "all", "--"]);
        command.arg(Host::Mpich.root().join("bin/mpiexec")).args(["-n", "2"]);
        let out = command.output().unwrap_or_else(|e| panic!("python3: {e}: install Python 3"));
        (out.status.success(), lossy(&out.stdout), lossy(&out.stderr))
    };
    let folder = scratch("comparison");
    let (record, built) = (folder.join("record.csv"), library());
    let (built, file) = (built.to_str().unwrap(), record.to_str().unwrap());
    let (success, text, errors) = compare(&["--library", built, "--record", file, "--host", "mpich"]);
    assert!(success, "{text}{errors}");
    assert_eq!(text.lines().filter(|line| line.contains(" us, with ddtc ")).count(), 6, "{text}");
    let record = fs::read_to_string(record).unwrap();
    assert_eq!(record.lines().filter(|line| line.starts_with("mpich,2,")).count(), 6, "{record}");
    let (success, _, errors) = compare(&["--library", "/nowhere/libddtc_preload.so"]);
    assert!(!success && errors.contains("--library /nowhere/libddtc_preload.so: no such file"), "{errors}");
    fs::remove_dir_all(folder).unwrap();
}
