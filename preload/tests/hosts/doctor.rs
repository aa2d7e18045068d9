//! Tests of `ddtc doctor` in an environment without problems and in environments that have a
//! problem. The command must name each problem together with what the user should do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup::{Host, command_line, lossy, scratch, sessions};

/// Returns a command for `ddtc doctor` whose environment does not depend on that of the test: PATH
/// is `path`, no variable of ddtc is set, and the configuration folder belongs to the test.
pub(crate) fn doctor(path: &str) -> Command {
    let mut command = Command::new(command_line());
    for name in std::env::vars().map(|(name, _)| name).filter(|n| n.starts_with("DDTC_")) {
        command.env_remove(name);
    }
    command.arg("doctor");
    command.env("PATH", path).env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
    command.env("XDG_CONFIG_HOME", scratch("doctor-config")).env("TMPDIR", sessions());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    command.env("OMPI_MCA_btl", "self,sm").env("I_MPI_FABRICS", "shm");
    command
}

/// Runs `ddtc doctor`, and returns whether it found no problem, and its output.
pub(crate) fn said(command: &mut Command) -> (bool, String) {
    let out = command.output().unwrap();
    let text = lossy(&out.stdout) + &lossy(&out.stderr);
    assert!(!text.contains("panicked"), "{text}");
    assert_eq!(out.status.success(), text.contains("\nproblems         none\n"), "{text}");
    (out.status.success(), text)
}

/// Asserts that `ddtc doctor` finds a problem, and that its output has both `what`, which is a part
/// of the problem's description, and `remedy`, which is a part of the advice after it. Returns the
/// output.
pub(crate) fn finds(command: &mut Command, what: &str, remedy: &str) -> String {
    let (well, text) = said(command);
    assert!(!well, "{what}\n{text}");
    let problem = text.lines().find(|l| l.starts_with("problem ") && l.contains(what));
    let problem = problem.unwrap_or_else(|| panic!("no problem with '{what}' in\n{text}"));
    let mut after = text.lines().skip_while(|l| *l != problem).skip(1);
    let line = after.next().unwrap_or_default();
    assert!(line.starts_with("  to do ") && line.contains(remedy), "{remedy}\n{text}");
    text
}

pub(crate) fn bin(host: Host) -> String {
    // `ddtc doctor` and the launchers need the programs `env`, `kill` and `getconf`, which come
    // from the system's folders.
    format!("{}:/usr/bin:/bin", host.root().join("bin").display())
}

#[test]
fn where_all_is_well_messages_are_converted() {
    for host in [Host::Mpich, Host::Intel, Host::OpenMpi] {
        let mut command = doctor(&bin(host));
        if host == Host::Intel {
            // The programs of Intel's wheel find the libraries of the same wheel only if
            // `LD_LIBRARY_PATH` names their folder.
            command.env("LD_LIBRARY_PATH", host.root().join("lib"));
        }
        // By default, measured times decide which messages are converted. `ddtc doctor` prints the
        // times, and it must find no problem whatever they are.
        command.args(["--", "mpiexec", "-n", "2"]);
        let (well, text) = said(&mut command);
        assert!(well, "{host:?}\n{text}");
        assert!(text.contains("timed: messages from "), "{host:?}\n{text}");
        let (well, text) = said(command.env("DDTC_POLICY", "all"));
        assert!(well, "{host:?}\n{text}");
        for line in [
            "ddtc ",
            "machine ",
            "CPU level ",
            "C library ",
            "self-test ",
            "preload library ",
            "policy ",
            "messages ",
        ] {
            assert!(text.lines().any(|l| l.starts_with(line)), "{host:?}: {line}\n{text}");
        }
        assert!(text.contains("right bytes of") && text.contains("compiled in"), "{text}");
        assert!(text.contains("the preload library loads together with it"), "{text}");
        let messages = text.lines().find(|l| l.starts_with("messages ")).unwrap();
        assert!(messages.contains("(blocks-short)"), "{messages}");
        // In the test messages of `ddtc doctor`, each rank packs and unpacks once in every round
        // trip, except in the first ones, before the type is compiled. The last two numbers in the
        // line about messages are those of packs and of unpacks.
        let numbers: Vec<u64> = messages.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
        let [.., packed, unpacked] = numbers[..] else { panic!("{messages}") };
        assert!((800..=900).contains(&packed) && (800..=900).contains(&unpacked), "{host:?} {messages}");
    }
}

