//! Test with the test programs of BLACS, PBLAS and ScaLAPACK (the testers), which were not written
//! for this project. Their verdicts on four ranks must be the same with the preload library as
//! without it. `tests/scalapack.sh` installs Debian's builds of these programs, which run under the
//! pinned MPI libraries with the same ABI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::applications::WAYS;
use crate::setup::{Host, Run, hosts, lossy, package, reports, same, scratch, succeed};

const HOSTS: [(Host, &str, &str); 3] =
    [(Host::Mpich, "mpich", "mpich"), (Host::Intel, "impi", "mpich"), (Host::OpenMpi, "openmpi", "openmpi")];

/// The testers that run, each with a mask of parts. The parts of a BLACS tester are point-to-point
/// messages, broadcasts, combinations, and auxiliary functions. The last part ends the job by an
/// abort, so it runs in a job of its own.
const TESTERS: [(&str, &str); 6] = [
    ("xCbtest", "TTTF"),
    ("xFbtest", "TTTF"),
    ("xCbtest", "FFFT"),
    ("xdlu", ""),
    ("xdqr", ""),
    ("zpb3tst", ""),
];

/// Input of the BLACS testers. It has every kind of matrix and scope, but fewer sizes and
/// topologies than the input that Debian supplies.
const SENDS: &str = "\
5 Number of shapes
'G' 'U' 'U' 'L' 'L' UPLO
'E' 'U' 'N' 'U' 'N' DIAG
5 Number of matrices
2 1 25 13 0 M
2 7 19 32 0 N
2 3 25 14 1 LDASRC
3 2 25 22 1 LDADEST
4 Number of pairs
0 1 3 0 RSRC
0 0 0 2 CSRC
0 1 2 0 RDEST
1 1 0 0 CDEST
3 Number of grids
2 4 1 NPROW
2 1 4 NPCOL
";
const BROADCASTS: &str = "\
3 Number of scopes
'R' 'C' 'A' values for scopes
4 Number of topologies
'I' 'S' ' ' 'T' TOP
5 Number of shapes
'G' 'U' 'U' 'L' 'L' UPLO
'E' 'U' 'N' 'U' 'N' DIAG
3 Number of matrices
2 25 13 M
7 19 32 N
3 25 14 LDASRC
2 25 22 LDADEST
2 Number of sources
0 1 RSRC
0 0 CSRC
2 Number of grids
2 4 NPROW
2 1 NPCOL
";
const COMBINATIONS: &str = "\
3 Number of operations
'+' '>' '<' operations
3 Number of scopes
'R' 'C' 'A' values for scopes
2 Repeatability flag
0 Coherence flag
2 Number of topologies
' ' 'T' TOP
4 Number of matrices
3 1 25 13 M
5 1 19 32 N
5 1 25 14 LDASRC
9 1 25 22 LDADEST
4 1 25 22 LDI
2 Number of destinations
0 -1 RDEST
0 -1 CDEST
2 Number of grids
2 1 NPROW
2 4 NPCOL
";

/// Input of the tester of LU factorizations, chosen so that few messages wait for each other. Ranks
/// that share a core alternate in time slices of the scheduler, so each such wait is long.
const LU: &str = "\
'LU factorization'
'four ranks'
'LU.out' file
6 device
3 sizes
13 31 50 M
17 31 43 N
2 blocks
2 5 NB
2 right sides
1 9 NRHS
1 their blocks
3 NBRHS
2 grids
2 1 P
2 4 Q
1.0 threshold
F condition
";
const QR: &str = "\
'Orthogonal factorizations'
'four ranks'
'QR.out' file
6 device
6 factorizations
'QR' 'QL' 'LQ' 'RQ' 'QP' 'TZ'
2 sizes
5 26 M
7 20 N
1 blocks
4 MB
3 NB
2 grids
2 1 P
2 4 Q
5.0 threshold
";

/// Prepares the testers with `tests/scalapack.sh`, and returns the folder in which they are.
fn testers() -> PathBuf {
    for (host, ..) in HOSTS {
        host.root();
    }
    let script = package().parent().expect("workspace").join("tests/scalapack.sh");
    succeed(Command::new(script).arg(hosts()), "the testers of ScaLAPACK are packages of Debian 12");
    hosts().join("scalapack")
}

