//! Tests of the preload library's reports. A report must count every bypassed call under one reason
//! and every converted call once, and its first sentence must agree with the counters. Programs
//! that abort or are killed must leave a report too.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use crate::setup::{Host, Run, command_line, library, lossy, of_type, report, scratch, summary};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// Returns those counters of a report that count bypassed calls, one counter for each reason,
/// sorted by name.
fn reasons(text: &str) -> Vec<(String, u64)> {
    let mut bypassed: Vec<_> =
        report(text).into_iter().filter(|(name, _)| name.starts_with("bypassed_")).collect();
    bypassed.sort();
    bypassed
}

/// Returns the lines of a JSON report that describe datatypes. Each returned line begins with the
/// text of the type.
fn rows(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("    {\"type\": \"")).collect()
}

/// Runs the program `bypassed` with the given arguments and the preload library, and returns its
/// report. `set` may add environment variables to the run.
fn calls(host: Host, args: &[&str], set: impl Fn(Run) -> Run) -> String {
    // Tests that run at the same time may run the same program, so each run gets a folder of its
    // own for its report.
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let folder = scratch(&format!("bypassed-{}", RUNS.fetch_add(1, Relaxed)));
    let file = folder.join("report.json");
    let mut run = host.run(host.compile("bypassed", &[]));
    run.command.current_dir(&folder);
    let run = args.iter().fold(run, |run, arg| run.arg(arg));
    // The convertor hook is off. If it moves the bytes of a call, the call counts as left to the
    // MPI library although it uses compiled code, which would change the counters of this test.
    let (_, errors) = set(run.preload().env("DDTC_REPORT", &file).env("DDTC_HOOK", "off")).text();
    let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{host:?} {args:?}: {e}\n{errors}"));
    fs::remove_dir_all(folder).unwrap();
    text
}

#[test]
fn every_call_left_to_the_host_is_counted_by_reason() {
    for host in HOSTS {
        for (kind, policy, why, n) in [
            ("gaps", "none", "bypassed_by_policy", 400),
            ("collectives", "none", "bypassed_by_policy", 1600),
            ("window", "none", "bypassed_by_policy", 400),
            ("file", "none", "bypassed_by_policy", 400),
            // For `many`, 3200 types live at the same time. The preload library must not forget the
            // commit of any of them. So each of the 3200 calls is counted under the reason
            // `bypassed_by_policy` and not under `bypassed_unknown_type`.
            ("many", "none", "bypassed_by_policy", 3200),
            ("contiguous", "all", "bypassed_contiguous", 400),
            ("nothing", "all", "bypassed_nothing_to_move", 400),
            ("unknown", "all", "bypassed_unknown_type", 400),
            ("huge", "all", "bypassed_over_staging_limit", 4),
        ] {
            let times = if kind == "huge" { "4" } else { "400" };
            let text = calls(host, &[kind, times], |run| {
                run.env("DDTC_POLICY", policy).env("DDTC_STAGING_MIB", "1")
            });
            assert_eq!(reasons(&text), [(why.to_owned(), n)], "{host:?} {kind}\n{text}");
            assert_eq!(report(&text)["calls_bypassed"], n, "{host:?} {kind}\n{text}");
            let none = format!("ddtc converted none of {n} calls with derived datatypes.");
            assert_eq!(summary(&text), none, "{host:?} {kind}");
        }
        let text = calls(host, &["named", "400"], |run| run);
        assert_eq!(
            (reasons(&text), summary(&text)),
            (vec![], "ddtc converted nothing: no call had a derived datatype.")
        );
        // Calls that are converted must not be counted as bypassed. The program calls `MPI_Pack`
        // 400 times, and only the first of these calls is bypassed.
        let text = calls(host, &["pack", "400"], |run| run);
        assert_eq!(reasons(&text), [("bypassed_first_use".to_owned(), 1)], "{host:?} {text}");
        assert_eq!(report(&text)["packs"], 399, "{text}");
        // A program makes a persistent request once and starts it many times. Its type is therefore
        // compiled when the request is made, however short the message is. If the bytes of the
        // program's twenty requests were counted only once each, they would not suffice for a
        // compilation.
        let text = calls(host, &["persistent", "400"], |run| run.env("DDTC_POLICY", "all"));
        let converted = ["messages_packed", "messages_unpacked"].map(|name| report(&text)[name]);
        assert!(converted.iter().all(|&n| n >= 200), "{host:?} {text}");
        let text = calls(host, &["gaps", "400"], |run| run.env("DDTC_MODE", "off"));
        assert_eq!(summary(&text), "ddtc converted nothing: DDTC_MODE is off.", "{text}");
    }
}

