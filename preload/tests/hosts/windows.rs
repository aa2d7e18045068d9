//! Tests of windows. The program `windows` makes the same random one-sided operations with the
//! preload library on all ranks, on some ranks and on no rank.

use std::fs;
use std::path::{Path, PathBuf};

use crate::messages::{on_some, reports, same};
use crate::setup::{Host, Run, library, scratch};

const HOSTS: [Host; 4] = [Host::Mpich, Host::MpichStandard, Host::Intel, Host::OpenMpi];
const EPOCHS: u32 = 40;

fn compiled(host: Host, flags: &[&str]) -> PathBuf {
    let flags: Vec<&str> = ["-Wno-unused-function"].iter().chain(flags).copied().collect();
    host.compile("windows", &flags)
}

/// Adds the arguments of the program `windows` to a run. `max_count` is the maximum number of
/// elements in an operation.
fn arguments(run: Run, seed: u32, max_count: u32) -> Run {
    run.arg(EPOCHS.to_string()).arg(seed.to_string()).arg(max_count.to_string())
}

/// Returns the number of messages that all ranks together have packed, and the number that they
/// have unpacked. Asserts that the reports count no fallbacks and no panics.
fn moved(folder: &Path, ranks: u32) -> (u64, u64) {
    let (mut packed, mut unpacked) = (0, 0);
    for said in reports(folder, ranks) {
        packed += said["messages_packed"];
        unpacked += said["messages_unpacked"];
        assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{said:?}");
    }
    (packed, unpacked)
}

fn assert_same_output(host: Host, ranks: u32, seed: u32, max_count: u32) {
    assert_same_output_in(host, ranks, seed, max_count, |run| run);
}

