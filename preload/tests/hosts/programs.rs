//! Tests with C programs for cases in which interposition may fail: wrong calls, threads, many
//! commits and frees, reuse of handles, sessions, and GPU memory.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::doctor::doctor;
use crate::matrix::replaced;
use crate::setup::{
    Host, Run, hosts, lossy, numbers, report, reports, same, scratch, sorted, sources, succeed,
};

/// Runs the C program `name` as one process with the preload library. Returns its output, the text
/// on standard error, and the numbers of its report.
fn with(
    host: Host,
    name: &str,
    args: &[&str],
    flags: &[&str],
) -> (String, String, std::collections::HashMap<String, u64>) {
    let folder = scratch(&format!("{name}-{host:?}"));
    let file = folder.join("report.json");
    let program = host.compile(name, flags);
    let run = args.iter().fold(host.run(program), |run, arg| run.arg(arg));
    let (text, errors) = run.preload().env("DDTC_REPORT", &file).text();
    let said = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{host:?} {name}: {e}\n{errors}"));
    fs::remove_dir_all(folder).unwrap();
    let said = report(&said);
    assert_eq!((said["fallbacks"], said["panics"], said["types_bypassed"]), (0, 0, 0), "{host:?} {said:?}");
    (text, errors, said)
}

#[test]
fn wrong_calls_get_the_hosts_own_errors() {
    for host in Host::ALL {
        // Open MPI does not check whether a handle was freed. A program that uses such a handle
        // crashes there instead of getting an error, so these calls are left out under Open MPI.
        let flags: &[&str] = if host == Host::OpenMpi { &[] } else { &["-DFREED_HANDLES"] };
        let program = host.compile("errors", flags);
        let (unmodified, _) = host.run(&program).text();
        let (text, _) = host.run(&program).preload().text();
        assert!(unmodified.lines().count() > 80, "{unmodified}");
        assert_eq!(text, unmodified, "{host:?}");
        for mode in ["off", "interpret", "lazy"] {
            let (text, _) = host.run(&program).preload().env("DDTC_MODE", mode).text();
            assert_eq!(text, unmodified, "{host:?} {mode}");
        }
    }
}

/// Checks the program `starved`, in which all allocations of the preload library fail from the n-th
/// allocation on, for several n. The program must come to its end, and its bytes must be right.
#[test]
fn allocations_that_fail_leave_calls_to_the_host() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        let program = host.compile("starved", &["-rdynamic", "-ldl"]);
        for n in [0_u64, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597, 1 << 40] {
            let run = host.run(&program).arg(n.to_string()).preload();
            let (text, errors) = run.env("DDTC_POLICY", "all").env("DDTC_LAZY_THRESHOLD", "0").text();
            let context = format!("{host:?}, from allocation {n} on: {text}\n{errors}");
            assert!(text.starts_with("library 1, ") && text.ends_with("wrong 0\n"), "{context}");
            let refused = !text.contains("refused 0 of");
            assert!(refused == (n < 1 << 40) || n > 300, "{context}");
        }
    }
}

#[test]
fn threads_hammer_the_library() {
    for host in [Host::Mpich, Host::MpichStandard, Host::Intel, Host::OpenMpi] {
        let (text, errors, said) = with(host, "hammer", &["3000"], &[]);
        assert_eq!(text.trim(), "wrong 0", "{host:?}");
        assert!(said["packs"] > 40_000, "{host:?} {said:?}\n{errors}");
        for mode in ["lazy", "interpret"] {
            let run = host.run(host.compile("hammer", &[])).arg("500").preload().env("DDTC_MODE", mode);
            assert_eq!(run.text().0.trim(), "wrong 0", "{host:?} {mode}");
        }
    }
}

#[test]
fn a_million_commits_and_frees_do_not_grow() {
    for host in [Host::Mpich, Host::OpenMpi, Host::Intel] {
        let program = host.compile("churn", &[]);
        let (text, _) = host.run(&program).arg("1000000").preload().text();
        let said = numbers(&text);
        let grown = said["all"].saturating_sub(said["tenth"]);
        // Between the two measurements of its memory, the program commits and frees 900,000 types,
        // 4,500 of which have new layouts.
        assert!(grown < 20 << 10, "{host:?} grew by {grown} KB: {text}");
    }
}

