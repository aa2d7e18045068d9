//! Tests of messages between ranks. The same program runs with the preload library on all ranks, on
//! some ranks and on no rank, and must print the same.

use std::fs;

use crate::setup::{Host, command_line, lossy, scratch};
pub(crate) use crate::setup::{on_some, reports, same};

fn assert_same_output(host: Host, ranks: u32) {
    assert_same_messages(host, ranks, "messages", 800, (1000, 1000, 500));
    // The preload library converts the receive of an exchange under one request (`MPI_Isendrecv`)
    // only under MPI libraries that return how many bytes arrived. The expected number of unpacked
    // messages therefore depends on the library.
    let received = if host == Host::OpenMpi { 150 } else { 20 };
    assert_same_messages(host, ranks, "exchanges", 250, (300, received, 100));
}

/// Checks that a program prints the same with the preload library as without it. The output must
/// have more than `lines` lines for each rank, and each rank must pack, unpack and check more than
/// the given numbers of messages.
fn assert_same_messages(
    host: Host,
    ranks: u32,
    name: &str,
    lines: usize,
    (packed, unpacked, checks): (u64, u64, u64),
) {
    // Intel's library for the standard ABI aborts if a message is longer than its receive, whatever
    // the error handler is. The flag leaves such messages out of the program.
    let flags: &[&str] = if host == Host::IntelStandard { &["-DNO_ERRORS"] } else { &[] };
    let program = host.compile(name, flags);
    let folder = scratch(&format!("same-{name}-{host:?}-{ranks}"));
    let (unmodified, _) = host.ranks(ranks, &program).text();
    assert!(unmodified.lines().count() > lines * ranks as usize, "{unmodified}");
    let with = |name: &str, value: &str| {
        let run = host.ranks(ranks, &program).preload().env("DDTC_POLICY", "all").env(name, value);
        run.env("DDTC_REPORT", folder.join("report%r.json")).text()
    };
    let (text, errors) = with("DDTC_MODE", "commit");
    same(&format!("{host:?} {name} {ranks}"), &text, &unmodified);
    for said in reports(&folder, ranks) {
        assert!(
            said["messages_packed"] > packed && said["messages_unpacked"] > unpacked,
            "{said:?} {errors}"
        );
        assert_eq!(
            (said["fallbacks"], said["panics"], said["messages_over_staging_limit"]),
            (0, 0, 0),
            "{said:?}"
        );
    }
    if ranks == 2 {
        for parity in 0..2 {
            let (text, _) = on_some(host, ranks, &program, parity).env("DDTC_POLICY", "all").text();
            same(&format!("{host:?} {name}, rank {parity} alone"), &text, &unmodified);
        }
        let (text, errors) = with("DDTC_CHECK", "1");
        same(&format!("{host:?} checked"), &text, &unmodified);
        for said in reports(&folder, ranks) {
            assert_eq!((said["faults_of_ddtc"], said["other_differences_of_mpi"]), (0, 0), "{errors}");
            assert!(said["checks"] > checks, "{said:?}");
        }
        // With at most one MiB for staging buffers, large messages are left to the MPI library, and
        // the output must still be the same.
        let (text, _) = with("DDTC_STAGING_MIB", "1");
        same(&format!("{host:?} capped"), &text, &unmodified);
        // Only the program `messages` has more than one MiB in messages at the same time, so that
        // some of them are left to the MPI library.
        let past = if name == "messages" { 10 } else { 0 };
        assert!(reports(&folder, ranks).iter().all(|said| said["messages_over_staging_limit"] >= past));
        // With `DDTC_FENCES=0`, staging buffers have no inaccessible pages around them, and are
        // used again for later messages. With a threshold of 3000 bytes, a type is compiled between
        // two of its messages.
        for (name, value) in [("DDTC_MODE", "lazy"), ("DDTC_FENCES", "0"), ("DDTC_LAZY_THRESHOLD", "3000")] {
            let (text, _) = with(name, value);
            same(&format!("{host:?} {name}={value}"), &text, &unmodified);
        }
        for (name, value) in [("DDTC_POLICY", "none"), ("DDTC_MODE", "off")] {
            let (text, _) = with(name, value);
            same(&format!("{host:?} {name}={value}"), &text, &unmodified);
            assert!(reports(&folder, ranks).iter().all(|said| said["messages_packed"] == 0));
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn messages_are_alike_on_mpich() {
    assert_same_output(Host::Mpich, 2);
    assert_same_output(Host::Mpich, 4);
}

#[test]
fn messages_are_alike_on_mpich_through_the_standard_abi() {
    assert_same_output(Host::MpichStandard, 2);
}

#[test]
fn messages_are_alike_on_intel_mpi() {
    assert_same_output(Host::Intel, 2);
    assert_same_output(Host::Intel, 4);
}

#[test]
fn messages_are_alike_on_intel_mpi_through_the_standard_abi() {
    assert_same_output(Host::IntelStandard, 2);
}

#[test]
fn messages_are_alike_on_open_mpi() {
    assert_same_output(Host::OpenMpi, 2);
    assert_same_output(Host::OpenMpi, 4);
}

/// Checks calls of `MPI_Sendrecv_replace`. Without the preload library, MPICH 5.0.2 and Intel MPI
/// 2021.18 send wrong bytes of a derived type or crash in this call. With the preload library the
/// result must be right.
#[test]
fn exchanges_in_place_are_healed() {
    for host in Host::ALL {
        let program = host.compile("replaced", &[]);
        for ranks in [2, 4] {
            let (text, errors) = host.ranks(ranks, &program).preload().env("DDTC_POLICY", "all").text();
            assert_eq!(text.trim(), "wrong 0", "{host:?} {errors}");
        }
    }
}

/// The MPI libraries that refuse a message that ends inside an element. Intel's library for the
/// standard ABI is missing, since it aborts at these errors, whatever the error handler is.
const REFUSING: [Host; 4] = [Host::Mpich, Host::MpichStandard, Host::Intel, Host::OpenMpi];

#[test]
fn messages_that_end_inside_an_element_are_refused_as_the_host_refuses_them() {
    for host in REFUSING {
        let program = host.compile("ragged", &[]);
        let mut ways = vec![("return", 800), ("handler", 100)];
        if !MPICH_ALONE.contains(&host) {
            ways.extend([("matched", 100), ("long", 800)]);
        }
        for (how, min_lines) in ways {
            let (unmodified, _) = host.ranks(2, &program).arg(how).text();
            assert!(unmodified.lines().count() > min_lines, "{host:?} {unmodified}");
            let policies: &[&str] = if how == "return" { &["all", "table"] } else { &["all"] };
            for policy in policies {
                let run = host.ranks(2, &program).arg(how).preload().env("DDTC_POLICY", policy);
                same(&format!("{host:?} {how} {policy}"), &run.text().0, &unmodified);
            }
        }
    }
}

/// MPI libraries with two faults in refusing messages that end inside an element. Without the
/// preload library, they do not survive the refusal of a matched message, and they do not refuse
/// long messages.
const MPICH_ALONE: [Host; 2] = [Host::Mpich, Host::MpichStandard];

#[test]
fn refusals_that_mpich_does_not_survive_or_leaves_to_its_transport_are_refusals() {
    for host in MPICH_ALONE {
        let program = host.compile("ragged", &[]);
        let run = |how: &str| host.ranks(2, &program).arg(how).preload().env("DDTC_POLICY", "all").text().0;
        let (short, long, matched) = (run("return"), run("long"), run("matched"));
        // The error codes for long messages must be the same as those for short messages that end
        // at the same places inside an element.
        let code =
            |line: &str| line.split(": ").nth(1).map(|rest| rest.split(" error").next().unwrap().to_owned());
        let codes = |text: &str| text.lines().map(|line| code(line).unwrap()).collect::<Vec<_>>();
        assert_eq!(codes(&short), codes(&long), "{host:?}");
        for line in matched.lines() {
            let refused = line.contains(": code 3 ");
            let element = if line.contains("type 2") { 8 } else { 4 };
            let bytes: usize =
                line.split_once("bytes ").unwrap().1.split_once(':').unwrap().0.parse().unwrap();
            let inside = if line.contains("type 0") {
                ![0, 4, 12, 24].contains(&bytes)
            } else {
                !bytes.is_multiple_of(element)
            };
            assert_eq!(refused, inside, "{host:?} {line}");
        }
    }
}

/// Checks which policy is used: the table in the user's configuration folder, or the shipped table
/// if there is no such table or if it is not right. The number of messages that the program
/// `messages` packs shows the policy.
#[test]
fn the_policy_comes_from_the_table_of_the_user_or_is_the_shipped_one() {
    let folder = scratch("policy");
    fs::create_dir_all(folder.join("ddtc")).unwrap();
    let table = folder.join("ddtc/policy");
    let run = |host: Host, choice: &str| {
        let program = host.compile("messages", &[]);
        let run =
            host.ranks(2, &program).preload().env("XDG_CONFIG_HOME", &folder).env("DDTC_POLICY", choice);
        let (_, errors) = run.env("DDTC_REPORT", folder.join("report%r.json")).text();
        (reports(&folder, 2)[0]["messages_packed"], errors)
    };
    let all = run(Host::Mpich, "all").0;
    let (shipped, errors) = run(Host::Mpich, "table");
    assert!(0 < shipped && shipped < all && !errors.contains("policy"), "{shipped} {all} {errors}");
    fs::write(&table, "library mpich-5.0.2\nstrided-long none\nlibrary openmpi-5.0.11\ntable-short 1-\n")
        .unwrap();
    assert_eq!(run(Host::Mpich, "table").0, 0);
    let (all, some) = (run(Host::OpenMpi, "all").0, run(Host::OpenMpi, "table").0);
    assert!(0 < some && some < all, "{some} {all}");
    fs::write(&table, "library mpich-5.0.2\nstrided-long fast\n").unwrap();
    let (packed, errors) = run(Host::Mpich, "table");
    assert_eq!(packed, shipped);
    let lines: Vec<_> = errors.lines().filter(|l| l.starts_with("ddtc: ")).collect();
    // Each of the two ranks prints one line about the wrong table.
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(lines[0].contains("ddtc/policy: policy: line 2 = strided-long fast: must be"), "{errors}");
    assert!(lines[0].ends_with("; the shipped policy is used"), "{errors}");
    let (_, errors) = run(Host::Mpich, "sometimes");
    assert!(
        errors.contains("ddtc: DDTC_POLICY: 'sometimes': must be measure, table, all or none; ignored"),
        "{errors}"
    );
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_table_is_measured_by_the_command_line() {
    let folder = scratch("tune");
    for host in [Host::Mpich, Host::OpenMpi] {
        let run = host.run(command_line()).arg("tune").arg("--mpicc").arg(host.root().join("bin/mpicc"));
        let run = run.arg("--rounds").arg("3").arg("--budget").arg("0.1").env("XDG_CONFIG_HOME", &folder);
        // `ddtc tune` measures some messages while the preload library converts them. These
        // messages must be converted from the first call on, whatever mode the user has set. To
        // test this, the run sets `DDTC_MODE=off`.
        let run = run.env("DDTC_MODE", "off").env("DDTC_REPORT", folder.join("report%r.json"));
        let run = if host == Host::Mpich { run.arg("--windows") } else { run };
        let mut run = run.arg("--").arg(host.root().join("bin/mpiexec")).arg("-n").arg("2");
        // `ddtc tune` makes a folder in the working folder.
        run.command.current_dir(&folder);
        if host == Host::OpenMpi {
            run = run.arg("--oversubscribe").arg("--bind-to").arg("none");
        }
        let (text, _) = run.text();
        assert!(text.contains("\nblocks-short,") && text.contains("ddtc/policy: table of"), "{text}");
        for said in reports(&folder, 2) {
            assert!(said["messages_packed"] > 0 && said["calls_bypassed"] == 0, "{host:?}: {said:?}");
        }
        for call in ["put", "get"] {
            let measured = text.contains(&format!("\n{call},blocks-long,"));
            assert_eq!(measured, host == Host::Mpich, "{call} {text}");
        }
    }
    let text = fs::read_to_string(folder.join("ddtc/policy")).unwrap();
    for library in ["mpich-5.0.2", "openmpi-5.0.11"] {
        assert!(ddtc_hosts::policy::Policy::parse(&text, library).unwrap().is_some(), "{text}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_break_even_is_measured_by_the_command_line() {
    for (host, name) in [(Host::Mpich, "mpich"), (Host::Intel, "impi"), (Host::OpenMpi, "openmpi")] {
        let folder = scratch(&format!("even-{name}"));
        let file = folder.join("even.csv");
        let run =
            host.run(command_line()).arg("bench").arg("--break-even").arg("--quick").arg("--csv").arg(&file);
        // The command measures two layouts of the corpus: one whose nest has no table, and one
        // whose nest has a table. It measures these layouts in other sizes too.
        let run = run.arg("--mpicc").arg(host.compiler()).arg("vec_8B.S").arg("LAMMPS_atomic.S");
        // Intel's wheel has no compiler, so the program for Intel MPI is compiled by the wrapper of
        // MPICH. It must run with Intel's library and not with that of the wrapper, so
        // `LD_LIBRARY_PATH` names the folder of the library.
        let path = format!("LD_LIBRARY_PATH={}", host.root().join("lib").display());
        let (text, errors) = run.env("LD_LIBRARY_PATH", "").arg("--").arg("env").arg(path).text();
        assert!(text.contains("median of  2 layouts"), "{text} {errors}");
        let csv = fs::read_to_string(file).unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[..3].iter().all(|line| line.starts_with("# ")), "{csv}");
        for (line, start) in lines[4..].iter().zip(["LAMMPS_atomic.S,5472,", "vec_8B.S,16384,"]) {
            assert!(
                line.starts_with(start) && line.split(',').count() == lines[3].split(',').count(),
                "{csv}"
            );
            // The times of the commits and calls must be positive numbers. The test does not judge
            // the values themselves.
            assert!(
                line.split(',').skip(2).take(8).all(|n| n.parse::<f64>().is_ok_and(|n| n > 0.0)),
                "{csv}"
            );
        }
        fs::remove_dir_all(folder).unwrap();
    }
    let run = Host::Mpich.run(command_line()).arg("bench").arg("--break-even").arg("vec_8B.S");
    let out = run.arg("--mpicc").arg(Host::Mpich.compiler()).arg("--library");
    let out = out.arg(Host::Mpich.root().join("lib/libmpi.so")).output();
    assert!(!out.status.success());
    assert!(lossy(&out.stderr).contains("the library did not convert it"), "{}", lossy(&out.stderr));
}

#[test]
fn threads_exchange_messages() {
    for host in [Host::Mpich, Host::MpichStandard, Host::Intel, Host::OpenMpi] {
        let folder = scratch(&format!("traffic-{host:?}"));
        let run = host.ranks(2, host.compile("traffic", &[])).arg("150").preload().env("DDTC_FENCES", "0");
        let run = run.env("DDTC_POLICY", "all").env("DDTC_REPORT", folder.join("report%r.json"));
        assert_eq!(run.text().0.trim(), "wrong 0", "{host:?}");
        for said in reports(&folder, 2) {
            assert!(said["messages_packed"] > 3000 && said["messages_unpacked"] > 3000, "{host:?} {said:?}");
            assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{host:?} {said:?}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
