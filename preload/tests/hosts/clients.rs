//! Tests with programs that are not in C (Fortran and Python), with valgrind, which watches the
//! preload library, and with processes that have an unknown MPI library or no MPI library.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::setup::{Host, command_line, library, lossy, report, scratch, sources};

/// Asserts that the program `name` is installed. If it is missing, first tries to install the
/// Debian package `package` with apt-get.
pub(crate) fn tool(name: &str, package: &str) {
    let there = || Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    if !there() {
        let _ = Command::new("apt-get").args(["install", "-y", package]).output();
    }
    assert!(there(), "{name} is needed: install {package}");
}

pub(crate) fn compile(command: &mut Command) {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(out.status.success(), "{command:?}\n{}", lossy(&out.stderr));
}

pub(crate) fn manifest(path: &str) -> PathBuf {
    crate::setup::package().join(path)
}

#[test]
fn fortran_programs_are_seen() {
    tool("gfortran", "gfortran");
    // The Fortran program runs with two kinds of bindings: Intel's own bindings, which call C
    // functions, and bindings that bypass the C functions as those of Open MPI do. For the latter
    // it also runs in a variant that opens and closes sessions.
    for (host, flags, defined) in [
        (Host::Intel, &["-DHANDLES_ONLY"][..], "-UNOTHING"),
        (Host::OpenMpi, &[], "-UNOTHING"),
        (Host::OpenMpi, &[], "-DSESSIONS"),
    ] {
        let folder = scratch(&format!("fortran-{host:?}{defined}"));
        let shared = ["-shared", "-fPIC"];
        let all: Vec<&str> = shared.iter().chain(flags).copied().collect();
        let bindings = host.compile("bypass", &all);
        fs::copy(bindings, folder.join("libbindings.so")).unwrap();
        let program = folder.join("packer");
        let mut fortran = Command::new("gfortran");
        fortran.args(["-cpp", defined]).arg("-o").arg(&program).arg(manifest("tests/fortran/packer.f90"));
        fortran.arg(folder.join("libbindings.so")).arg("-Wl,-rpath").arg(&folder);
        if host == Host::Intel {
            fortran.arg(host.root().join("lib/libmpifort.so.12"));
        }
        // The linker accepts symbols that the Fortran bindings need and that the given libraries
        // lack. The dynamic loader finds the libraries with these symbols when the program runs.
        fortran.args(["-Wl,--allow-shlib-undefined", "-fallow-argument-mismatch"]);
        compile(&mut fortran);
        let (unmodified, _) = host.run(&program).text();
        assert_eq!(unmodified.trim(), "wrong 0", "{host:?}");
        let file = folder.join("report.json");
        let (text, errors) = host.run(&program).preload().env("DDTC_REPORT", &file).text();
        assert_eq!(text.trim(), "wrong 0", "{host:?} {errors}");
        let said = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{host:?}: {e}\n{errors}"));
        assert!(!said.contains("not seen"), "{said}");
        // The program packs and unpacks with ten types, each in five rounds. If the bindings bypass
        // the C functions, the preload library does not see the commit of a type and learns of the
        // type only at its first use.
        let said = report(&said);
        assert!(said["packs"] >= 39 && said["unpacks"] >= 49, "{host:?} {said:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn mpi4py_is_a_client() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        let folder = scratch(&format!("python-{host:?}"));
        let file = folder.join("report.json");
        let run = || host.run(host.root().join("bin/python")).arg(manifest("tests/python/client.py"));
        let (unmodified, _) = run().text();
        let run = || run().preload().env("DDTC_REPORT", &file).env("DDTC_POLICY", "all");
        let (text, errors) = run().env("DDTC_CHECK", "1").text();
        assert_eq!((unmodified.trim(), text.trim()), ("wrong 0", "wrong 0"), "{host:?}\n{errors}");
        let said = report(&fs::read_to_string(&file).unwrap_or_else(|e| panic!("{host:?}: {e}\n{errors}")));
        assert!(said["packs"] > 140, "{host:?} {said:?}");
        assert!(said["messages_packed"] > 100 && said["messages_unpacked"] > 100, "{host:?} {said:?}");
        assert_eq!((said["faults_of_ddtc"], said["other_differences_of_mpi"]), (0, 0), "{errors}");
        fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn without_mpi_the_library_is_inert() {
    for program in ["/bin/true", "/bin/ls"] {
        let out = Command::new(program)
            .env("LD_PRELOAD", library())
            .env("DDTC_REPORT", "-")
            .env("DDTC_MODE", "nonsense")
            .output()
            .unwrap();
        assert!(out.status.success() && out.stderr.is_empty(), "{program}: {}", lossy(&out.stderr));
    }
}

#[test]
fn unknown_hosts_and_foreign_packing_are_left_alone() {
    let folder = scratch("fake");
    let shared = folder.join("libfakempi.so");
    compile(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&shared).arg(sources().join("fake.c")));
    let program = folder.join("program");
    compile(
        Command::new("cc")
            .args(["-DPROGRAM", "-o"])
            .arg(&program)
            .arg(sources().join("fake.c"))
            .arg(&shared)
            .arg("-Wl,-rpath")
            .arg(&folder),
    );
    for (version, tool, line) in [
        (
            "Nobody's MPI 1.0",
            "3 4 5 6",
            "unknown MPI library 'Nobody's MPI 1.0'; its calls are not converted",
        ),
        (
            "MPICH Version: 9.9",
            "13 20 6 6",
            "MPICH Version: 9.9: MPI_Pack does not write raw bytes, which conversion needs; nothing is converted",
        ),
    ] {
        let out = Command::new(&program)
            .env("LD_PRELOAD", library())
            .env("FAKE_VERSION", version)
            // In mode `commit`, the preload library examines each type when the program commits it.
            .env("DDTC_MODE", "commit")
            .output()
            .unwrap();
        assert_eq!(lossy(&out.stdout), format!("tool {tool} wrong 0\n"), "{version}");
        assert_eq!(lossy(&out.stderr), format!("ddtc: {line}\n"));
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn valgrind_finds_nothing() {
    tool("valgrind", "valgrind");
    for (name, args) in [("lifecycle", &[][..]), ("hammer", &["10"]), ("tool", &[])] {
        let program = Host::Mpich.compile(name, &[]);
        let mut run = Host::Mpich.run("valgrind").arg("--smc-check=all").arg("--num-callers=40").arg(program);
        for arg in args {
            run = run.arg(arg);
        }
        let (text, errors) = run.preload().text();
        assert!(text.trim().ends_with("wrong 0"), "{text}\n{errors}");
        // The test searches valgrind's output for error blocks with a stack frame of the preload
        // library. Errors of the MPI library itself do not count, and neither do those inside
        // `PMPI_Init`. Blocks of the dynamic loader (`_dl_map_object`) do not count either: the
        // loader compares names eight bytes at a time and so reads past their ends.
        let blocks = errors.split("== \n").filter(|b| {
            (b.contains("ddtc_preload::") || b.contains(" ddtc::"))
                && !["_dl_map_object", " PMPI_Init"].iter().any(|own| b.contains(own))
        });
        let ours: Vec<_> = blocks.filter(|b| b.contains("Invalid") || b.contains("ninitialised")).collect();
        assert!(ours.is_empty(), "{}", ours.join("\n"));
        assert!(errors.contains("ERROR SUMMARY"), "{errors}");
    }
}

/// Script for a shell that prints the name of the perf map that its process will have, and then
/// replaces itself by the program in its arguments. The program keeps the process number of the
/// shell.
const UNDER_ITS_MAP: &str = "echo /tmp/perf-$$.map; exec \"$@\"";

#[test]
fn kernels_have_names_for_profilers() {
    let program = Host::Mpich.compile("lifecycle", &[]);
    let run = Host::Mpich.run("sh").arg("-c").arg(UNDER_ITS_MAP).arg("sh").arg(program);
    let (text, _) = run.preload().env("DDTC_PERF_MAP", "1").text();
    let map = PathBuf::from(text.lines().next().unwrap());
    let line = |l: &str| {
        let words: Vec<&str> = l.split(' ').collect();
        words.len() == 3
            && u64::from_str_radix(words[0], 16).is_ok_and(|a| a > 0)
            && u64::from_str_radix(words[1], 16).is_ok_and(|n| n > 0)
            && words[2].starts_with("ddtc_pack:vector(")
    };
    let named = fs::read_to_string(&map).unwrap();
    fs::remove_file(map).unwrap();
    assert!(named.lines().any(line), "{named}");
}

#[test]
fn names_that_somebody_else_has_taken_are_left_alone() {
    let folder = scratch("taken");
    let victim = folder.join("victim");
    fs::write(&victim, "precious").unwrap();
    let (link, pipe) = (folder.join("link"), folder.join("pipe"));
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    compile(Command::new("mkfifo").arg(&pipe));
    let program = Host::Mpich.compile("lifecycle", &[]);
    // The shell makes a symbolic link under the name of the perf map for its own process number.
    // The program then replaces the shell and has the same process number, so it finds the link
    // where it would write its perf map.
    let script = format!("ln -s \"$0\" /tmp/perf-$$.map; {UNDER_ITS_MAP}");
    let run = Host::Mpich
        .run("sh")
        .arg("-c")
        .arg(script)
        .arg(&victim)
        .arg("env")
        .arg(format!("LD_PRELOAD={}", library().display()));
    let (text, errors) = run.arg("DDTC_PERF_MAP=1").arg(&program).text();
    let map = PathBuf::from(text.lines().next().unwrap());
    assert!(map.is_symlink());
    fs::remove_file(&map).unwrap();
    let said: Vec<&str> = errors.lines().filter(|l| l.starts_with("ddtc: ")).collect();
    assert_eq!(said.len(), 1, "{errors}");
    assert!(said[0].contains("perf-") && said[0].contains("no link"), "{errors}");
    for taken in [&link, &pipe, &folder] {
        for name in ["DDTC_REPORT", "DDTC_RECORD"] {
            let (_, errors) = Host::Mpich.run(&program).preload().env(name, taken).text();
            let line = format!("ddtc: {}: must be a regular file", taken.display());
            assert!(errors.contains(&line), "{name} {errors}");
        }
    }
    fs::create_dir_all(folder.join("ddtc")).unwrap();
    std::os::unix::fs::symlink(&victim, folder.join("ddtc/policy")).unwrap();
    let (_, errors) = Host::Mpich.run(&program).preload().env("XDG_CONFIG_HOME", &folder).text();
    assert!(errors.contains("ddtc/policy: must be a regular file"), "{errors}");
    assert!(errors.contains("the shipped policy is used"), "{errors}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_command_line_sets_it_all_up() {
    let folder = scratch("cli");
    let (report_file, record) = (folder.join("report.json"), folder.join("record.ddt"));
    let program = Host::Mpich.compile("lifecycle", &[]);
    let run = |dry: bool| {
        let mut command = Host::Mpich.run(command_line()).arg("preload").arg("--mode").arg("lazy");
        command = command.arg("--report").arg(&report_file).arg("--record").arg(&record);
        if dry {
            command = command.arg("--dry-run");
        }
        let mpiexec = Host::Mpich.root().join("bin/mpiexec");
        command.arg("--").arg(mpiexec).arg("-n").arg("2").arg(&program).text()
    };
    let (text, _) = run(true);
    assert!(text.starts_with(&format!("LD_PRELOAD={} DDTC_MODE=lazy ", library().display())), "{text}");
    assert!(text.contains("mpiexec -n 2 ") && !report_file.exists(), "{text}");
    run(false);
    let text = fs::read_to_string(&report_file).unwrap();
    let said = report(&text);
    assert!(said["ranks"] == 2 && said["packs"] > 8000 && text.contains("\"lazy\""), "{text}");
    // The file with the recorded types of each rank must be a corpus in the text notation of
    // datatypes.
    for rank in 0..2 {
        let text = fs::read_to_string(folder.join(format!("record.ddt.{rank}"))).unwrap();
        let entries = ddtc::internal::corpus::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(entries.len() > 300, "{}", entries.len());
        assert!(entries.iter().any(|e| e.datatype.to_string() == "vector(10,1,3,int)"), "{text}");
    }
    fs::remove_dir_all(folder).unwrap();
}