#[test]
fn types_and_communicators_live_and_die() {
    for host in Host::ALL {
        let (text, errors, said) = with(host, "lifecycle", &[], &[]);
        assert!(text.ends_with("wrong 0\n"), "{host:?} {text}\n{errors}");
        // The first use of a type may be left to the MPI library. All later uses of the type must
        // be converted.
        assert!(said["packs"] > 4000, "{host:?} {said:?}");
        let program = host.compile("lifecycle", &[]);
        let (checked, _) = host.run(&program).preload().env("DDTC_CHECK", "1").text();
        assert!(checked.ends_with("wrong 0\n"), "{host:?} {checked}");
        // The program's own attributes must be copied and deleted as in a run without the preload
        // library.
        let counts = |text: &str| text.lines().filter(|l| !l.starts_with("reused")).collect::<String>();
        assert_eq!(counts(&text), counts(&host.run(&program).text().0), "{host:?}");
    }
    // MPICH must give the handle values of freed objects to new ones, or the program would show
    // nothing about the reuse of handles.
    let (text, _, _) = with(Host::Mpich, "lifecycle", &[], &[]);
    assert!(!text.contains("reused 0 "), "{text}");
}

/// Checks that the calls that make persistent requests neither read nor write the program's
/// buffers, which belong to the program until the requests are started. With this policy, ddtc
/// times the first message of a type.
#[test]
fn buffers_of_persistent_requests_are_not_touched_before_the_start() {
    for host in [Host::Mpich, Host::MpichStandard, Host::OpenMpi] {
        for policy in ["measure", "all"] {
            let run = host.run(host.compile("untouched", &[])).preload().env("DDTC_POLICY", policy);
            assert_eq!(run.text().0, "wrong 0\n", "{host:?} {policy}");
        }
    }
}

/// Checks that a program sees its own attributes of a type as without the preload library, although
/// ddtc sets an attribute too. MPICH can have an attribute twice in the list of a type if the
/// handle of an older attribute's keyval is larger.
#[test]
fn attributes_of_types_are_set_again() {
    for host in [Host::Mpich, Host::MpichStandard, Host::OpenMpi] {
        let program = host.compile("attributes", &[]);
        let unmodified = host.run(&program).arg("set-again").text().0;
        assert!(unmodified.ends_with("deleted 11 flag 0\ndeleted 11\n"), "{host:?} {unmodified}");
        let run = host.run(&program).arg("set-again").preload().env("DDTC_POLICY", "all");
        assert_eq!(run.text().0, unmodified, "{host:?}");
    }
}

