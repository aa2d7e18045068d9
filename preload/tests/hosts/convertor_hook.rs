//! Tests of the convertor hook of Open MPI: compiled code moves the bytes of messages inside the
//! MPI library's convertors, while the preload library packs no message into a staging buffer. The
//! results are compared with those of Open MPI's own code, with type maps and with runs of the
//! unmodified library.

use std::fs;
use std::path::{Path, PathBuf};

use crate::setup::{Host, Run, of_type, on_some, reports, same, scratch};

/// The installed releases of Open MPI. ddtc knows their internal structures, so the convertor hook
/// can be enabled under them.
const HOSTS: [Host; 2] = [Host::OpenMpi, Host::OpenMpi4];

fn compiled(host: Host, name: &str) -> PathBuf {
    host.compile(name, &["-DCONFUSES_PAIRS", "-Wno-unused-function", "-ldl"])
}

fn with(run: Run, arguments: &[&str]) -> Run {
    arguments.iter().fold(run, |run, word| run.arg(word))
}

/// Adds the preload library to a run, with a policy that packs no message into a staging buffer,
/// and with a report of each rank in `folder`.
fn inside(run: Run, folder: &Path) -> Run {
    run.preload().env("DDTC_POLICY", "none").env("DDTC_REPORT", folder.join("report%r.json"))
}

/// Returns the number of bytes that all ranks together packed through the convertor hook, and the
/// number that they unpacked through it. Asserts that no message was staged, and that the reports
/// count no fallbacks and no panics.
fn moved(folder: &Path, ranks: u32) -> [u64; 2] {
    let mut moved = [0; 2];
    for said in reports(folder, ranks) {
        let staged = said["messages_packed"] + said["messages_unpacked"];
        assert_eq!((staged, said["fallbacks"], said["panics"]), (0, 0, 0), "{said:?}");
        moved[0] += said["hook_bytes_packed"];
        moved[1] += said["hook_bytes_unpacked"];
    }
    moved
}