/// Checks that the first sentence of a report has the numbers of the counters. Each call counts
/// once, whether it is blocking, nonblocking, persistent or collective, and each pack and each
/// unpack of a call counts once.
#[test]
fn the_first_sentence_is_that_of_the_counters() {
    for host in HOSTS {
        for (kind, calls_of_types) in
            [("gaps", 400), ("nonblocking", 800), ("persistent", 40), ("collectives", 1600), ("pack", 400)]
        {
            let text = calls(host, &[kind, "400"], |run| run.env("DDTC_POLICY", "all"));
            let said = report(&text);
            let what = format!("{host:?} {kind}\n{text}");
            assert_eq!(said["calls_converted"] + said["calls_bypassed"], calls_of_types, "{what}");
            let sentence = format!(
                "ddtc converted {} of {calls_of_types} calls with derived datatypes.",
                said["calls_converted"]
            );
            assert_eq!(summary(&text), sentence, "{what}");
            // If the program itself calls `MPI_Pack`, the packed bytes go into the program's buffer
            // and into no staging buffer. These packs are in the counter `packs` but not in
            // `messages_packed`.
            let own = if kind == "pack" { said["calls_converted"] } else { 0 };
            assert_eq!(said["packs"], said["messages_packed"] + own, "{what}");
            assert_eq!(said["unpacks"], said["messages_unpacked"], "{what}");
            // For programs of these three kinds, each send is either converted or bypassed, and so
            // is each receive.
            if ["gaps", "nonblocking", "persistent"].contains(&kind) {
                assert!(said["packs"] >= 200 && said["unpacks"] >= 200, "{what}");
                assert_eq!(said["bytes_packed"], said["packs"] * 256, "{what}");
                assert_eq!(said["bytes_unpacked"], said["unpacks"] * 256, "{what}");
            }
            for name in ["packs", "unpacks", "bytes_packed", "bytes_unpacked"] {
                let sum = rows(&text).into_iter().map(|row| of_type(row, name)).sum::<u64>();
                assert_eq!(said[name], sum, "{name} {what}");
            }
        }
    }
}

