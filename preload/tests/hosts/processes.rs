//! Tests of processes and their environment: processes that a job spawns, a home folder that cannot
//! be written, and programs that are built with AddressSanitizer.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::setup::{Host, Run, command_line, compiled_by, library, lossy, release, report, scratch};

/// Returns a run of the program `spawner`, which is a job of two ranks that spawns two more
/// processes. `report` is the file name of the reports.
fn spawning(host: Host, folder: &Path, report: &str) -> Run {
    spawned_by(host.ranks(2, host.compile("spawner", &[])), host, folder, report)
}

/// Does what [`spawning`] does, for a run of the program `spawner` that the caller has made.
fn spawned_by(run: Run, host: Host, folder: &Path, report: &str) -> Run {
    let run = run.preload().env("DDTC_POLICY", "all");
    // The spawned processes were started separately, so they do not share memory with the ranks
    // that spawned them. These variables permit a transport without shared memory.
    let run = match host {
        Host::OpenMpi => run.env("OMPI_MCA_btl", "self,sm,tcp"),
        Host::OpenMpi4 => run.env("OMPI_MCA_btl", "self,vader,tcp"),
        _ => run.env("I_MPI_FABRICS", "ofi"),
    };
    run.env("DDTC_REPORT", folder.join(report)).env("DDTC_RECORD", folder.join("record%r"))
}

