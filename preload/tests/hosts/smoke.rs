//! A few short tests under real MPI libraries that every `cargo test` runs. They use MPICH and Open
//! MPI on two and four ranks. Each kind of call runs once with the preload library on all ranks and
//! once with it on every other rank. The package e2e has further tests with all libraries, more
//! ranks, long runs, variables and policy tables (docs/TESTING.md, "Parts").

mod build;
mod exported;
#[allow(dead_code, reason = "Intel's hosts and the command are asked for by e2e alone")]
mod setup;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use setup::{Host, Run, on_some, report, reports, same, scratch, sessions};

/// Compiles the C program `name` for an MPI library. The flags leave out calls for which the
/// library itself gives wrong results.
fn compiled(host: Host, name: &str) -> PathBuf {
    let own: &[&str] = match host {
        Host::OpenMpi => &["-DCONFUSES_PAIRS"],
        _ => &["-DCUTS_SEGMENTS", "-DFREED_HANDLES"],
    };
    let flags: Vec<&str> = ["-Wno-unused-function"].iter().chain(own).copied().collect();
    host.compile(name, &flags)
}

fn converting(run: Run, folder: &Path) -> Run {
    run.preload().env("DDTC_POLICY", "all").env("DDTC_REPORT", folder.join("report%r.json"))
}

/// Returns the number of messages that all ranks together have packed, and the number that they
/// have unpacked. Asserts that the reports count no fallbacks, no panics and no message over the
/// limit of staging buffers.
fn moved(folder: &Path, ranks: u32) -> (u64, u64) {
    let (mut packed, mut unpacked) = (0, 0);
    for said in reports(folder, ranks) {
        assert_eq!(
            (said["fallbacks"], said["panics"], said["messages_over_staging_limit"]),
            (0, 0, 0),
            "{said:?}"
        );
        packed += said["messages_packed"];
        unpacked += said["messages_unpacked"];
    }
    (packed, unpacked)
}

/// Checks a program that prints what its ranks saw. The output must be the same in a run without
/// the preload library, in a run with it on all ranks, and in a run with it on every other rank.
/// `min_moved` has the minimum numbers of messages that a rank packs and unpacks on average.
/// Returns the reports of the run with the preload library on all ranks.
fn assert_same_output(
    host: Host,
    name: &str,
    ranks: u32,
    arguments: &[&str],
    min_moved: (u64, u64),
) -> Vec<HashMap<String, u64>> {
    let program = compiled(host, name);
    let folder = scratch(&format!("smoke-{name}-{host:?}"));
    let output = |run: Run| {
        let run =
            arguments.iter().fold(run, |run, word| run.arg(word.replace("FOLDER", folder.to_str().unwrap())));
        run.text().0
    };
    let unmodified = output(host.ranks(ranks, &program));
    assert!(
        unmodified.lines().count() > 20 * ranks as usize && !unmodified.contains("WRONG"),
        "{unmodified}"
    );
    let what = format!("{host:?} {name}, {ranks} ranks");
    same(&what, &output(converting(host.ranks(ranks, &program), &folder)), &unmodified);
    let (packed, unpacked) = moved(&folder, ranks);
    let ranks_moved = (packed / u64::from(ranks), unpacked / u64::from(ranks));
    assert!(ranks_moved.0 >= min_moved.0 && ranks_moved.1 >= min_moved.1, "{what}: {ranks_moved:?}");
    let said = reports(&folder, ranks);
    let some = on_some(host, ranks, &program, 1).env("DDTC_POLICY", "all");
    same(&format!("{what}, every other rank"), &output(some), &unmodified);
    fs::remove_dir_all(folder).unwrap();
    said
}

/// Checks a program that judges its own results, with the preload library on all ranks and on every
/// other rank. The messages that a rank packs and those that it unpacks must on average be more
/// than `min_messages` together.
fn right(host: Host, name: &str, ranks: u32, arguments: &[&str], min_messages: u64) {
    let program = compiled(host, name);
    let folder = scratch(&format!("smoke-{name}-{host:?}"));
    let judge = |what: &str, run: Run| {
        let (text, errors) = arguments.iter().fold(run, |run, word| run.arg(word)).text();
        assert_eq!(text.lines().next(), Some("wrong 0"), "{host:?} {name} {what}\n{text}\n{errors}");
    };
    judge("all", converting(host.ranks(ranks, &program), &folder));
    let (packed, unpacked) = moved(&folder, ranks);
    assert!(packed + unpacked > min_messages * u64::from(ranks), "{host:?} {name}: {packed} {unpacked}");
    judge("every other rank", on_some(host, ranks, &program, 0).env("DDTC_POLICY", "all"));
    fs::remove_dir_all(folder).unwrap();
}

