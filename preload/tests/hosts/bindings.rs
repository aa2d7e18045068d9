//! Tests of Fortran bindings, which may complete requests without the C functions that the preload
//! library interposes. A request is converted if the preload library sees each of its completions.
//! If a completion may bypass the preload library, the request is left to the MPI library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::clients::{compile, manifest, tool};
use crate::messages::reports;
use crate::setup::{Host, Run, library, report, scratch, sources};

/// Compiles the Fortran program `name.f90` into `folder`, links it with the given libraries, and
/// returns the path of the program.
fn fortran(folder: &Path, name: &str, libraries: &[PathBuf]) -> PathBuf {
    tool("gfortran", "gfortran");
    let program = folder.join(name);
    let mut fortran = Command::new("gfortran");
    fortran.arg("-o").arg(&program).arg(manifest(&format!("tests/fortran/{name}.f90")));
    fortran.args(libraries).arg("-Wl,-rpath").arg(folder);
    // The linker accepts symbols that the Fortran bindings need and that the given libraries lack.
    // The dynamic loader finds the libraries with these symbols when the program runs.
    fortran.args(["-Wl,--allow-shlib-undefined", "-fallow-argument-mismatch"]);
    compile(&mut fortran);
    program
}

/// Runs a program with the preload library, asserts that every byte arrived, and returns the
/// numbers of packed and of unpacked messages.
fn moved(host: Host, program: &Path, folder: &Path, preload: &str) -> (u64, u64) {
    moved_by(host, host.run(program), folder, preload)
}

fn moved_by(host: Host, run: Run, folder: &Path, preload: &str) -> (u64, u64) {
    let file = folder.join("report.json");
    let run = run.env("LD_PRELOAD", preload).env("DDTC_POLICY", "all");
    let (text, errors) = run.env("DDTC_REPORT", &file).text();
    assert_eq!(text.trim(), "wrong 0", "{host:?} {errors}");
    let said = report(&fs::read_to_string(&file).unwrap());
    assert_eq!(said["panics"], 0, "{host:?} {said:?}");
    (said["messages_packed"], said["messages_unpacked"])
}

fn preload() -> String {
    library().display().to_string()
}

/// Compiles a library of Fortran bindings from `halves.c`, copies it into `folder` under the name
/// `file`, and returns its path.
fn bindings(host: Host, folder: &Path, file: &str, flags: &[&str]) -> PathBuf {
    let all: Vec<&str> = ["-shared", "-fPIC"].iter().chain(flags).copied().collect();
    let library = folder.join(file);
    fs::copy(host.compile("halves", &all), &library).unwrap();
    library
}

