//! Tests of calls on files. The same random calls run with the preload library on all ranks, on
//! some ranks and on no rank.

use std::fs;
use std::path::{Path, PathBuf};

use crate::messages::{on_some, reports, same};
use crate::setup::{Host, Run, scratch};

const HOSTS: [Host; 4] = [Host::Mpich, Host::MpichStandard, Host::Intel, Host::OpenMpi];
const CALLS: u32 = 40;

fn compiled(host: Host) -> PathBuf {
    host.compile("files", &["-Wno-unused-function"])
}

fn arguments(run: Run, folder: &Path, seed: u32) -> Run {
    run.arg(folder.join("file")).arg(CALLS.to_string()).arg(seed.to_string()).arg("1000")
}

/// Checks that the output of the program `files` is that of a run under the unmodified MPI library,
/// in a run with the preload library on all ranks, and in runs with it on the even ranks and on the
/// odd ranks.
fn assert_same_output(host: Host, ranks: u32, seed: u32) {
    let program = compiled(host);
    let folder = scratch(&format!("files-{host:?}-{ranks}-{seed}"));
    let what = format!("{host:?}, {ranks} ranks, seed {seed}");
    let (unmodified, _) = arguments(host.ranks(ranks, &program), &folder, seed).text();
    assert!(unmodified.lines().count() >= (CALLS * ranks) as usize, "{what}\n{unmodified}");
    let all = host.ranks(ranks, &program).preload().env("DDTC_POLICY", "all");
    let all = all.env("DDTC_REPORT", folder.join("report%r.json"));
    same(&what, &arguments(all, &folder, seed).text().0, &unmodified);
    let (mut packed, mut unpacked) = (0, 0);
    for said in reports(&folder, ranks) {
        packed += said["messages_packed"];
        unpacked += said["messages_unpacked"];
        assert_eq!(
            (said["fallbacks"], said["panics"], said["messages_over_staging_limit"]),
            (0, 0, 0),
            "{said:?}"
        );
    }
    assert!(packed > 8 && unpacked > 0, "{what}: {packed} written, {unpacked} read");
    if ranks > 1 {
        for parity in 0..2 {
            let some = on_some(host, ranks, &program, parity).env("DDTC_POLICY", "all");
            let (text, _) = arguments(some, &folder, seed).text();
            same(&format!("{what}, ranks {parity} of 2"), &text, &unmodified);
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_are_alike_for_one_rank() {
    for host in HOSTS {
        for seed in 1..4 {
            assert_same_output(host, 1, seed);
        }
    }
}

#[test]
fn files_are_alike_whoever_converts() {
    for host in HOSTS {
        assert_same_output(host, 2, 5);
        assert_same_output(host, 3, 6);
    }
}

/// Checks that, of the calls on files, only those for which a policy table in the user's
/// configuration folder has a row are converted.
#[test]
fn files_follow_the_table() {
    let host = Host::Mpich;
    let folder = scratch("files-table");
    fs::create_dir_all(folder.join("ddtc")).unwrap();
    let table = folder.join("ddtc/policy");
    let moved = |rows: &str| {
        fs::write(&table, format!("library mpich-5.0.2\n{rows}")).unwrap();
        let run = host.ranks(1, compiled(host)).preload().env("XDG_CONFIG_HOME", &folder);
        arguments(run.env("DDTC_REPORT", folder.join("report%r.json")), &folder, 1).text();
        let said = &reports(&folder, 1)[0];
        (said["messages_packed"], said["messages_unpacked"])
    };
    assert_eq!(moved("strided-short 1-\n"), (0, 0));
    let (packed, unpacked) = moved("file-write blocks-short 1-\nfile-write table-short 1-\n");
    assert!(packed > 0 && unpacked == 0, "{packed} {unpacked}");
    let (packed, unpacked) = moved("file-read blocks-short 1-\nfile-read strided-short 1-\n");
    assert!(packed == 0 && unpacked > 0, "{packed} {unpacked}");
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that the policy table that is shipped with ddtc converts calls on files, and that the
/// program `files` sees the same results as without the preload library.
#[test]
fn files_follow_the_shipped_table() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        let folder = scratch(&format!("files-shipped-{host:?}"));
        let output = |run: Run| {
            let name = folder.join("file");
            run.env("XDG_CONFIG_HOME", &folder)
                .arg(name)
                .arg(CALLS.to_string())
                .arg("1")
                .arg("200000")
                .text()
                .0
        };
        let unmodified = output(host.ranks(1, compiled(host)));
        let run = host.ranks(1, compiled(host)).preload().env("DDTC_REPORT", folder.join("report%r.json"));
        same(&format!("{host:?}"), &output(run), &unmodified);
        let said = &reports(&folder, 1)[0];
        assert!(said["messages_packed"] > 0 && said["messages_unpacked"] > 0, "{host:?}: {said:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