#[test]
fn why_messages_are_not_converted_is_said() {
    let launch = ["--", "mpiexec", "-n", "2"];
    let path = bin(Host::Mpich);
    finds(
        doctor(&path).env("DDTC_MODE", "off").args(launch),
        "not converted: DDTC_MODE=off",
        "unset DDTC_MODE",
    );
    let text = finds(
        doctor(&path).env("DDTC_POLICY", "none").args(launch),
        "the policy in force leaves",
        "ddtc tune",
    );
    assert!(text.contains("policy           DDTC_POLICY"), "{text}");
    let folder = scratch("doctor-policy");
    fs::create_dir_all(folder.join("ddtc")).unwrap();
    fs::write(folder.join("ddtc/policy"), "library mpich-5.0.2\nblocks-short sometimes\n").unwrap();
    finds(doctor(&path).env("XDG_CONFIG_HOME", &folder), "the shipped policy is used", "ddtc tune");
    fs::write(folder.join("ddtc/policy"), "library mpich-5.0.2\nblocks-short 64-\n").unwrap();
    let (well, text) = said(doctor(&path).env("XDG_CONFIG_HOME", &folder));
    assert!(well && text.contains(&format!("{}/ddtc/policy", folder.display())), "{text}");
    assert!(text.contains("messages         not tried"), "{text}");
    finds(doctor(&path).args(["--", "mpiexec", "-n", "1"]), "one rank was started", "mpiexec -n 2");
    let loops = folder.join("endless");
    script(&loops, "sleep 3600");
    let endless = loops.to_str().unwrap();
    let mpi = Host::Mpich.root().join("lib/libmpi.so.12");
    let mut waits = doctor(&path);
    waits.arg("--mpi").arg(mpi).args(["--seconds", "2", "--", endless]);
    finds(&mut waits, "no end after 2 s", "--seconds");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn odd_values_are_named() {
    let path = bin(Host::Mpich);
    finds(doctor(&path).env("DDTC_MODE", "fast"), "DDTC_MODE=fast", "unset DDTC_MODE");
    finds(doctor(&path).env("DDTC_REPROT", "-"), "DDTC_REPROT: no such variable of ddtc", "DDTC_REPORT");
    finds(doctor(&path).env("LD_PRELOAD", "/no/such.so"), "/no/such.so, which does not exist", "LD_PRELOAD");
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn cc(arguments: &[&str], source: &str, out: &Path) {
    let file = out.with_extension("source.c");
    fs::write(&file, source).unwrap();
    let out = Command::new("cc").args(arguments).arg("-o").arg(out).arg(&file).output().expect("cc");
    assert!(out.status.success(), "{}", lossy(&out.stderr));
}

/// Makes an installation folder of an MPI library, in which `bin/mpiexec` is a launcher that prints
/// `launcher`. Each pair in `libraries` has a file name and a version text, and the library of that
/// name in `lib` returns the text as its version. Returns the folder and a value of PATH that
/// contains its launcher.
fn prefix(name: &str, launcher: &str, libraries: &[(&str, &str)]) -> (PathBuf, String) {
    let root = scratch(name);
    for folder in ["bin", "lib"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    script(&root.join("bin/mpiexec"), &format!("echo '{launcher}'"));
    for (file, version) in libraries {
        let source = format!(
            "#include <string.h>\nint MPI_Get_library_version(char *s, int *n) {{ strcpy(s, \"{version}\"); *n = strlen(s); return 0; }}\n"
        );
        cc(&["-shared", "-fPIC"], &source, &root.join("lib").join(file));
    }
    let path = format!("{}:/usr/bin:/bin", root.join("bin").display());
    (root, path)
}

#[test]
fn a_missing_mpi_is_said() {
    let nowhere = "/usr/bin/no/such/folder";
    finds(
        doctor(nowhere).args(["--", "mpiexec", "-n", "2"]),
        "mpiexec: no such program in PATH",
        "install an MPI",
    );
    finds(
        doctor(nowhere).args(["--mpi", "/no/such/libmpi.so.12"]),
        "/no/such/libmpi.so.12",
        "load its module",
    );
    finds(
        doctor(nowhere).args(["--library", "/no/such.so"]),
        "no preload library at /no/such.so",
        "install.sh",
    );
}

#[test]
fn mixed_mpis_are_said() {
    let (mpich, open) = ("MPICH Version: 5.0.2", "Open MPI v5.0.11");
    let (root, path) = prefix(
        "doctor-mixed",
        "mpiexec (Open MPI) 5.0.11",
        &[("libmpi.so.12", mpich), ("libmpi.so.40", open)],
    );
    let text = finds(&mut doctor(&path), "two MPIs are mixed here", "one environment");
    // The folder has an MPICH and an Open MPI. The launcher is that of Open MPI, so `ddtc doctor`
    // must take Open MPI.
    assert!(text.contains("policy           shipped") && text.contains("openmpi-5.0.11"), "{text}");
    fs::remove_dir_all(root).unwrap();
    let (root, path) = prefix("doctor-foreign", "HYDRA build details:", &[("libmpi.so.40", open)]);
    let (well, text) = said(&mut doctor(&path));
    // The launcher prints what an MPICH launcher prints, and the folder has only Open MPI. If the
    // dynamic loader of this machine finds an MPICH elsewhere, that library matches the launcher,
    // and `ddtc doctor` names Open MPI as a second MPI library.
    let foreign =
        text.contains("the launcher belongs to MPICH") && text.contains("the launcher of the same MPI");
    let mixed =
        text.contains("in the loader's search path: MPICH") && text.contains("two MPIs are mixed here");
    assert!(!well && (foreign || mixed), "{text}");
    fs::remove_dir_all(root).unwrap();
    // In this environment the ranks do not find each other. The launcher starts two processes, and
    // the MPI library makes a world of one rank in each of them.
    let (root, path) = prefix("doctor-alone", "somebody's", &[]);
    script(&root.join("bin/mpiexec"), "shift 2; \"$@\" & \"$@\"; wait");
    let mpi = Host::Mpich.root().join("lib/libmpi.so.12");
    let mut alone = doctor(&path);
    alone.arg("--mpi").arg(mpi).args(["--", "mpiexec", "-n", "2"]);
    finds(&mut alone, "2 processes were started, each a world of its own", "another MPI than the library");
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn programs_that_it_cannot_go_under_are_said() {
    let folder = scratch("doctor-programs");
    let path = bin(Host::Mpich);
    let main = "int main(void) { return 0; }\n";
    let under = |name: &str| {
        let mut command = doctor(&path);
        command.arg("--program").arg(folder.join(name));
        command
    };
    cc(&[], main, &folder.join("plain"));
    let (well, text) = said(&mut under("plain"));
    assert!(well && text.contains("64 bit, needs no MPI library directly"), "{text}");
    assert!(!text.contains("stacks  "), "{text}");
    let threads = folder.join("libabt.so.1");
    cc(&["-shared", "-fPIC", "-Wl,-soname,libabt.so.1"], "int threads;\n", &threads);
    let linked = ["-Wl,--no-as-needed", threads.to_str().unwrap(), "-Wl,-rpath,$ORIGIN"];
    cc(&linked, main, &folder.join("threads"));
    let (well, text) = said(&mut under("threads"));
    assert!(well && text.contains("libabt.so.1 provides the user-level threads of Argobots"), "{text}");
    cc(&["-static"], main, &folder.join("static"));
    finds(&mut under("static"), "is linked statically", "shared library");
    cc(&["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"], main, &folder.join("musl"));
    finds(&mut under("musl"), "is linked with musl", "glibc");
    fs::copy(folder.join("plain"), folder.join("setuid")).unwrap();
    fs::set_permissions(folder.join("setuid"), fs::Permissions::from_mode(0o4755)).unwrap();
    finds(&mut under("setuid"), "setuid", "a copy without these bits");
    finds(&mut under("missing"), "missing: No such file", "--program");
    script(&folder.join("script"), "true");
    let (well, text) = said(&mut under("script"));
    assert!(well && text.contains("not an ELF file"), "{text}");
    // This file is a sound ELF file except for the machine in its header, which `ddtc doctor` does
    // not support.
    let plain = fs::read(folder.join("plain")).unwrap();
    let mut foreign = plain.clone();
    foreign[18] = 243; // EM_RISCV
    fs::write(folder.join("foreign"), &foreign).unwrap();
    finds(&mut under("foreign"), "is for Riscv64", "another machine");
    // The first half of an ELF file may get any verdict, but `ddtc doctor` must not panic.
    fs::write(folder.join("half"), &plain[..plain.len() / 2]).unwrap();
    said(&mut under("half"));
    fs::write(folder.join("32"), small()).unwrap();
    finds(&mut under("32"), "is a 32-bit file", "64-bit");
    fs::remove_dir_all(folder).unwrap();
}

/// Returns the smallest file that `ddtc doctor` takes for a 32-bit program: an ELF header without
/// anything after it.
fn small() -> Vec<u8> {
    let mut head = vec![0u8; 52];
    head[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    head[16] = 2; // ET_EXEC
    head[18] = 3; // EM_386
    head[20] = 1;
    head[40] = 52; // e_ehsize
    head
}

#[test]
fn root_is_told_what_open_mpi_asks_of_it() {
    // The launcher of this test is a script that prints what the launcher of Open MPI 5 prints to
    // the user root. The test therefore does not depend on the user who runs it.
    let folder = scratch("doctor-root");
    let words = "prterun has detected an attempt to run as root.\\n\\nRunning as root is *strongly* discouraged as any mistake \
                 (e.g., in\\ndefining TMPDIR) or bug can result in catastrophic damage to the OS\\nfile system, leaving your \
                 system in an unusable state.\\n\\nWe strongly suggest that you run prterun as a non-root user.\\n\\nYou can \
                 override this protection by adding the --allow-run-as-root\\noption to your command line.  However, we \
                 reiterate our strong advice\\nagainst doing so - please do so at your own risk.\\n---------";
    let text = format!(
        "[ \"$1\" = --version ] && {{ echo 'mpiexec (Open MPI) 5.0.11'; exit 0; }}\nprintf '{words}\\n' >&2; exit 1"
    );
    script(&folder.join("mpiexec"), &text);
    let mpi = Host::OpenMpi.root().join("lib/libmpi.so.40");
    let mut doctor = doctor(&folder.display().to_string());
    doctor.env_remove("OMPI_ALLOW_RUN_AS_ROOT").arg("--mpi").arg(mpi).args(["--", "mpiexec", "-n", "2"]);
    let (well, text) = said(&mut doctor);
    assert!(
        !well && text.contains("OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"),
        "{text}"
    );
    fs::remove_dir_all(folder).unwrap();
}
