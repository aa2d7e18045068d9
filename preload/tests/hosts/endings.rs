//! Tests of MPI calls that return an error while the MPI library still executes their operations.
//! The preload library must not free the staging buffer of such an operation before the operation
//! has ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::clients::{compile, tool};
use crate::setup::{Host, library, lossy, report, scratch, sources};

/// Compiles the program `endings` and the small MPI library for it (`endings_library.c`) into a
/// folder, and returns the path of the program.
fn compiled(folder: &Path) -> PathBuf {
    let (shared, program) = (folder.join("libendings.so"), folder.join("endings"));
    let mut library = Command::new("cc");
    library.args(["-g", "-O1", "-Wall", "-shared", "-fPIC", "-o"]).arg(&shared);
    compile(library.arg(sources().join("endings_library.c")));
    let mut main = Command::new("cc");
    main.args(["-g", "-O1", "-Wall", "-o"]).arg(&program).arg(sources().join("endings.c")).arg(&shared);
    compile(main.arg("-Wl,-rpath").arg(folder));
    program
}

/// Runs `command` with the preload library and with settings under which it converts every call.
/// The version text of the small MPI library names no device, so ddtc cannot determine the
/// transport. `DDTC_UNPROVEN` permits all kinds of calls nevertheless.
fn preloaded(folder: &Path, command: &mut Command, variables: &[(&str, &str)]) -> Output {
    command.env("LD_PRELOAD", library()).env("DDTC_MODE", "commit").env("DDTC_POLICY", "all");
    command.env("DDTC_UNPROVEN", "1");
    command.env("DDTC_REPORT", folder.join("report%r.json")).envs(variables.iter().copied()).output().unwrap()
}

/// Asserts that the program `endings` succeeded and found no wrong byte, and returns its report.
fn right(folder: &Path, out: &Output) -> std::collections::HashMap<String, u64> {
    let (text, errors) = (lossy(&out.stdout), lossy(&out.stderr));
    assert!(out.status.success() && text == "wrong 0\n", "{}: {text}\n{errors}", out.status);
    // The small MPI library tells the process that it is rank 1, so the report is that of rank 1.
    report(&fs::read_to_string(folder.join("report1.json")).unwrap())
}

/// Checks that staging buffers outlive the operations that use them. The program `endings` makes
/// every call return an error of every class in two ways: the operation is over when the call
/// returns, or it is still in progress. Staging buffers lie between inaccessible pages, so that an
/// access to a buffer that was freed too early faults at once.
#[test]
fn whatever_a_call_ends_with_its_buffers_outlive_it() {
    let folder = scratch("endings");
    let program = compiled(&folder);
    let unmodified = Command::new(&program).arg("1").output().unwrap();
    assert_eq!(lossy(&unmodified.stdout), "wrong 0\n");
    let said = right(&folder, &preloaded(&folder, Command::new(&program).arg("1"), &[("DDTC_FENCES", "1")]));
    assert!(said["messages_packed"] > 70_000 && said["messages_unpacked"] > 70_000, "{said:?}");
    assert!(said["panics"] == 0 && !said.contains_key("bypassed_after_errors"), "{said:?}");
    // This run of the program `endings` has no inaccessible pages around the staging buffers. The
    // preload library then uses freed buffers again at once, so that a late access would change the
    // bytes of another operation.
    right(&folder, &preloaded(&folder, Command::new(&program).arg("3"), &[]));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn calls_that_would_keep_too_much_memory_are_left_to_the_library() {
    let folder = scratch("endings-full");
    let program = compiled(&folder);
    let said =
        right(&folder, &preloaded(&folder, Command::new(&program).arg("full"), &[("DDTC_FENCES", "1")]));
    assert_eq!(said.get("bypassed_after_errors"), Some(&2), "{said:?}");
    fs::remove_dir_all(folder).unwrap();
}

/// Checks an MPI library that moves bytes from or to other places than those of the type map. Its
/// accesses must stay inside the staging buffers, which have room for them, and `DDTC_CHECK` must
/// report the difference.
#[test]
fn a_library_with_another_type_map_stays_inside_its_buffers() {
    let folder = scratch("endings-elsewhere");
    let program = compiled(&folder);
    let run = |check| {
        let variables = [("DDTC_FENCES", "1"), ("DDTC_CHECK", check)];
        right(&folder, &preloaded(&folder, Command::new(&program).arg("elsewhere"), &variables))
    };
    assert_eq!(run("0")["other_differences_of_mpi"], 0);
    let said = run("1");
    assert!(said["other_differences_of_mpi"] > 0 && said["faults_of_ddtc"] == 0, "{said:?}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn valgrind_finds_nothing_after_errors() {
    tool("valgrind", "valgrind");
    let folder = scratch("endings-valgrind");
    let program = compiled(&folder);
    for (mode, fences) in [("40", "0"), ("110", "1"), ("elsewhere", "1")] {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--smc-check=all", "--error-exitcode=9", "-q"]).arg(&program).arg(mode);
        right(
            &folder,
            &preloaded(&folder, &mut valgrind, &[("DDTC_FENCES", fences), ("DDTC_TARGET", "avx2")]),
        );
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Checks Open MPI itself instead of the small MPI library. A receive from any source that the
/// failure of another process interrupts must go on and end without wrong bytes.
#[test]
fn receives_survive_the_failure_of_a_process() {
    let program = Host::OpenMpi.compile("survivor", &[]);
    let expected = "first wait: PROC_FAILED_PENDING, request pending\nsecond wait: code 0, 0 of 300 wrong\n";
    for round in 0..10 {
        let call = (round % 4).to_string();
        let run = || Host::OpenMpi.tolerant_ranks(3, &program).arg(&call);
        if round < 4 {
            assert_eq!(lossy(&run().output().stdout), expected, "without the library, call {call}");
        }
        let out = run().preload().env("DDTC_POLICY", "all").output();
        assert_eq!(lossy(&out.stdout), expected, "round {round}, call {call}\n{}", lossy(&out.stderr));
    }
}
