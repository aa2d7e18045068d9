//! Calls that are left to the host: counted by reason, said in a sentence, and in reports of programs that do not come to their end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::setup::{Host, Run, command_line, library, lossy, report, scratch};

const HOSTS: [Host; 3] = [Host::Mpich, Host::Intel, Host::OpenMpi];

/// Which of a report's lines say why calls were left.
fn reasons(text: &str) -> Vec<(String, u64)> {
    let mut left: Vec<_> = report(text).into_iter().filter(|(name, _)| name.starts_with("left_")).collect();
    left.sort();
    left
}

/// A report's line after its header.
fn first(text: &str) -> &str {
    text.lines().nth(1).unwrap_or_default()
}

/// Rows of types: what stands behind their numbers.
fn rows(text: &str) -> Vec<&str> {
    let rows = text.lines().skip_while(|l| !l.ends_with("  type")).skip(1);
    let rows = rows.filter(|l| !l.starts_with("    pack: ") && !l.starts_with("    unpack: "));
    rows.map(|l| &l[l.find(|c: char| c.is_ascii_alphabetic()).unwrap()..]).collect()
}

/// The report of a program's calls.
fn calls(host: Host, args: &[&str], set: impl Fn(Run) -> Run) -> String {
    let folder = scratch(&format!("left-{host:?}-{}", args.join("-")));
    let file = folder.join("report");
    let mut run = host.run(host.compile("left", &[]));
    run.command.current_dir(&folder);
    let run = args.iter().fold(run, |run, arg| run.arg(arg));
    // What moves inside the host is the host's, but it is not nothing.
    let (_, errors) = set(run.preload().env("DDTC_REPORT", &file).env("DDTC_INSIDE", "off")).text();
    let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{host:?} {args:?}: {e}\n{errors}"));
    fs::remove_dir_all(folder).unwrap();
    text
}

#[test]
fn every_call_left_to_the_host_is_counted_by_reason() {
    for host in HOSTS {
        for (kind, policy, why, n, phrase) in [
            ("gaps", "none", "left_by_policy", 400, "had types that the policy leaves to this host"),
            ("collectives", "none", "left_by_policy", 1600, "had types that the policy leaves to this host"),
            ("window", "none", "left_by_policy", 400, "had types that the policy leaves to this host"),
            ("file", "none", "left_by_policy", 400, "had types that the policy leaves to this host"),
            // 3200 types that live at a time: no commit is forgotten.
            ("many", "none", "left_by_policy", 3200, "had types that the policy leaves to this host"),
            ("contiguous", "all", "left_contiguous", 400, "had types without gaps"),
            ("nothing", "all", "left_nothing_to_move", 400, "moved nothing"),
            ("unknown", "all", "left_unknown_type", 400, "had types whose commit was not seen"),
            ("huge", "all", "left_past_the_cap", 4, "needed more than DDTC_BUFFERS"),
        ] {
            let times = if kind == "huge" { "4" } else { "400" };
            let text =
                calls(host, &[kind, times], |run| run.env("DDTC_POLICY", policy).env("DDTC_BUFFERS", "1"));
            assert_eq!(reasons(&text), [(why.to_owned(), n)], "{host:?} {kind}\n{text}");
            assert_eq!(report(&text)["calls_left_to_host"], n, "{host:?} {kind}\n{text}");
            assert_eq!(first(&text), format!("nothing was converted: {n} calls {phrase}"), "{host:?} {kind}");
        }
        let text = calls(host, &["named", "400"], |run| run);
        assert_eq!(
            (reasons(&text), first(&text)),
            (vec![], "nothing was converted: no call had a derived type")
        );
        // What is converted is not left, nor are the calls of it that name no type.
        let text = calls(host, &["pack", "400"], |run| run);
        assert_eq!(reasons(&text), [("left_first_use".to_owned(), 1)], "{host:?} {text}");
        assert!(!text.contains("nothing was converted") && report(&text)["pack_calls"] == 399, "{text}");
        // A persistent request is made once and started often, so its type is compiled when it is made, however short it is: the
        // bytes of twenty requests alone would not do.
        let text = calls(host, &["persistent", "400"], |run| run.env("DDTC_POLICY", "all"));
        let converted = ["messages_packed", "messages_unpacked"].map(|name| report(&text)[name]);
        assert!(converted.iter().all(|&n| n >= 200), "{host:?} {text}");
        let text = calls(host, &["gaps", "400"], |run| run.env("DDTC_MODE", "off"));
        assert_eq!(first(&text), "nothing was converted: DDTC_MODE is off", "{text}");
    }
}