/// Checks Fortran bindings that a program loads while requests are active. Bindings are *followed*
/// if they complete requests by C functions that the preload library sees. A request that was
/// converted before the load completes correctly by a C function, and also by the bindings if they
/// are followed. A request that is started after the load is converted only if the bindings are
/// followed.
#[test]
fn bindings_may_come_late() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        let program = host.compile("late", &["-ldl"]);
        let integers = host != Host::OpenMpi;
        for (file, flags, how) in [
            ("libmpifort.so.12", &["-DFOLLOWED"][..], "f"),
            ("libmpifort.so.12", &["-DFOLLOWED"], "fg"),
            ("libmpichfort.so.12", &["-DFOLLOWED"], "f"),
            ("libmpifort.so.12", &["-DFOLLOWED", "-DPAST"], ""),
            ("libmpifort.so.12", &[], ""),
            ("libbindings.so", &["-DFOLLOWED"], "f"),
            ("libbindings.so", &[], "g"),
        ] {
            let folder = scratch(&format!("late-{host:?}-{}-{how}-{file}", flags.len()));
            let late = bindings(host, &folder, file, flags);
            let (packed, unpacked) =
                moved_by(host, host.run(&program).arg(&late).arg(how), &folder, &preload());
            // In each run, 24 receives belong to requests that were made before the bindings were
            // loaded: 8 persistent receives, 8 nonblocking receives that are pending during the
            // load, and the 8 persistent receives when they are started again. 33 receives are made
            // after the load: one in the same clock tick as the load, and four rounds of 8.
            let is_mpichs = ["libmpifort.so.12", "libmpichfort.so.12"].contains(&file);
            let followed = integers && is_mpichs && flags == ["-DFOLLOWED"];
            let received = 24 + if followed { 33 } else { 0 };
            assert_eq!((packed, unpacked), (57, received), "{host:?} {file} {flags:?} {how}");
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

/// Checks a program that loads a plugin and closes it again. The preload library must not keep the
/// plugin open. If the program then loads another file under the name of the closed plugin, the
/// preload library must examine that file anew.
#[test]
fn objects_come_and_go() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        let program = host.compile("late", &["-ldl"]);
        let folder = scratch(&format!("come-and-go-{host:?}"));
        let plugin = refers(&folder, "puts");
        let run = |late: &Path| host.run(&program).arg(late).arg("").arg(&plugin);
        let (unmodified, _) = run(&bindings(host, &folder, "libnext.so", &[])).text();
        assert_eq!(unmodified.trim(), "wrong 0", "{host:?}");
        let plugin = refers(&folder, "puts");
        let late = bindings(host, &folder, "libnext.so", &[]);
        let run = host.run(&program).arg(late).arg("").arg(plugin);
        assert_eq!(moved_by(host, run, &folder, &preload()), (58, 25), "{host:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks Fortran bindings that are linked statically, for several ways of linking. The preload
/// library converts requests if the bindings call C functions for all steps of a request. If the
/// bindings bypass these functions, the preload library notices it and leaves receives to the MPI
/// library.
#[test]
fn bindings_may_be_static() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        for (flags, followed) in
            [(&["-DFOLLOWED"][..], true), (&["-DFOLLOWED", "-DPAST"], false), (&[], false)]
        {
            for link in
                [&["-no-pie"][..], &["-pie", "-Wl,-z,now"], &["-pie", "-Wl,-z,lazy"], &["-pie", "-rdynamic"]]
            {
                let folder = scratch(&format!("static-{host:?}-{}-{}", flags.len(), link.concat()));
                let program = folder.join("receiver");
                let mut compiler = Command::new(host.compiler());
                let object = folder.join("halves.o");
                compiler
                    .args(["-O1", "-c", if link[0] == "-pie" { "-fPIC" } else { "-fno-pic" }])
                    .args(flags);
                compiler.args(if link.len() == 2 { &["-fno-plt"][..] } else { &[] });
                compile(compiler.arg("-o").arg(&object).arg(sources().join("halves.c")));
                let archive = folder.join("libmpifort.a");
                compile(Command::new("ar").arg("rcs").arg(&archive).arg(&object));
                let mut fortran = Command::new("gfortran");
                fortran
                    .arg("-o")
                    .arg(&program)
                    .arg(manifest("tests/fortran/receiver.f90"))
                    .args(link)
                    .arg(archive);
                fortran.arg(host.root().join("lib/libmpi.so"));
                compile(fortran.args(["-Wl,--allow-shlib-undefined", "-fallow-argument-mismatch"]));
                let (packed, unpacked) = moved(host, &program, &folder, &preload());
                assert_eq!(
                    (packed >= 80, unpacked >= 80),
                    (true, followed),
                    "{host:?} {flags:?} {link:?}: {packed}, {unpacked}"
                );
                fs::remove_dir_all(folder).unwrap();
            }
        }
    }
}

/// Compiles a shared library with a reference to the function `name`, which the library never
/// calls, and returns its path.
fn refers(folder: &Path, name: &str) -> PathBuf {
    let library = folder.join("librefers.so");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", &format!("-DCOMPLETE={name}"), "-o"]).arg(&library);
    compile(command.arg(sources().join("refers.c")));
    library
}

#[test]
fn receives_that_fortran_completes_are_never_left_packed() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        // The bindings in this list bypass the C functions for some steps of a request, or have a
        // name under which the preload library does not test them. The preload library notices such
        // bindings under any file name. If a library has the name of MPICH's bindings, the preload
        // library calls its functions to test them; if one of the functions bypasses the preload
        // library, all requests of the bindings are left to the MPI library.
        for (file, flags) in [
            ("libbindings.so", &[][..]),
            ("libmpifort.so.12", &[]),
            ("libmpifort.so.12", &["-DFOLLOWED", "-DPAST"]),
            ("libbindings.so", &["-DFOLLOWED"]),
            ("libmpifort.so.12", &["-DFOLLOWED"]),
        ] {
            // Under MPI libraries whose handles are integers, the bindings of this row call only C
            // functions and have the name of MPICH's bindings. Their requests are converted, which
            // the test `requests_of_bindings_that_call_c_are_converted` checks.
            if host != Host::OpenMpi && (file, flags) == ("libmpifort.so.12", &["-DFOLLOWED"][..]) {
                continue;
            }
            let folder = scratch(&format!("halves-{host:?}-{}-{file}", flags.len()));
            let program = fortran(&folder, "receiver", &[bindings(host, &folder, file, flags)]);
            let (packed, unpacked) = moved(host, &program, &folder, &preload());
            // The preload library converts the blocking sends, and leaves all receives to the MPI
            // library.
            assert!(packed >= 80, "{host:?} {file} {flags:?}: {packed}");
            assert_eq!(unpacked, 0, "{host:?} {file} {flags:?}");
            fs::remove_dir_all(folder).unwrap();
        }
    }
}