#[test]
fn reports_of_spawned_processes_stand_beside_their_parents() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi4, Host::OpenMpi] {
        let folder = scratch(&format!("spawned-{host:?}"));
        let (text, errors) = spawning(host, &folder, "report%r").text();
        assert_eq!(text.trim(), "0 exchanges wrong", "{host:?}\n{errors}");
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&folder).unwrap() {
            let name = lossy(entry.unwrap().file_name().as_encoded_bytes());
            let (of, process) = name.split_once(".spawned-").unwrap_or((&name, ""));
            assert!(process.bytes().all(|b| b.is_ascii_digit()), "{name}");
            names.insert((of.to_owned(), !process.is_empty()));
        }
        let expected = ["record0", "record1", "report0", "report1"]
            .into_iter()
            .flat_map(|name| [(name.to_owned(), false), (name.to_owned(), true)]);
        assert_eq!(names, expected.collect(), "{host:?}");
        fs::remove_dir_all(&folder).unwrap();
        // The file name of this report contains the process number (`%p`) and so differs in each
        // process. The preload library must append nothing to it.
        fs::create_dir(&folder).unwrap();
        spawning(host, &folder, "report-%r-%p").text();
        let reports = fs::read_dir(&folder).unwrap().flatten();
        let names: Vec<String> = reports.map(|e| lossy(e.file_name().as_encoded_bytes())).collect();
        let reports: Vec<_> = names.iter().filter(|name| name.starts_with("report-")).collect();
        assert!(reports.len() == 4 && reports.iter().all(|name| !name.contains("spawned")), "{names:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks which calls are converted after ranks have been connected to other processes with which
/// they use another transport. Ranks of MPICH on one machine share memory, but they share none with
/// the processes that they spawn. Over UCX, messages of MPICH 5.0.2 are not right, so they are not
/// converted after the connection. Over libfabric, only puts and gets of MPICH 4.3.2 are not right.
#[test]
fn only_what_is_right_with_the_other_transport_is_converted_after_a_connection() {
    let packed = |root: &Path, module: &str, way: &[&str]| {
        let folder = scratch("connected");
        let program = compiled_by(&root.join("bin/mpicc"), "spawner", &[]);
        let run = spawned_by(Host::Mpich.ranks_of(root, 2, program), Host::Mpich, &folder, "report%r.json");
        let run = run.env("MPIR_CVAR_CH4_NETMOD", module);
        let run = way.iter().fold(run, |run, word| run.arg(word));
        let (text, errors) = run.text();
        assert_eq!(text.trim(), "0 exchanges wrong", "{errors}");
        let (mut packed, mut notes) = ([0, 0], Vec::new());
        for file in fs::read_dir(&folder).unwrap().flatten() {
            let name = lossy(file.file_name().as_encoded_bytes());
            if name.ends_with(".json") {
                let text = fs::read_to_string(file.path()).unwrap();
                packed[usize::from(name.contains("spawned"))] += report(&text)["messages_packed"];
                let note = text.split_once("is connected to another job: ").map(|(_, note)| note);
                notes.extend(
                    note.and_then(|note| note.split_once(", which")).map(|(kinds, _)| kinds.to_owned()),
                );
            }
        }
        fs::remove_dir_all(folder).unwrap();
        (packed, notes)
    };
    let newest = Host::Mpich.root();
    for way in [&[][..], &["leader"]] {
        let (by_ofi, notes) = packed(&newest, "ofi", way);
        assert!(by_ofi[0] > 0 && by_ofi[1] > 0 && notes.is_empty(), "{way:?} {by_ofi:?} {notes:?}");
        let (by_ucx, notes) = packed(&newest, "ucx", way);
        assert_eq!((by_ucx, notes), ([by_ofi[0] / 2, 0], vec!["nothing".to_owned(); 4]), "{way:?}");
        let kinds = "messages, exchanges, collectives, neighbors, persistent, files";
        let older = packed(&release("mpich432"), "ofi", way);
        assert_eq!(older, (by_ofi, vec![kinds.to_owned(); 4]), "{way:?}");
    }
}

/// Checks that the preload library complains about a home folder that cannot be written only in
/// runs with a report, because there somebody reads what the library prints. Compute nodes often
/// have such a home folder.
#[test]
fn a_home_that_cannot_be_written_is_named_in_runs_with_a_report_alone() {
    let folder = scratch("home");
    let home = folder.join("home");
    fs::write(&home, "no folder").unwrap();
    let program = Host::Mpich.compile("manytypes", &[]);
    let run = || {
        let run = Host::Mpich.run(&program).arg("20").arg("2000").preload();
        let mut run = run.env("DDTC_POLICY", "measure").env("DDTC_PROFILE_CACHE", "1").env("HOME", &home);
        run.command.env_remove("XDG_CACHE_HOME").env_remove("XDG_CONFIG_HOME");
        run
    };
    let (text, errors) = run().text();
    assert_eq!((text.trim(), errors.as_str()), ("20 types, 0 messages wrong", ""));
    let (_, errors) = run().env("DDTC_REPORT", folder.join("report")).text();
    assert!(errors.contains("home/.cache/ddtc/measured-"), "{errors}");
    fs::remove_dir_all(folder).unwrap();
}

/// Checks a program that is built with AddressSanitizer. The runtime library of AddressSanitizer
/// ends a program in which another library was loaded before the runtime library. The program must
/// run if LD_PRELOAD has the runtime library. Otherwise the run fails, and `ddtc preload` must say
/// why.
#[test]
fn a_program_with_address_sanitizer_runs_with_its_runtime_first() {
    let program = Host::Mpich.compile("manytypes", &["-fsanitize=address"]);
    let run = |preloaded: Option<&Path>| {
        let run = Host::Mpich.run(command_line()).arg("preload").arg("--library").arg(library());
        let mut run = run.arg("--").arg(&program).arg("100").arg("10");
        run = run.env("ASAN_OPTIONS", "detect_leaks=0").env("DDTC_POLICY", "all");
        preloaded.into_iter().fold(run, |run, runtime| run.env("LD_PRELOAD", runtime)).output()
    };
    let out = run(None);
    let errors = lossy(&out.stderr);
    assert!(!out.status.success(), "{errors}");
    let said = errors.lines().find(|line| line.starts_with("ddtc: ")).expect("a line of the command");
    assert!(said.contains("AddressSanitizer") && said.contains("LD_PRELOAD"), "{errors}");

    let found = Command::new("gcc").arg("-print-file-name=libasan.so").output().expect("gcc");
    let runtime = lossy(&found.stdout);
    let out = run(Some(Path::new(runtime.trim())));
    let errors = lossy(&out.stderr);
    assert_eq!(lossy(&out.stdout).trim(), "100 types, 0 messages wrong", "{errors}");
    assert!(out.status.success() && !errors.contains("ddtc: "), "{errors}");
}