/// Checks that a report in text form begins with the sentence that a JSON report has as its
/// summary, and that the report fits on one screen.
#[test]
fn a_report_is_text_unless_its_name_says_json() {
    let folder = scratch("text");
    for name in ["report", "report.json", "-"] {
        let run = Host::Mpich.run(Host::Mpich.compile("bypassed", &[])).arg("gaps").arg("40").preload();
        // The run sets `DDTC_INSIDE`, which is the old name of the variable `DDTC_HOOK`. The old
        // name must have the effect of the new one, and standard error must have one line that says
        // so.
        let run = run.env("DDTC_REPORT", if name == "-" { name.into() } else { folder.join(name) });
        let (_, errors) = run.env("DDTC_POLICY", "all").env("DDTC_INSIDE", "off").text();
        let line = "ddtc: DDTC_INSIDE is the old name of DDTC_HOOK, and is accepted until version 0.5\n";
        let (line, rest) =
            errors.split_at_checked(line.len()).filter(|(said, _)| *said == line).expect(&errors);
        assert_eq!(errors.matches(line).count(), 1, "{errors}");
        let text = if name == "-" { rest.to_owned() } else { fs::read_to_string(folder.join(name)).unwrap() };
        let sentence = "ddtc converted 40 of 40 calls with derived datatypes.";
        if name == "report.json" {
            assert_eq!(summary(&text), sentence, "{text}");
        } else {
            assert!(text.starts_with(&format!("{sentence}\nrank 0 of 1, process ")), "{text}");
            assert!(text.contains("\nConverted  40 calls: 40 packs of 10.0 KiB in "), "{text}");
            assert!(text.lines().count() <= 24 && text.lines().all(|l| l.chars().count() <= 100), "{text}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn payloads_that_the_policy_does_not_convert_are_named_small_or_large() {
    for host in HOSTS {
        let folder = scratch(&format!("sizes-{host:?}"));
        fs::create_dir_all(folder.join("ddtc")).unwrap();
        let text = calls(host, &["named", "1"], |run| run);
        let version = text.split_once("\"libraries\": [\n    \"").unwrap().1.split('"').next().unwrap();
        let library = ddtc_hosts::policy::Library::from_version_text(version);
        for (rows, why) in
            [("strided-short 4096-", "bypassed_too_small"), ("strided-short 1-64", "bypassed_too_large")]
        {
            fs::write(folder.join("ddtc/policy"), format!("library {library}\n{rows}\n")).unwrap();
            let text = calls(host, &["gaps", "40"], |run| run.env("XDG_CONFIG_HOME", &folder));
            assert_eq!(reasons(&text), [(why.to_owned(), 40)], "{host:?} {text}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn the_ranks_sum_says_why_nothing_was_converted() {
    for host in HOSTS {
        let folder = scratch(&format!("why-{host:?}"));
        let file = folder.join("report.json");
        let run = |kind: &str| {
            let mut run = host.ranks(2, command_line());
            // In this test `ddtc preload` starts the launcher, so that it can sum the reports of
            // all ranks. In other tests the launcher starts the program directly.
            let words: Vec<_> = run.command.get_args().map(ToOwned::to_owned).collect();
            let launcher = &words[1..words.len() - 3];
            let mut command = Command::new(command_line());
            command
                .arg("preload")
                .arg("--library")
                .arg(library())
                .arg("--report")
                .arg(&file)
                .arg("--")
                .args(launcher);
            command.arg(host.compile("bypassed", &[])).args([kind, "50"]).current_dir(&folder);
            command.envs(run.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env("DDTC_POLICY", "none").env("DDTC_HOOK", "off");
            run.command = command;
            run.text();
            fs::read_to_string(&file).unwrap()
        };
        // In each of the 50 rounds each rank makes four collective calls. On rank 1, which is not
        // the root of the gather, the gather has a named type and is not counted. The sum over both
        // ranks is therefore 350.
        let text = run("collectives");
        assert_eq!(
            summary(&text),
            "ddtc converted none of 350 calls with derived datatypes.",
            "{host:?} {text}"
        );
        assert_eq!(report(&text)["ranks"], 2, "{host:?} {text}");
        assert_eq!(reasons(&text), [("bypassed_by_policy".to_owned(), 350)], "{host:?} {text}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_program_that_aborts_leaves_a_report() {
    for host in HOSTS {
        let folder = scratch(&format!("abort-{host:?}"));
        let file = folder.join("report.json");
        let run = host.run(host.compile("bypassed", &[])).arg("gaps").arg("100").arg("abort").preload();
        let out = run.env("DDTC_REPORT", &file).env("DDTC_POLICY", "all").output();
        assert!(!out.status.success(), "{host:?}");
        let text =
            fs::read_to_string(&file).unwrap_or_else(|e| panic!("{host:?}: {e} {}", lossy(&out.stderr)));
        let said = report(&text);
        assert_eq!((said["packs"], said["unpacks"], said["commits"]), (100, 100, 1), "{host:?} {text}");
        assert_eq!(said["unfinished"], 1, "{text}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_program_that_is_killed_leaves_a_report() {
    for host in HOSTS {
        let folder = scratch(&format!("killed-{host:?}"));
        let file = folder.join("report.json");
        let mut command =
            host.run(host.compile("bypassed", &[])).arg("gaps").arg("100").arg("on").preload().command;
        command.env("DDTC_REPORT", &file).env("DDTC_RECORD", folder.join("record")).env("DDTC_POLICY", "all");
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let calls = || fs::read_to_string(&file).map_or(0, |text| report(&text)["packs"]);
        // The preload library writes the report again and again while the program runs. The report
        // must be complete whenever this test reads it.
        let mut seen = 0;
        for _ in 0..2 {
            while calls() <= seen {
                std::thread::sleep(Duration::from_millis(20));
                assert!(child.try_wait().unwrap().is_none(), "{host:?}");
            }
            seen = calls();
        }
        kill(&file, child.id());
        child.wait().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(report(&text)["packs"] >= seen, "{text}");
        assert_eq!(report(&text)["unfinished"], 1, "{text}");
        assert_eq!(rows(&text).len(), 1, "{text}");
        let record = fs::read_to_string(folder.join("record")).unwrap();
        assert_eq!(ddtc::internal::corpus::parse(&record).unwrap().len(), 1, "{record}");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Kills the program that has written the report `file`, and the process with the number `parent`,
/// which is the command `timeout` that started the program.
fn kill(file: &Path, parent: u32) {
    let text = fs::read_to_string(file).unwrap();
    let (_, process) = text.split_once(", process ").unwrap();
    let id: i32 = process[..process.find('"').unwrap()].parse().unwrap();
    for id in [id, parent as i32] {
        // SAFETY: `kill` takes two integers and accesses no memory of this process. The program
        // repeats its calls until it is killed, and this test has not waited for `parent` yet, so
        // neither number can belong to another process.
        assert_eq!(unsafe { libc::kill(id, libc::SIGKILL) }, 0);
    }
}

#[test]
fn rows_tell_types_apart_and_objects_of_one_layout_together() {
    for host in HOSTS {
        let text = calls(host, &["addresses", "100"], |run| run);
        let [row] = rows(&text)[..] else { panic!("{host:?} {text}") };
        let start = "at addresses: struct([1,3],[0,8],[int,float])\", \"size\": 16, \"true_extent\": 20, ";
        assert!(row.starts_with(start), "{row}");
        let text = calls(host, &["similar", "5"], |run| run);
        let [a, b] = rows(&text)[..] else { panic!("{host:?} {text}") };
        assert!(a != b && a[..150] == b[..150], "{text}");
        let shapes = [(3196, "strided-short"), (3204, "table-short")];
        let shapes = shapes.map(|(extent, class)| {
            format!("\"size\": 1600, \"true_extent\": {extent}, \"class\": \"{class}\", ")
        });
        assert!(shapes.iter().any(|shape| a.contains(shape)), "{text}");
    }
}