/// Checks a program that prints what its ranks saw. The output must be the same in a run without
/// the preload library, in a run with the convertor hook enabled on all ranks, and in runs with it
/// on every other rank. `min_bytes` is the minimum number of bytes that the hook must pack, and
/// also the minimum that it must unpack.
fn assert_same_output(host: Host, ranks: u32, name: &str, arguments: &[&str], min_bytes: u64) {
    let program = compiled(host, name);
    let folder = scratch(&format!("hook-{name}-{host:?}-{ranks}"));
    let file = folder.join("file").display().to_string();
    let arguments: Vec<&str> =
        arguments.iter().map(|&word| if word == "FILE" { file.as_str() } else { word }).collect();
    let (unmodified, _) = with(host.ranks(ranks, &program), &arguments).text();
    assert!(unmodified.lines().count() > 20 * ranks as usize, "{unmodified}");
    let (text, _) = with(inside(host.ranks(ranks, &program), &folder), &arguments).text();
    same(&format!("{host:?} {name}, {ranks} ranks"), &text, &unmodified);
    let bytes = moved(&folder, ranks);
    assert!(bytes.iter().all(|&bytes| bytes >= min_bytes), "{host:?} {name}: {bytes:?}");
    for parity in 0..2 {
        let some = on_some(host, ranks, &program, parity).env("DDTC_POLICY", "none");
        same(&format!("{host:?} {name}, {parity} alone"), &with(some, &arguments).text().0, &unmodified);
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Checks a program that judges its own results. One line of its output, the first or the last,
/// must end with `wrong 0`. `min_bytes` is the minimum number of bytes that the convertor hook must
/// pack and unpack.
fn right(host: Host, ranks: u32, name: &str, arguments: &[&str], min_bytes: u64) {
    let program = compiled(host, name);
    let folder = scratch(&format!("hook-{name}-{host:?}-{ranks}"));
    let (text, errors) = with(inside(host.ranks(ranks, &program), &folder), arguments).text();
    assert!(text.lines().any(|line| line.ends_with("wrong 0")), "{host:?} {name}\n{text}\n{errors}");
    let bytes = moved(&folder, ranks);
    assert!(bytes.iter().all(|&bytes| bytes >= min_bytes), "{host:?} {name}: {bytes:?}");
    fs::remove_dir_all(folder).unwrap();
}

/// Returns the number that follows the first occurrence of `word` in `text`.
pub(crate) fn after(text: &str, word: &str) -> u64 {
    let rest = text.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {text}")).1.trim_start();
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn pieces_end_where_the_hosts_end() {
    for host in HOSTS {
        let program = compiled(host, "convertors");
        for seed in ["1", "2"] {
            let run =
                with(host.run(&program), &["movers", "12000", seed]).preload().env("DDTC_POLICY", "none");
            let (text, errors) = run.text();
            assert!(text.contains("wrong 0"), "{host:?} {seed}\n{text}\n{errors}");
            // The program counts the convertors of all types and those that the hook has served.
            // The convertors that the hook did not serve belong to dense types, which the hook
            // leaves to Open MPI.
            assert!(after(&text, "served") * 10 > after(&text, " of ") * 8, "{text}");
            assert!(after(&text, " of ") > 8000, "{text}");
        }
    }
}

#[test]
fn wrong_offsets_leave_the_hook_disabled() {
    for host in HOSTS {
        let (text, errors) = with(host.run(compiled(host, "convertors")), &["planted"]).preload().text();
        assert_eq!(text.matches("right: enabled").count(), 2, "{host:?}\n{text}\n{errors}");
        let (disabled, tried) = (after(&text, "disabled"), after(&text, " of "));
        assert!(disabled == tried && tried > 100, "{host:?}\n{text}");
    }
}

#[test]
fn pieces_are_compared_and_put_right() {
    for host in HOSTS {
        let program = compiled(host, "convertors");
        for (mode, spoilt) in [("messages", false), ("spoiled", true)] {
            let folder = scratch(&format!("hook-check-{mode}-{host:?}"));
            let run = inside(host.ranks(2, &program), &folder).env("DDTC_HOOK", "check");
            let (text, errors) = with(run, &[mode, "200"]).text();
            assert_eq!(text.trim(), "wrong 0", "{host:?} {mode}\n{errors}");
            assert_eq!(
                errors.contains("a fault of ddtc; inside, 1 bytes"),
                spoilt,
                "{host:?} {mode}\n{errors}"
            );
            for said in reports(&folder, 2) {
                assert!(said["checks"] > 100 && said["hook_bytes_unpacked"] > 1 << 20, "{said:?}");
                assert_eq!(said["faults_of_ddtc"] > 10, spoilt, "{host:?} {mode} {said:?}");
            }
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

#[test]
fn tools_and_reports_count_what_moves_inside() {
    for host in HOSTS {
        let (program, folder) = (compiled(host, "convertors"), scratch(&format!("hook-counted-{host:?}")));
        let (text, errors) = with(inside(host.ranks(2, &program), &folder), &["counted"]).text();
        assert_eq!(text.trim(), "wrong 0", "{host:?}\n{errors}");
        // The report has the number of bytes that the convertor hook packed for each type. The sum
        // over all types must be the total in the report.
        let report = fs::read_to_string(folder.join("report0.json")).unwrap();
        let said = &reports(&folder, 2)[0];
        let types = report.lines().filter(|line| line.starts_with("    {\"type\": "));
        let bytes: u64 = types.map(|line| of_type(line, "hook_bytes_packed")).sum();
        assert_eq!(bytes, said["hook_bytes_packed"], "{report}");
        assert!(said["hook_bytes_copied"] > 20_000, "{report}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_table_moves_inside_what_it_would_pack_first() {
    let program = compiled(Host::OpenMpi, "convertors");
    let folder = scratch("hook-table");
    fs::create_dir_all(folder.join("ddtc")).unwrap();
    let version = Host::OpenMpi.release().1;
    for (row, moves) in [("", false), ("inside blocks-short 1-\ninside strided-short 1-\n", true)] {
        let table = format!("library openmpi-{version}\nblocks-short 1-\nstrided-short 1-\n{row}");
        fs::write(folder.join("ddtc/policy"), table).unwrap();
        let run = Host::OpenMpi.ranks(2, &program).preload().env("XDG_CONFIG_HOME", &folder);
        let run = run.env("DDTC_POLICY", "table").env("DDTC_REPORT", folder.join("report%r.json"));
        let (text, errors) = with(run, &["messages", "400"]).text();
        assert_eq!(text.trim(), "wrong 0", "{errors}");
        for said in reports(&folder, 2) {
            // If the policy table has rows with `inside`, the convertor hook moves the messages of
            // the layout classes in these rows. A layout's first messages are packed into staging
            // buffers nevertheless, until a kernel for the hook is ready.
            let staged = said["messages_packed"];
            assert!(if moves { staged < 50 } else { staged > 300 }, "{moves} {said:?}");
            assert!(said["hook_bytes_packed"] > 1 << 20, "{said:?}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Checks when the preload library enables the convertor hook. In a program with few messages the
/// hook stays disabled. In a program with many messages it is enabled, since it saves more time
/// than it costs. This is tried with a policy under which each message would otherwise be staged,
/// and with a policy under which no message is staged but the gain of compiled code is measured.
#[test]
fn what_many_messages_miss_enables_the_hook() {
    let folder = scratch("hook-enabled");
    for (host, policy, bytes, rounds, is_enabled) in [
        (Host::OpenMpi, "table", 1024, 100, false),
        (Host::OpenMpi, "table", 1024, 40_000, true),
        (Host::OpenMpi4, "measure", 16384, 20_000, true),
    ] {
        let run = |rounds: u64| {
            let run = host.ranks(2, host.compile("alternating", &[])).preload().env("DDTC_POLICY", policy);
            let run = run.env("DDTC_LAZY_THRESHOLD", "1000").env("DDTC_REPORT", folder.join("report%r.json"));
            let run = run.env("DDTC_PROFILE_CACHE", "1").env("XDG_CACHE_HOME", &folder);
            with(run, &[&(bytes / 8).to_string(), &rounds.to_string()]).text()
        };
        if policy == "measure" {
            write_gain_into_cache(&folder, "14", || drop(run(400)));
        }
        let (text, errors) = run(rounds);
        assert_eq!(text.trim(), "wrong 0", "{host:?}\n{errors}");
        for said in reports(&folder, 2) {
            for moved in [said["hook_bytes_packed"], said["hook_bytes_unpacked"]] {
                let many = moved > bytes * rounds / 4;
                assert!(if is_enabled { many } else { moved == 0 }, "{host:?} {rounds} {said:?}");
            }
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Writes times into the profile cache by which compiled code takes less than a tenth of the MPI
/// library's time. They are the times for messages of the size class `class`, whose lengths are
/// from 2^`class` bytes to less than twice as many. The function calls `run`, which runs a program,
/// until the program has written times of its layout into the cache, and then overwrites these
/// times. So a test that uses the cache does not depend on how slow the kernels of a debug build
/// are.
fn write_gain_into_cache(folder: &Path, class: &str, run: impl Fn()) {
    // Lines of the profile cache have the columns LAYOUT CLASS BYTES HOST OURS COPY. They describe
    // layouts, and similarity classes too. A key in the first column belongs to a similarity class
    // if it also has a line whose size class is 40.
    let keys = |text: &str, class: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.get(16..20) == Some(&format!(" {class} ")));
        lines.map(|line| line[..16].to_owned()).collect()
    };
    let kept = || fs::read_dir(folder.join("ddtc")).ok()?.next()?.ok().map(|file| file.path());
    let text = (0..20).find_map(|_| {
        run();
        let is_timed = |text: &String| keys(text, class).iter().any(|key| !keys(text, "40").contains(key));
        kept().and_then(|path| fs::read_to_string(path).ok()).filter(is_timed)
    });
    let found = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        [layout, at, bytes, _, _, _] if at == class => {
            format!("{layout} {at} {bytes} 0000040000 0000003000 0000001500\n")
        }
        _ => format!("{line}\n"),
    };
    fs::write(kept().unwrap(), text.unwrap().lines().map(found).collect::<String>()).unwrap();
}

/// Checks that the convertor hook serves a type from its first messages on if an earlier run has
/// measured a gain. Messages of similar types were left to the MPI library before. This must not be
/// a reason to leave the messages of this type to the MPI library too. The test runs under Open MPI
/// 4.1, where the preload library stages no messages.
#[test]
fn what_is_remembered_moves_inside_soon() {
    let (program, folder) = (compiled(Host::OpenMpi4, "soon"), scratch("hook-soon"));
    let run = |messages| {
        let run = Host::OpenMpi4.ranks(1, &program).preload().env("DDTC_LAZY_THRESHOLD", "81920");
        let run = run.env("DDTC_POLICY", "measure").env("DDTC_PROFILE_CACHE", "1");
        with(run.env("XDG_CACHE_HOME", &folder), &[messages]).text()
    };
    write_gain_into_cache(&folder, "16", || drop(run("400")));
    let (text, errors) = run("24");
    assert_eq!(text.trim(), "inside", "{errors}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn messages_move_inside() {
    for host in HOSTS {
        for ranks in [2, 4] {
            right(host, ranks, "convertors", &["messages", "400"], 1 << 20);
            let program = compiled(host, "convertors");
            for parity in 0..2 {
                let some = on_some(host, ranks, &program, parity).env("DDTC_POLICY", "none");
                let (text, errors) = with(some, &["messages", "400", "alone"]).text();
                assert_eq!(text.trim(), "wrong 0", "{host:?} {parity}\n{errors}");
            }
        }
    }
    // The program `messages` hangs under Open MPI 4.1 even without the preload library, so it runs
    // under Open MPI 5.0 only.
    for ranks in [2, 4] {
        assert_same_output(Host::OpenMpi, ranks, "messages", &[], 1 << 20);
    }
}

#[test]
fn exchanges_and_ragged_ends_are_the_hosts() {
    for ranks in [2, 4] {
        assert_same_output(Host::OpenMpi, ranks, "exchanges", &[], 1 << 20);
    }
    assert_same_output(Host::OpenMpi, 2, "ragged", &["return"], 0);
}

#[test]
fn collective_calls_threads_and_segments_move_inside() {
    for host in HOSTS {
        right(host, 2, "traffic", &["60"], 100_000);
    }
    // Open MPI 4.1 has no persistent collective calls, which the programs `collectives` and
    // `neighbours` make. These runs are therefore under Open MPI 5.0 only.
    right(Host::OpenMpi, 4, "collectives", &["100", "4", "2000"], 100_000);
    right(Host::OpenMpi, 4, "neighbours", &["100", "4", "2000"], 100_000);
    right(Host::OpenMpi, 2, "segments", &[], 100_000);
    right(Host::OpenMpi, 1, "lifecycle", &[], 0);
}

/// Checks that the preload library needs no memory for messages that are pending, because the
/// convertor hook moves their bytes without staging buffers. If the messages of this test were
/// staged, 100 messages of a megabyte in each direction would need 100 MB.
#[test]
fn pending_messages_need_no_memory() {
    for host in HOSTS {
        let (program, folder) = (compiled(host, "pending"), scratch(&format!("hook-pending-{host:?}")));
        let arguments = ["100", "1024"];
        // Each rank prints the number of kilobytes by which its memory grew. This function returns
        // the sum over both ranks, which may print in either order.
        let more = |(text, errors): (String, String)| -> u64 {
            assert_eq!(text.matches("wrong 0").count(), 2, "{host:?}\n{text}\n{errors}");
            text.lines().map(|line| after(line, ":")).sum()
        };
        let unmodified = more(with(host.ranks(2, &program), &arguments).text());
        let ours = more(with(inside(host.ranks(2, &program), &folder), &arguments).text());
        assert!(ours < unmodified + (16 << 10), "{host:?}: {ours} KB, unmodified {unmodified}");
        assert!(moved(&folder, 2).iter().all(|&bytes| bytes > 200 << 20), "{host:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn files_and_windows_are_the_hosts() {
    assert_same_output(Host::OpenMpi, 2, "files", &["FILE", "40", "5", "1000"], 0);
    assert_same_output(Host::OpenMpi, 4, "windows", &["40", "3", "300"], 1000);
}

#[test]
fn truncated_messages_stay_in_the_receive() {
    for host in HOSTS {
        let (program, folder) = (compiled(host, "truncated"), scratch(&format!("hook-truncated-{host:?}")));
        let (text, errors) = with(inside(host.ranks(2, program), &folder), &["80", "11", "quiet"]).text();
        let stays = text.matches(": 0 receives changed bytes elsewhere").count();
        assert_eq!(stays, 2, "{host:?}\n{text}\n{errors}");
        assert!(moved(&folder, 2).iter().all(|&bytes| bytes > 100_000), "{host:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn other_libraries_and_a_disabled_hook_move_nothing_inside() {
    for (host, variable) in
        [(Host::Mpich, "on"), (Host::MpichStandard, "on"), (Host::Intel, "on"), (Host::OpenMpi, "off")]
    {
        let (program, folder) = (compiled(host, "messages"), scratch(&format!("hook-disabled-{host:?}")));
        let (unmodified, _) = host.ranks(2, &program).text();
        let (text, _) = inside(host.ranks(2, &program), &folder).env("DDTC_HOOK", variable).text();
        same(&format!("{host:?} {variable}"), &text, &unmodified);
        assert_eq!(moved(&folder, 2), [0, 0], "{host:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