/// Makes a folder in which a tester runs and from which it reads its input files. `parts` is the
/// mask of the parts that run. Returns the folder.
fn prepared(testers: &Path, name: &str, parts: &str) -> PathBuf {
    let folder = scratch(name);
    // Debian's input for the tester of PBLAS has four process grids and four problems. Here only
    // the first grid is used, which is two by two, and only the first two problems.
    let problems = fs::read_to_string(testers.join("data/PZBLAS3TST.dat")).unwrap();
    let (grids, tests) = ("4\t\tnumber of process grids", "4\t\tnumber of tests");
    assert!(problems.contains(grids) && problems.contains(tests), "{problems}");
    let problems = problems.replace(grids, "1 grid").replace(tests, "2 tests");
    let parts: String = parts.chars().map(|part| format!("'{part}' run?\n")).collect();
    let all =
        format!("'BLACS'\n6 device\n'out' file\n{parts}5 precisions\n'I' 'S' 'D' 'C' 'Z'\n0 verbosity\n");
    let inputs = [("bt", all.as_str()), ("sdrv", SENDS), ("bsbr", BROADCASTS), ("comb", COMBINATIONS)];
    let others = [("LU", LU), ("QR", QR), ("PZBLAS3TST", &problems)];
    for (file, text) in inputs.into_iter().chain(others) {
        fs::write(folder.join(format!("{file}.dat")), text).unwrap();
    }
    folder
}

/// Returns the verdicts in the output of a tester, without times and residuals, which differ from
/// run to run.
fn verdicts(text: &str) -> String {
    let verdict_words = ["PASSED", "FAILED", "SKIPPED", "passed", "failed", "skipped", "NO FAILURES", "|  P"];
    let is_number = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    let mut found = String::new();
    for line in text.lines().filter(|line| verdict_words.iter().any(|word| line.contains(word))) {
        // The tester skips this check if sums in two orders happen to be equal, so a skipped check
        // counts as passed.
        let line = line.replace("SKIPPED REPEATABLE SUM", "PASSED REPEATABLE SUM");
        let words: Vec<&str> = line.split_whitespace().filter(|word| !is_number(word)).collect();
        found += &words.join(" ");
        found.push('\n');
    }
    found
}

/// Runs one of the test programs of BLACS, PBLAS or ScaLAPACK. Returns its verdicts, whether it
/// succeeded, and its whole output.
fn outcome(run: Run) -> (String, bool, String) {
    let output = run.output();
    let text = lossy(&output.stdout);
    (verdicts(&text), output.status.success(), format!("{text}\n{}", lossy(&output.stderr)))
}

#[test]
fn testers_of_scalapack_say_what_they_say_of_the_bare_host() {
    let testers = testers();
    for (host, name, abi) in HOSTS {
        for (tester, parts) in TESTERS {
            let folder = prepared(&testers, &format!("scalapack-{name}-{tester}{parts}"), parts);
            let run = || {
                let mut run = host.ranks(4, testers.join(abi).join(tester));
                run.command.current_dir(&folder);
                // `LD_LIBRARY_PATH` names all folders of the MPI library. MPICH's wheel searches
                // for its parts relative to its own file, and the testers reach that file by a link
                // in another folder.
                let library = host.root().join("lib");
                let more = testers.join(format!("with-{name}"));
                let path = [more, testers.join("lib"), library.clone(), library.join("mpich")];
                run.env("LD_LIBRARY_PATH", std::env::join_paths(path).unwrap())
            };
            let (unmodified, succeeded, said) = outcome(run());
            assert!(unmodified.matches("PASSED").count() >= 6, "{host:?} {tester} {parts}\n{said}");
            for way in &WAYS[..2] {
                let what = format!("{host:?} {tester} {parts} {}", way.name);
                let run = way.set_up(run()).env("DDTC_REPORT", folder.join("report%r.json"));
                let (with, ended, said) = outcome(run);
                same(&format!("{what}\n{said}"), &with, &unmodified);
                assert_eq!(ended, succeeded, "{what}\n{said}");
                // A job that ends by an abort leaves no reports, so only its verdicts are compared.
                // This is the job of the last part of the BLACS testers.
                if !succeeded {
                    continue;
                }
                let reports = reports(&folder, 4);
                let all = |what: &str| reports.iter().map(|said| said[what]).sum::<u64>();
                assert_eq!((all("fallbacks"), all("panics")), (0, 0), "{what} {reports:?}");
                let (commits, layouts) = (all("commits"), all("layouts"));
                let (packed, bypassed) = (all("messages_packed") + all("packs"), all("calls_bypassed"));
                eprintln!(
                    "{what}: {layouts} layouts, {commits} commits, {packed} packed, {bypassed} bypassed"
                );
                assert!(!way.converts || packed > 100, "{what} {reports:?}");
            }
            fs::remove_dir_all(folder).unwrap();
        }
    }
}