#[test]
fn requests_of_bindings_that_call_c_are_converted() {
    for host in [Host::Mpich, Host::Intel] {
        let folder = scratch(&format!("followed-{host:?}"));
        let program =
            fortran(&folder, "receiver", &[bindings(host, &folder, "libmpifort.so.12", &["-DFOLLOWED"])]);
        let (packed, unpacked) = moved(host, &program, &folder, &preload());
        assert!(packed >= 80 && unpacked >= 80, "{host:?} {packed} {unpacked}");
        // In these runs the preload library is loaded together with another library that refers to
        // one of the functions in the list. Each of these functions completes requests without the
        // C functions, or returns whether a request is complete. As long as such a library is
        // loaded, requests must not be converted.
        for name in ["mpi_wait_f08_", "PMPI_Waitall", "PMPI_Request_get_status", "MPIX_Request_is_complete"] {
            let both = format!("{}:{}", library().display(), refers(&folder, name).display());
            let (packed, unpacked) = moved(host, &program, &folder, &both);
            assert!(packed >= 80, "{host:?} {name} {packed}");
            assert_eq!(unpacked, 0, "{host:?} {name}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Checks Intel's Fortran bindings for the standard ABI. These bindings take integers as handles
/// and translate them, but the preload library does not know the integers of this ABI. It must
/// therefore not call the bindings in order to test them.
#[test]
fn bindings_that_translate_handles_are_not_called() {
    let host = Host::IntelStandard;
    let program = host.compile("exchanges", &["-DNO_ERRORS"]);
    let folder = scratch("translating");
    let (unmodified, _) = host.ranks(2, &program).text();
    let both = format!("{}:{}", library().display(), host.root().join("lib/libmpifort_abi.so.1").display());
    let run = host.ranks(2, &program).env("LD_PRELOAD", both).env("DDTC_POLICY", "all");
    let (text, errors) = run.env("DDTC_REPORT", folder.join("report%r.json")).text();
    assert_eq!(text, unmodified, "{errors}");
    for said in reports(&folder, 2) {
        // The preload library converts blocking sends, and leaves calls with requests to the MPI
        // library.
        assert!((1..50).contains(&said["messages_packed"]) && said["panics"] == 0, "{said:?}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that requests are converted under Intel's own Fortran bindings, which serve both `use
/// mpi` and `use mpi_f08`.
#[test]
fn requests_of_intels_own_binding_are_converted() {
    let host = Host::Intel;
    let folder = scratch("own-binding");
    let handles = folder.join("libhandles.so");
    fs::copy(host.compile("bypass", &["-shared", "-fPIC", "-DHANDLES_ONLY"]), &handles).unwrap();
    let own = host.root().join("lib/libmpifort.so.12");
    let program = fortran(&folder, "ways", &[handles, own.clone()]);
    let (unmodified, _) = host.run(&program).text();
    assert_eq!(unmodified.trim(), "wrong 0");
    let (packed, unpacked) = moved(host, &program, &folder, &preload());
    assert!(packed >= 250 && unpacked >= 250, "{packed} {unpacked}");
    let both = format!("{}:{}", library().display(), refers(&folder, "mpi_wait_f08_").display());
    assert_eq!(moved(host, &program, &folder, &both), (0, 0));
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that the preload library sees types that a Fortran program commits and frees by `use
/// mpi_f08`. Debian builds these bindings of MPICH in such a way that they call the profiling names
/// of the C functions (`PMPI_Type_commit`), which the preload library does not interpose.
#[test]
fn types_of_mpi_f08_are_seen_committed_and_freed() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        let folder = scratch(&format!("f08-{host:?}"));
        let library = folder.join("libmpichfort.so.12");
        let soname = "-Wl,-soname,libmpichfort.so.12";
        fs::copy(host.compile("binding08", &["-shared", "-fPIC", soname]), &library).unwrap();
        let binding = [library.to_str().unwrap(), "-Wl,-rpath", folder.to_str().unwrap()];
        let program = host.compile("binding08", &["-DPROGRAM", binding[0], binding[1], binding[2]]);
        let (packed, unpacked) = moved(host, &program, &folder, &preload());
        // The program makes 40 types and exchanges ten messages of each.
        let expected = if host == Host::OpenMpi { 0 } else { 400 };
        assert_eq!((packed, unpacked), (expected, expected), "{host:?}");
        fs::remove_dir_all(folder).unwrap();
    }
}