/// Runs the C program `name` as one process with the preload library. Returns its output and the
/// numbers of its report.
fn alone(host: Host, name: &str, arguments: &[&str]) -> (String, HashMap<String, u64>) {
    let folder = scratch(&format!("smoke-{name}-{host:?}"));
    let file = folder.join("report.json");
    let run = arguments.iter().fold(host.run(compiled(host, name)), |run, word| run.arg(word));
    let (text, errors) = run.preload().env("DDTC_REPORT", &file).text();
    let said =
        report(&fs::read_to_string(&file).unwrap_or_else(|e| panic!("{host:?} {name}: {e}\n{errors}")));
    assert_eq!((said["fallbacks"], said["panics"]), (0, 0), "{said:?}");
    fs::remove_dir_all(folder).unwrap();
    (text, said)
}

/// Does what [`alone`] does without a report, and returns only the output. Without a report the
/// preload library does not count calls, and short calls take its shortest path.
fn uncounted(host: Host, name: &str, arguments: &[&str]) -> String {
    arguments.iter().fold(host.run(compiled(host, name)), |run, word| run.arg(word)).preload().text().0
}

macro_rules! hosts {
    ($($test:ident($host:ident) $body:block)*) => {
        mod mpich {
            use super::*;
            $(#[test] fn $test() { let $host = Host::Mpich; $body })*
        }
        mod open_mpi {
            use super::*;
            $(#[test] fn $test() { let $host = Host::OpenMpi; $body })*
        }
    };
}

hosts! {
    sessions_are_this_process_own(host) {
        let (folder, _) = host.ranks(1, "sh").arg("-c").arg("echo $TMPDIR").text();
        assert_eq!(Path::new(folder.trim()), sessions());
    }

    messages(host) {
        // For each of its six types, the program `messages` sends one message to MPI_PROC_NULL and
        // receives one from it. These calls move nothing, so at least 12 calls are bypassed for
        // this reason.
        for said in assert_same_output(host, "messages", 2, &[], (1000, 1000)) {
            assert!(said["bypassed_nothing_to_move"] >= 12, "{host:?}: {said:?}");
        }
    }

    exchanges(host) {
        // The preload library converts the receive of an exchange under one request
        // (`MPI_Isendrecv`) only under MPI libraries that return how many bytes arrived. The
        // minimum number of unpacked messages therefore depends on the library.
        assert_same_output(host, "exchanges", 4, &[], (300, if host == Host::OpenMpi { 150 } else { 20 }));
    }

    collective_calls(host) {
        right(host, "collectives", 4, &["100", "4", "2000"], 33);
        right(host, "collectives", 2, &["100", "2", "2000"], 33);
    }

    neighbours(host) {
        right(host, "neighbours", 4, &["100", "4", "2000"], 33);
    }

    long_messages(host) {
        right(host, "segments", 2, &[], 0);
    }

    files(host) {
        assert_same_output(host, "files", 2, &["FOLDER/file", "40", "5", "1000"], (4, 1));
    }

    windows(host) {
        assert_same_output(host, "windows", 4, &["40", "3", "300"], (25, 1));
    }

    threads_complete_gets_of_each_other(host) {
        right(host, "fetchers", 2, &["3", "100"], 300);
    }

    // A receive that is cancelled has an undefined count in its status. The library `counts`, which
    // is loaded here, makes this count as large as the receive, as an MPI library may do. The
    // cancelled receive must change no byte nevertheless.
    cancelled_receives_change_nothing(host) {
        let program = compiled(host, "cancelled");
        let counts = host.compile("cancelled", &["-shared", "-fPIC", "-DCOUNTS", "-ldl"]);
        let file = scratch(&format!("smoke-cancelled-{host:?}")).join("report.json");
        let both = format!("{}:{}", setup::library().display(), counts.display());
        let run = host.run(program).env("LD_PRELOAD", both).env("DDTC_POLICY", "all");
        let (text, errors) = run.env("DDTC_REPORT", &file).text();
        let said = report(&fs::read_to_string(&file).unwrap());
        assert!(text == "wrong 0\n" && said["messages_unpacked"] > 10, "{host:?}: {text} {said:?} {errors}");
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }

    // The program `ragged` makes receives that the MPI library refuses, because their messages end
    // inside an element. Some of the receives are in arrays of requests, and the error handler
    // returns the errors to the program.
    messages_that_end_inside_an_element(host) {
        let program = compiled(host, "ragged");
        let run = |run: Run| run.arg("return").text().0;
        let unmodified = run(host.ranks(2, &program));
        assert!(unmodified.lines().count() > 800, "{unmodified}");
        same("ragged", &run(host.ranks(2, &program).preload().env("DDTC_POLICY", "all")), &unmodified);
    }

    types_and_communicators_live_and_die(host) {
        let (text, said) = alone(host, "lifecycle", &[]);
        assert!(text.ends_with("wrong 0\n") && said["packs"] > 4000, "{text} {said:?}");
        let text = uncounted(host, "lifecycle", &[]);
        assert!(text.ends_with("wrong 0\n"), "nobody counts: {text}");
    }

    wrong_calls_get_the_hosts_own_errors(host) {
        let unmodified = host.run(compiled(host, "errors")).text().0;
        let (text, _) = alone(host, "errors", &[]);
        assert!(unmodified.lines().count() > 80 && text == unmodified, "{text}\n{unmodified}");
        same("errors, nobody counts", &uncounted(host, "errors", &[]), &unmodified);
    }

    threads_pack(host) {
        let (text, said) = alone(host, "hammer", &["500"]);
        assert!(text.trim() == "wrong 0" && said["packs"] > 6000, "{text} {said:?}");
        same("hammer, nobody counts", &uncounted(host, "hammer", &["500"]), &text);
    }

    recycled_handles_are_not_taken_for_earlier_requests(host) {
        let (text, _) = alone(host, "recycled", &["300"]);
        assert_eq!(text.trim(), "wrong 0");
    }

    tools_see_the_hosts_variables_and_ours(host) {
        let (text, _) = alone(host, "tool", &[]);
        assert!(text.ends_with("wrong 0\n"), "{text}");
    }
}

/// Checks the convertor hook while no message is packed into a staging buffer. Compiled code inside
/// Open MPI must leave the same bytes as Open MPI's own code.
#[test]
fn messages_move_inside_open_mpi() {
    let (host, folder) = (Host::OpenMpi, scratch("smoke-hook"));
    let program = host.compile("convertors", &["-ldl"]);
    let run = host.ranks(2, &program).arg("messages").arg("60").preload().env("DDTC_POLICY", "none");
    let (text, errors) = run.env("DDTC_REPORT", folder.join("report%r.json")).text();
    assert_eq!(text.trim(), "wrong 0", "{errors}");
    for said in reports(&folder, 2) {
        assert!(said["hook_bytes_packed"] > 100_000 && said["hook_bytes_unpacked"] > 100_000, "{said:?}");
    }
    let run = host.run(&program).arg("movers").arg("1000").arg("1").preload().env("DDTC_POLICY", "none");
    let (text, errors) = run.text();
    assert!(text.contains("wrong 0") && !text.contains("served 0 "), "{text}\n{errors}");
    fs::remove_dir_all(folder).unwrap();
}

/// Checks messages that are longer than their receives. Nothing may be written outside of the type
/// of the receive, and nothing outside of a staging buffer.
fn truncated(host: Host) {
    let program = compiled(host, "truncated");
    let folder = scratch(&format!("smoke-truncated-{host:?}"));
    let judge = |run: Run| {
        let (text, errors) = run.arg("80").arg("11").arg("quiet").text();
        assert_eq!(
            text.matches(": 0 receives changed bytes elsewhere").count(),
            2,
            "{host:?}\n{text}\n{errors}"
        );
    };
    judge(converting(host.ranks(2, &program), &folder));
    let (packed, unpacked) = moved(&folder, 2);
    assert!(packed > 20 && unpacked > 5, "{host:?}: {packed} {unpacked}");
    judge(on_some(host, 2, &program, 0).env("DDTC_POLICY", "all"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn truncated_messages_stay_in_the_receive_on_mpich() {
    truncated(Host::Mpich);
}

#[test]
fn truncated_messages_stay_in_the_receive_on_open_mpi() {
    truncated(Host::OpenMpi);
}

/// Checks that a converted call looks up each of its derived datatypes in the preload library's
/// table once, and that a call with named types looks up none. The convertor hook looks up each
/// type once more, so it is off in this test.
#[cfg(debug_assertions)]
#[test]
fn each_type_of_a_call_is_looked_up_once() {
    let expected = "\
MPI_Sendrecv, types 1: 1
MPI_Sendrecv, types 2: 2
MPI_Sendrecv, types 1: 1
MPI_Sendrecv, types 0: 0
MPI_Irecv, MPI_Isend, types 2: 2
MPI_Startall, types 1: 1
MPI_Pack, types 1: 1
";
    for host in [Host::Mpich, Host::OpenMpi] {
        let run = host.run(host.compile("lookups", &["-ldl"]));
        let (text, errors) = run.preload().env("DDTC_POLICY", "all").env("DDTC_HOOK", "off").text();
        assert_eq!(text, expected, "{host:?}\n{errors}");
    }
}