/// Checks the output of the program `windows`, in a run with the preload library on all ranks and
/// in runs with it on the even or on the odd ranks. The output must be that of the unmodified MPI
/// library and must have no wrong result. `how` adds arguments and environment variables to a run.
fn assert_same_output_in(host: Host, ranks: u32, seed: u32, max_count: u32, how: impl Fn(Run) -> Run) {
    let arguments = |run: Run, seed, max_count| how(arguments(run, seed, max_count));
    let program = compiled(host, &[]);
    let folder = scratch(&format!("windows-{host:?}-{ranks}-{seed}"));
    let what = format!("{host:?}, {ranks} ranks, seed {seed}");
    let (unmodified, _) = arguments(host.ranks(ranks, &program), seed, max_count).text();
    assert!(unmodified.lines().count() >= (2 * EPOCHS * ranks) as usize, "{what}\n{unmodified}");
    assert!(!unmodified.contains("WRONG") && !unmodified.contains("checked 0"), "{what}\n{unmodified}");
    let all = || {
        let run = host.ranks(ranks, &program).preload().env("DDTC_POLICY", "all");
        run.env("DDTC_REPORT", folder.join("report%r.json"))
    };
    same(&what, &arguments(all(), seed, max_count).text().0, &unmodified);
    let (packed, unpacked) = moved(&folder, ranks);
    assert!(
        packed > u64::from(10 * ranks) && unpacked > u64::from(ranks),
        "{what}: {packed} put, {unpacked} got"
    );
    if ranks == 2 {
        let (text, errors) = arguments(all().env("DDTC_CHECK", "1"), seed, max_count).text();
        same(&format!("{what}, checked"), &text, &unmodified);
        for said in reports(&folder, ranks) {
            assert_eq!((said["faults_of_ddtc"], said["other_differences_of_mpi"]), (0, 0), "{errors}");
        }
        let (text, _) = arguments(all().env("DDTC_STAGING_MIB", "1"), seed, max_count).text();
        same(&format!("{what}, capped"), &text, &unmodified);
    }
    if ranks > 1 {
        for parity in 0..2 {
            let some = on_some(host, ranks, &program, parity).env("DDTC_POLICY", "all");
            let (text, _) = arguments(some, seed, max_count).text();
            same(&format!("{what}, ranks {parity} of 2"), &text, &unmodified);
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn windows_are_alike_whoever_converts() {
    for host in HOSTS {
        assert_same_output(host, 1, 1, 300);
        assert_same_output(host, 2, 2, 300);
        assert_same_output(host, 4, 3, 300);
    }
}

/// Checks one-sided operations that are longer than what the MPI libraries send in one piece.
#[test]
fn windows_are_alike_for_long_operations() {
    for host in HOSTS {
        assert_same_output(host, 2, 4, 6000);
    }
}

/// Checks one-sided operations between ranks that share no memory, so that the MPI library sends
/// messages for them.
#[test]
fn windows_are_alike_by_messages() {
    assert_same_output_in(Host::Mpich, 2, 6, 600, |run| run.arg("apart").env("MPIR_CVAR_NOLOCAL", "1"));
    assert_same_output_in(Host::Intel, 2, 7, 600, |run| {
        run.arg("apart").env("I_MPI_FABRICS", "ofi").env("FI_PROVIDER", "tcp")
    });
}

/// Checks a program in which several threads complete gets of each other. A get must be unpacked
/// once, whichever thread completes it, and a flush must return only after the get is unpacked.
#[test]
fn threads_complete_gets_of_each_other() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        let program = host.compile("fetchers", &["-Wno-unused-function"]);
        let folder = scratch(&format!("fetchers-{host:?}"));
        let run = host.ranks(2, &program).preload().env("DDTC_POLICY", "all");
        let run = run.env("DDTC_REPORT", folder.join("report%r.json"));
        let (text, errors) = run.arg("3").arg("300").text();
        assert_eq!(text.trim(), "wrong 0", "{host:?} {errors}");
        let (packed, unpacked) = moved(&folder, 2);
        assert!(packed > 1000 && unpacked > 1000, "{host:?} {packed} {unpacked}");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks the large-count functions for one-sided operations, which Open MPI 5.0 lacks and the
/// preload library has. If a count is too large for the functions that Open MPI has, an error must
/// be raised on the window.
#[test]
fn large_counts_that_a_host_has_not_are_raised_on_the_window() {
    let host = Host::OpenMpi;
    let program = host.compile("large", &["-Wno-unused-function", "-ldl"]);
    for policy in ["all", "none"] {
        let (text, errors) = host.run(&program).preload().env("DDTC_POLICY", policy).text();
        let line = |call| format!("{call}: raised 1, class 79, wrong 0\n");
        let expected: String = ["put", "rget"].map(line).concat();
        assert_eq!(text, expected, "{policy} {errors}");
    }
}

/// Checks two programs that could end an epoch of a window by a call that the preload library does
/// not see. The preload library would then miss that the operations of the epoch are complete, so
/// it must convert no operation on windows. The first program refers to such a function by its
/// `PMPI_` name. The second loads a Fortran binding of Intel MPI after the preload library.
#[test]
fn windows_are_left_alone_where_epochs_may_end_unseen() {
    for host in HOSTS {
        let folder = scratch(&format!("windows-past-{host:?}"));
        let program = compiled(host, &["-DPAST"]);
        let run = host.ranks(2, &program).preload().env("DDTC_POLICY", "all");
        let run = run.env("DDTC_REPORT", folder.join("report%r.json"));
        arguments(run, 5, 300).text();
        assert_eq!(moved(&folder, 2), (0, 0), "{host:?}");
        fs::remove_dir_all(folder).unwrap();
    }
    let host = Host::Intel;
    let folder = scratch("windows-fortran");
    let binding = host.root().join("lib/libmpifort.so.12");
    let both = format!("{} {}", library().display(), binding.display());
    let run = host.ranks(2, compiled(host, &[])).env("LD_PRELOAD", both).env("DDTC_POLICY", "all");
    arguments(run.env("DDTC_REPORT", folder.join("report%r.json")), 5, 300).text();
    assert_eq!(moved(&folder, 2), (0, 0));
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that, of the operations on windows, only those for which a policy table in the user's
/// configuration folder has a row are converted.
#[test]
fn windows_follow_the_table() {
    let host = Host::Mpich;
    let folder = scratch("windows-table");
    fs::create_dir_all(folder.join("ddtc")).unwrap();
    let table = folder.join("ddtc/policy");
    let by = |rows: &str| {
        fs::write(&table, format!("library mpich-5.0.2\n{rows}")).unwrap();
        let run = host.ranks(2, compiled(host, &[])).preload().env("XDG_CONFIG_HOME", &folder);
        arguments(run.env("DDTC_REPORT", folder.join("report%r.json")), 1, 300).text();
        moved(&folder, 2)
    };
    assert_eq!(by("strided-short 1-\nblocks-short 1-\ntable-short 1-\n"), (0, 0));
    let (packed, unpacked) = by("put blocks-short 1-\nput table-short 1-\n");
    assert!(packed > 0 && unpacked == 0, "{packed} {unpacked}");
    let (packed, unpacked) = by("get blocks-short 1-\nget table-short 1-\nget strided-short 1-\n");
    assert!(packed == 0 && unpacked > 0, "{packed} {unpacked}");
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that the policy table that is shipped with ddtc converts operations on windows, and that
/// the program `windows` sees the same results as without the preload library.
#[test]
fn windows_follow_the_shipped_table() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        let folder = scratch(&format!("windows-shipped-{host:?}"));
        let (mut packed, mut unpacked) = (0, 0);
        for seed in 1..5 {
            let output = |run: Run| arguments(run.env("XDG_CONFIG_HOME", &folder), seed, 6000).text().0;
            let unmodified = output(host.ranks(2, compiled(host, &[])));
            let run =
                host.ranks(2, compiled(host, &[])).preload().env("DDTC_REPORT", folder.join("report%r.json"));
            same(&format!("{host:?}, seed {seed}"), &output(run), &unmodified);
            let (put, got) = moved(&folder, 2);
            (packed, unpacked) = (packed + put, unpacked + got);
        }
        assert!(packed > 0 && unpacked > 0, "{host:?}: {packed} put, {unpacked} got");
        fs::remove_dir_all(folder).unwrap();
    }
}