/// Checks that matched receives from `MPI_PROC_NULL` are bypassed. They are complete at once, under
/// a request that is shared, so staging buffers of such receives would never be given back.
#[test]
fn matched_receives_from_no_process_are_bypassed() {
    for host in [Host::Mpich, Host::MpichStandard, Host::OpenMpi] {
        let folder = scratch(&format!("noproc-{host:?}"));
        let file = folder.join("report.json");
        let run = host.run(host.compile("noproc", &[])).preload().env("DDTC_POLICY", "all");
        let (text, errors) = run.env("DDTC_STAGING_MIB", "1").env("DDTC_REPORT", &file).text();
        assert_eq!(text, "wrong 0\n", "{host:?} {errors}");
        let said = report(&fs::read_to_string(&file).unwrap());
        assert_eq!(said["bypassed_nothing_to_move"], 180, "{host:?} {said:?}");
        assert_eq!(said["messages_over_staging_limit"], 0, "{host:?} {said:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks that a type can be used by a delete callback of the program while it is freed. ddtc must
/// not decode it then: Open MPI refuses to be asked about it, and the handle is given to another
/// type.
#[test]
fn types_are_used_while_they_are_freed() {
    for host in [Host::Mpich, Host::MpichStandard, Host::OpenMpi] {
        let run = host.run(host.compile("attributes", &[])).arg("dying").preload();
        let (text, errors) = run.env("DDTC_POLICY", "all").text();
        assert_eq!(text, "packed 100 wrong 0\n", "{host:?} {errors}");
    }
}

/// Checks that what a delete callback of `MPI_COMM_SELF` makes ddtc learn during `MPI_Finalize`
/// does not outlive the finalization. Open MPI's wheel crashes when MPI is initialized again, so
/// the program runs under MPICH alone.
#[test]
fn types_of_the_last_callbacks_are_forgotten() {
    for host in [Host::Mpich, Host::MpichStandard] {
        let run = host.run(host.compile("last_callbacks", &[])).preload().env("DDTC_POLICY", "all");
        let (text, errors) = run.text();
        assert_eq!(text, "wrong 0\n", "{host:?} {errors}");
    }
}

/// Checks that a session which a delete callback of `MPI_COMM_SELF` opens during `MPI_Finalize` is
/// a user of MPI of its own: its packs are converted, and are in the report that ddtc writes when
/// the session is finalized. The program runs under Open MPI alone, because the other MPI libraries
/// hang when a session is opened there.
#[test]
fn a_session_of_the_last_callbacks_goes_on() {
    let (host, folder) = (Host::OpenMpi, scratch("late_session"));
    let file = folder.join("report.json");
    let run = host.ranks(1, host.compile("late_session", &[])).preload().env("DDTC_REPORT", &file);
    let (text, errors) = run.text();
    assert_eq!(text, "wrong 0\n", "{errors}");
    let said = report(&fs::read_to_string(&file).unwrap());
    // The first pack on the communicator is bypassed.
    assert_eq!(said["packs"], 4 * 4 - 1, "{said:?}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn sessions_begin_and_end() {
    for host in Host::ALL {
        // Intel MPI 2021.18 crashes in the second call of MPI_Session_init of a process, even
        // without a fault of ddtc, so the program makes only one round under it.
        let rounds = if matches!(host, Host::Intel | Host::IntelStandard) { "1" } else { "4" };
        let (text, errors, said) = with(host, "sessions", &[rounds], &[]);
        assert_eq!(text.trim(), "wrong 0", "{host:?}\n{errors}");
        assert!(said["packs"] >= rounds.parse::<u64>().unwrap() * 20 * 2, "{host:?} {said:?}");
    }
}

/// Checks that the preload library remembers types until the last user of MPI in the process has
/// finished, which may be a session or the world. If it forgot a type at the end of the first
/// session while the world still used the type, no later message would be converted. A call with a
/// keyval that no longer exists would even end the program.
#[test]
fn types_live_until_the_last_user_of_mpi_goes() {
    for host in [Host::Mpich, Host::MpichStandard, Host::OpenMpi] {
        // In mode `world`, the program sends the second half of its 2000 messages after the world
        // has been finalized. The preload library converts none of these.
        for (mode, received) in [("threads", 2000), ("init", 2000), ("world", 1000)] {
            let runs = if mode == "threads" { 10 } else { 1 };
            for _ in 0..runs {
                let folder = scratch(&format!("users-{host:?}-{mode}"));
                let file = folder.join("report.json");
                let run = host.ranks(1, host.compile("users", &[])).arg(mode).arg("2000").preload();
                let run = run.env("DDTC_POLICY", "all").env("DDTC_REPORT", &file);
                let (text, errors) = run.text();
                assert_eq!(text, "wrong 0\n", "{host:?} {mode} {errors}");
                let said = report(&fs::read_to_string(&file).unwrap());
                assert_eq!(said["messages_unpacked"], received, "{host:?} {mode} {said:?}");
                assert!(said["messages_packed"] > received / 2 && said["panics"] == 0, "{said:?}");
                fs::remove_dir_all(folder).unwrap();
            }
        }
    }
}

/// Compiles `module.c` to a module that is linked with the MPI library `host`. The program `loads`
/// loads such modules.
fn module(host: Host) -> PathBuf {
    host.compile("module", &["-shared", "-fPIC"])
}

/// Returns a run of the program `loads` with the preload library. The program is not linked with
/// MPI itself, and loads the modules `modules`.
fn loads(host: Host, folder: &Path, mode: &str, n: u32, modules: &[PathBuf]) -> Run {
    let out = folder.join("loads");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-o"]).arg(&out).arg(sources().join("loads.c")).arg("-ldl");
    succeed(&mut cc, "a C compiler (cc) is needed: install gcc");
    let run = host.run(out).arg(mode).arg(n.to_string());
    modules.iter().fold(run, |run, module| run.arg(module)).preload()
}

/// Checks that the preload library does not keep the MPI library of a plugin in memory when the
/// program closes the plugin. If the MPI library stayed in memory, it could not be initialized
/// again.
#[test]
fn a_plugin_takes_its_mpi_library_with_it() {
    for host in [Host::Mpich, Host::MpichStandard, Host::Intel, Host::OpenMpi, Host::OpenMpi4] {
        for (policy, inside) in [("table", "on"), ("all", "on"), ("all", "off")] {
            let folder = scratch(&format!("again-{host:?}-{policy}-{inside}"));
            let file = folder.join("report.json");
            let run = loads(host, &folder, "again", 3, &[module(host)]).env("DDTC_POLICY", policy);
            let (text, errors) = run.env("DDTC_HOOK", inside).env("DDTC_REPORT", &file).text();
            assert_eq!(text, "wrong 0\n", "{host:?} {policy} {errors}");
            // When the plugin is loaded again, the preload library takes the plugin's MPI library
            // for a further one, whose calls it passes on without converting them.
            let said = report(&fs::read_to_string(&file).unwrap());
            assert!((5..100).contains(&said["packs"]) && said["panics"] == 0, "{host:?} {said:?}");
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

/// Checks a process with two MPI libraries. Each call must reach the library with which its caller
/// is linked, and the calls of the first library must be converted.
#[test]
fn two_mpi_libraries_serve_their_own_callers() {
    // Only MPICH and Open MPI are tried together. Other pairs exclude each other: Intel MPI brings
    // a libfabric that Open MPI does not accept, and both releases of Open MPI have the same file
    // name.
    for [first, second] in [[Host::Mpich, Host::OpenMpi], [Host::OpenMpi, Host::Mpich]] {
        let folder = scratch(&format!("both-{first:?}-{second:?}"));
        let file = folder.join("report.json");
        let modules = [module(first), module(second)];
        let paths = [first, second].map(|host| host.root().join("lib").display().to_string());
        let run = loads(first, &folder, "both", 20, &modules).env("LD_LIBRARY_PATH", paths.join(":"));
        let run = run.env("DDTC_POLICY", "all");
        let (text, errors) = run.env("DDTC_REPORT", &file).text();
        assert_eq!(text, "wrong 0\n", "{first:?} {second:?} {errors}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"calls of this MPI library are not converted"), "{text}");
        let said = report(&text);
        assert_eq!((said["messages_unpacked"], said["panics"]), (63, 0), "{first:?} {second:?} {said:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks a wrapper library that has the functions of MPI with an ABI of its own, which ddtc does
/// not know, and that calls an MPI library. The program's calls of the wrapper reach the preload
/// library first, which must pass them on. The calls that the wrapper itself makes must be
/// converted, even if the wrapper binds them directly to its MPI library (`RTLD_DEEPBIND`).
#[test]
fn calls_inside_a_wrapper_around_an_mpi_library_are_converted() {
    inside_a_wrapper("trampoline", &[], Some("unknown MPI library 'A wrapper around MPICH"));
}

/// Checks the same with a wrapper that has the standard ABI, as Mukautuva has.
#[test]
fn calls_inside_a_wrapper_with_the_standard_abi_are_converted() {
    inside_a_wrapper("trampoline-standard", &["-DSTANDARD"], None);
}

/// Runs the module on two ranks. `flags` are compiler flags for the wrapper. Each rank must print
/// `warning` on standard error.
fn inside_a_wrapper(name: &str, flags: &[&str], warning: Option<&str>) {
    let (folder, mpich) = (scratch(name), Host::Mpich);
    let inner = mpich.compile("trampoline", &["-DINNER", "-shared", "-fPIC"]);
    let (outer, module, program) =
        (folder.join("libouter.so"), folder.join("module.so"), folder.join("twompi"));
    let cc = |source: &str, flags: &[&str], out: &Path, more: &[&Path]| {
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall"])
            .args(flags)
            .arg("-o")
            .arg(out)
            .arg(sources().join(source))
            .args(more)
            .arg("-ldl");
        succeed(&mut cc, "a C compiler (cc) is needed: install gcc");
    };
    cc("trampoline.c", &[&["-DOUTER", "-shared", "-fPIC"], flags].concat(), &outer, &[]);
    cc("trampoline.c", &["-DMODULE", "-shared", "-fPIC"], &module, &[&outer]);
    cc("twompi.c", &[], &program, &[]);
    for binding in ["first", "deep"] {
        let run =
            mpich.ranks(2, &program).arg(&module).preload().env("INNER", &inner).env("BINDING", binding);
        let run = run.env("DDTC_POLICY", "all").env("DDTC_REPORT", folder.join("report%r.json"));
        let (text, errors) = run.text();
        assert_eq!(text, "module 1: right\nmodule 1: right\n", "{binding} {errors}");
        match warning {
            Some(warning) => assert!(errors.contains(warning), "{binding} {errors}"),
            None => assert!(!errors.contains("ddtc"), "{binding} {errors}"),
        }
        for said in reports(&folder, 2) {
            let counts = [said["messages_packed"], said["messages_unpacked"], said["panics"]];
            assert_eq!(counts, [100, 100, 0], "{binding} {said:?}");
        }
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that an MPI library is found under another file name, as containers may give it. Both the
/// library and the program name `libxyz.so.12`.
#[test]
fn a_library_with_another_file_name_is_found_by_its_symbols() {
    let (folder, host) = (scratch("renamed-file"), Host::Mpich);
    let lib = host.root().join("lib");
    let (library, program) = (folder.join("libxyz.so.12"), folder.join("messages"));
    let (old, new) = (&b"libmpi.so.12\0"[..], &b"libxyz.so.12\0"[..]);
    replaced(&lib.join("libmpi.so.12"), old, new, &library);
    replaced(&host.compile("messages", &[]), old, new, &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let paths = format!("{}:{}:{}", folder.display(), lib.display(), lib.join("mpich").display());
    let run = || host.ranks(2, &program).env("LD_LIBRARY_PATH", &paths);
    let unmodified = sorted(&run().text().0);
    let report = folder.join("report%r.json");
    let with = run().preload().env("DDTC_POLICY", "all").env("DDTC_REPORT", report).text().0;
    same("renamed", &sorted(&with), &unmodified);
    for said in reports(&folder, 2) {
        assert!(said["messages_packed"] > 500 && said["messages_unpacked"] > 500, "{said:?}");
    }
    let says = doctor(&format!("{}:/usr/bin:/bin", host.root().join("bin").display()))
        .env("LD_LIBRARY_PATH", &paths)
        .arg("--mpi")
        .arg(&library)
        .args(["--", "mpiexec", "-n", "2"])
        .output()
        .unwrap();
    let text = lossy(&says.stdout) + &lossy(&says.stderr);
    assert!(says.status.success() && text.contains("libxyz.so.12, named with --mpi: MPICH"), "{text}");
    assert!(text.contains(" packed, ") && !text.contains(": 0 packed"), "{text}");
    fs::remove_dir_all(folder).unwrap();
}

/// The expected output of the program `empty` for calls that Open MPI 5.0 lacks and that the
/// preload library emulates. An inactive request counts as complete, because Open MPI does not
/// distinguish inactive from complete requests.
const EMULATED: &str = "\
null any: code 0 index -1 flag 1 error 0
null all: code 0 flag 1 errors 0 0 0
null some: code 0 out -1 errors
null ignored: code 0
nothing any: code 0 index -1 flag 1 error 0
nothing all: code 0 flag 1 errors
nothing some: code 0 out -1 errors
nothing ignored: code 0
pending any: code 0 index -1 flag 0 error 4711
pending all: code 0 flag 0 errors
pending some: code 0 out 0 errors
pending ignored: code 0
complete any: code 0 index 1 flag 1 error 4711
complete all: code 0 flag 1 errors 0 4711 4711
complete some: code 0 out 2 errors 4711 at 1 4711 at 2
complete ignored: code 0
inactive any: code 0 index 0 flag 1 error 0
inactive all: code 0 flag 1 errors 0
inactive some: code 0 out 1 errors 0 at 0
inactive ignored: code 0
";

#[test]
fn calls_that_a_host_lacks_give_what_the_standard_says() {
    for host in Host::ALL {
        let program = host.compile("empty", &[]);
        let (unmodified, _) = host.run(&program).text();
        let (text, _) = host.run(&program).preload().text();
        if host == Host::OpenMpi {
            assert_eq!((unmodified.as_str(), text.as_str()), ("absent\n", EMULATED));
        } else {
            assert!(unmodified.lines().count() == EMULATED.lines().count(), "{host:?} {unmodified}");
            assert_eq!(text, unmodified, "{host:?}");
        }
    }
}

#[test]
fn device_memory_is_left_to_the_host() {
    let library = hosts().join("bin/libcuda.so.1");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(sources().join("libcuda.c"));
    let out = cc.output().expect("a C compiler (cc) is needed: install gcc");
    assert!(out.status.success(), "{}", lossy(&out.stderr));
    for host in [Host::Mpich, Host::OpenMpi] {
        let (text, _, said) = with(host, "gpu", &[library.to_str().unwrap()], &["-ldl"]);
        assert_eq!(text.trim(), "wrong 0 asked 1", "{host:?}");
        // The first call of the program is bypassed, and so are the fifteen calls with a buffer in
        // device memory: seven packs from it, five unpacks into it, and three packs into it.
        assert_eq!(said["calls_bypassed"], 1 + 7 + 5 + 3, "{host:?} {said:?}");
        assert_eq!(said["packs"], 9 + 4, "{host:?} {said:?}");
    }
}

/// Checks a program that loads Level Zero, a library for GPUs. The preload library does not ask
/// Level Zero whether a buffer is in device memory. If the machine has a device, no call is
/// converted once Level Zero is loaded. Without a device there is no device memory, and calls are
/// converted.
#[test]
fn level_zero_leaves_calls_to_the_host_where_it_has_a_device() {
    let library = hosts().join("bin/libze_loader.so.1");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(sources().join("libcuda.c"));
    succeed(&mut cc, "a C compiler (cc) is needed: install gcc");
    let entries = |folder| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_render =
        |entry: std::fs::DirEntry| lossy(entry.file_name().as_encoded_bytes()).starts_with("renderD");
    let has_device = entries("/dev/dri").any(is_render)
        || entries("/dev/accel").count() > 0
        || Path::new("/dev/dxg").exists();
    for host in [Host::Mpich, Host::OpenMpi] {
        let (text, _, said) = with(host, "gpu", &[library.to_str().unwrap()], &["-ldl"]);
        assert_eq!(text.trim(), "wrong 0 asked 0", "{host:?}");
        // Without a device, all calls except the first one are converted. With a device, only the
        // calls before Level Zero is loaded are converted, again except the first one.
        let expected = if has_device { 9 } else { 9 + 7 + 5 + 3 + 4 };
        assert_eq!(said["packs"] + said["unpacks"], expected, "{host:?} {said:?}");
    }
}

#[test]
fn tools_see_the_hosts_variables_and_ours() {
    for host in Host::ALL {
        // In the standard ABI, MPICH 5.0.2 crashes if it gets MPI_T_PVAR_ALL_HANDLES. With the
        // flag, the program makes no call for all handles at once.
        let flags: &[&str] = if host == Host::MpichStandard { &["-DONE_BY_ONE"] } else { &[] };
        let (text, errors, said) = with(host, "tool", &[], flags);
        assert!(text.ends_with("wrong 0\n"), "{host:?} {text}\n{errors}");
        // The program prints how many variables and enumerations of the MPI library it has seen.
        // MPICH 5.0.2 has no performance variables, and of these libraries only Open MPI has
        // enumerations.
        let seen = numbers(&text);
        assert_eq!(seen["read"] > 0, seen["host"] > 0, "{host:?} {text}");
        assert_eq!(seen["host"] > 0, !matches!(host, Host::Mpich | Host::MpichStandard), "{host:?} {text}");
        assert_eq!(seen["enumerations"] > 0, host == Host::OpenMpi, "{host:?} {text}");
        // The program sets the variable `ddtc_mode` to `off` for a while. The preload library does
        // not examine types in this mode, so it compiles four of the six types. The first of all
        // packs is left to the MPI library.
        assert_eq!((said["commits"], said["packs"]), (4, 3 * 2 + 11 - 1), "{host:?} {said:?}");
    }
    for host in Host::ALL {
        for mode in ["again", "threads"] {
            let (text, errors) = host.run(host.compile("tool", &[])).arg(mode).preload().text();
            assert_eq!(text, "wrong 0\n", "{host:?} {mode} {errors}");
        }
    }
    // The program `mpivars` of MPICH must list the variables of the preload library.
    let (text, _) = Host::Mpich.run(Host::Mpich.root().join("bin/mpivars")).preload().text();
    assert!(
        text.contains("ddtc_mode")
            && text.contains("ddtc_pack_bytes")
            && text.contains("ddtc_cache_capacity"),
        "{text}"
    );
}

/// Runs `program` under the unmodified MPI library, gives it the questions in `lines` on standard
/// input, and returns its answers from standard output.
pub(crate) fn answers(host: Host, program: PathBuf, lines: String) -> String {
    let mut command = host.run(program).command;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{host:?}: {}\n{}", output.status, lossy(&output.stderr));
    lossy(&output.stdout)
}