#[test]
fn payloads_that_the_policy_does_not_convert_are_named_small_or_large() {
    for host in HOSTS {
        let folder = scratch(&format!("sizes-{host:?}"));
        fs::create_dir_all(folder.join("ddtc")).unwrap();
        let text = calls(host, &["named", "1"], |run| run);
        let version = text.lines().find_map(|l| l.strip_prefix("host ")).unwrap().to_owned();
        let library = ddtc_hosts::policy::Library::of(&version);
        for (rows, why) in
            [("strided-short 4096-", "left_too_small"), ("strided-short 1-64", "left_too_large")]
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
        let file = folder.join("report");
        let run = |kind: &str| {
            let mut run = host.ranks(2, command_line());
            // The command line starts the launcher, not the other way round.
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
            command.arg(host.compile("left", &[])).args([kind, "50"]).current_dir(&folder);
            command.envs(run.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env("DDTC_POLICY", "none");
            run.command = command;
            run.text();
            fs::read_to_string(&file).unwrap()
        };
        // Four calls each, but a rank that is not the root has a named type in the gather.
        let text = run("collectives");
        assert!(
            text.starts_with(
                "ddtc report, sum of 2 ranks\nnothing was converted: 350 calls had types that the policy"
            ),
            "{host:?} {text}"
        );
        assert_eq!(reasons(&text), [("left_by_policy".to_owned(), 350)], "{host:?} {text}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_program_that_aborts_leaves_a_report() {
    for host in HOSTS {
        let folder = scratch(&format!("abort-{host:?}"));
        let file = folder.join("report");
        let run = host.run(host.compile("left", &[])).arg("gaps").arg("100").arg("abort").preload();
        let out = run.env("DDTC_REPORT", &file).env("DDTC_POLICY", "all").output();
        assert!(!out.status.success(), "{host:?}");
        let text =
            fs::read_to_string(&file).unwrap_or_else(|e| panic!("{host:?}: {e} {}", lossy(&out.stderr)));
        let said = report(&text);
        assert_eq!(
            (said["pack_calls"], said["unpack_calls"], said["commits"]),
            (100, 100, 1),
            "{host:?} {text}"
        );
        assert!(text.contains("note MPI was not finalized when this was written"), "{text}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_program_that_is_killed_leaves_a_report() {
    for host in HOSTS {
        let folder = scratch(&format!("killed-{host:?}"));
        let file = folder.join("report");
        let mut command =
            host.run(host.compile("left", &[])).arg("gaps").arg("100").arg("on").preload().command;
        command.env("DDTC_REPORT", &file).env("DDTC_RECORD", folder.join("record")).env("DDTC_POLICY", "all");
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let calls = || fs::read_to_string(&file).map_or(0, |text| report(&text)["pack_calls"]);
        // It goes on being written while the program runs, and whole whenever it is read.
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
        assert!(report(&text)["pack_calls"] >= seen, "{text}");
        assert!(text.contains("note MPI was not finalized when this was written"), "{text}");
        assert_eq!(rows(&text).len(), 1, "{text}");
        let record = fs::read_to_string(folder.join("record")).unwrap();
        assert_eq!(ddtc::corpus::parse(&record).unwrap().len(), 1, "{record}");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Kills the program whose report this is, and `timeout`, which started it.
fn kill(file: &Path, parent: u32) {
    let text = fs::read_to_string(file).unwrap();
    let id: i32 = text.lines().next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    for id in [id, parent as i32] {
        // SAFETY: processes of this test, which has not waited for them.
        assert_eq!(unsafe { libc::kill(id, libc::SIGKILL) }, 0);
    }
}

#[test]
fn rows_tell_types_apart_and_objects_of_one_layout_together() {
    for host in HOSTS {
        let text = calls(host, &["addresses", "100"], |run| run);
        let [row] = rows(&text)[..] else { panic!("{host:?} {text}") };
        assert!(row.starts_with("at addresses: struct([1,3],[0,8],[int,float])  [16 of 20 bytes, "), "{row}");
        let text = calls(host, &["alike", "5"], |run| run);
        let [a, b] = rows(&text)[..] else { panic!("{host:?} {text}") };
        assert!(a != b && a[..150] == b[..150], "{text}");
        assert!(
            a.contains("  [1600 of 3196 bytes, strided-short, ")
                || a.contains("  [1600 of 3204 bytes, table-short, "),
            "{text}"
        );
    }
}
