//! Tests of the installation script packaging/install.sh: which files it installs, whether the
//! installed folder can be moved, whether it is removed completely, and what the script refuses.
//! Tests of the Debian package and of the Spack recipe follow.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::setup::{Host, built, lossy, report, scratch};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("workspace")
}

pub(crate) fn script() -> PathBuf {
    root().join("packaging/install.sh")
}

/// Returns a command for packaging/install.sh that installs the programs and libraries that cargo
/// has built for these tests.
fn install() -> Command {
    // `env --default-signal` resets the handling of signals. A program that runs in the background
    // may ignore SIGINT, and a shell cannot trap a signal that was ignored when the shell started.
    let mut command = Command::new("env");
    command.args(["--default-signal", "sh"]);
    command.arg(script()).arg("--built").arg(built()).env_remove("DESTDIR");
    command
}

pub(crate) fn done(command: &mut Command) -> String {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(out.status.success(), "{command:?}\n{}{}", lossy(&out.stdout), lossy(&out.stderr));
    lossy(&out.stdout)
}

/// Returns the files and links below the folder `root`, as paths relative to it.
fn files(root: &Path) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![root.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                found.insert(entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn what_is_installed_works_wherever_it_is_moved() {
    let folder = scratch("install");
    let prefix = folder.join("first");
    done(install().arg("--prefix").arg(&prefix));
    let installed = files(&prefix);
    let version = env!("CARGO_PKG_VERSION");
    let (short, _) = version.rsplit_once('.').unwrap();
    let shared = [format!("lib/libddtc.so.{version}"), format!("lib/libddtc.so.{short}")];
    for file in [
        "bin/ddtc",
        "include/ddtc.h",
        "include/ddtc_cuda.h",
        "include/ddtc/mpi.h",
        "lib/libddtc.so",
        "lib/libddtc_preload.so",
        "lib/pkgconfig/ddtc.pc",
        "share/bash-completion/completions/ddtc",
        "share/ddtc/ddtc_mpi.f90",
        "share/ddtc/manifest",
        "share/ddtc/policy",
        "share/ddtc/uninstall",
        "share/doc/ddtc/CHANGELOG.md",
        "share/doc/ddtc/GUIDE.md",
        "share/doc/ddtc/LICENSE-MIT",
        "share/doc/ddtc/THIRD-PARTY",
        "share/fish/vendor_completions.d/ddtc.fish",
        "share/man/man1/ddtc.1",
        "share/man/man1/ddtc-preload.1",
        "share/zsh/site-functions/_ddtc",
        "bin/.debug/ddtc.debug",
        "lib/.debug/libddtc_preload.so.debug",
    ]
    .into_iter()
    .chain(shared.iter().map(String::as_str))
    {
        assert!(installed.contains(file), "{file} is not in {installed:#?}");
    }
    // The replacement for yaksa is installed only if it is asked for.
    assert!(!installed.iter().any(|file| file.contains("yaksa")), "{installed:#?}");
    let other = folder.join("yaksa");
    done(install().arg("--prefix").arg(&other).args(["--only", "yaksa"]));
    let yaksa = files(&other);
    for file in ["lib/libyaksa.so.0", "lib/libyaksa.so", "libyaksa.so.0", "include/yaksa.h"] {
        assert!(yaksa.contains(&format!("lib/ddtc/yaksa/{file}")), "{file} is not in {yaksa:#?}");
    }
    assert!(!yaksa.contains("bin/ddtc") && !yaksa.contains("lib/libddtc.so"), "{yaksa:#?}");
    // The installed programs and libraries must be stripped and must have a link to the file with
    // their debug data.
    for file in ["bin/ddtc", "lib/libddtc_preload.so", shared[0].as_str()] {
        let sections = done(Command::new("readelf").args(["-S", "-W"]).arg(prefix.join(file)));
        assert!(sections.contains(".gnu_debuglink"), "{file}");
        assert!(!sections.contains(".symtab") && !sections.contains(".debug_info"), "{file}");
    }
    let page = fs::read_to_string(prefix.join("share/man/man1/ddtc-doctor.1")).unwrap();
    assert!(page.contains("mpiexec") && page.contains(".TH"), "{page}");
    // Bash must be able to read the installed completions for bash. The completions for zsh and
    // fish are not read here, since these tests need neither shell otherwise.
    let complete =
        "source \"$0\"; COMP_WORDS=(ddtc do); COMP_CWORD=1; _ddtc ddtc do ddtc; echo \"${COMPREPLY[@]}\"";
    let completions = prefix.join("share/bash-completion/completions/ddtc");
    assert_eq!(done(Command::new("bash").args(["-c", complete]).arg(completions)), "doctor\n");
    // No installed text file may contain the path of the installation, so that the folder can be
    // moved.
    for file in ["lib/pkgconfig/ddtc.pc", "share/ddtc/manifest", "share/ddtc/uninstall"] {
        let text = fs::read_to_string(prefix.join(file)).unwrap();
        assert!(!text.contains(folder.to_str().unwrap()), "{file}: {text}");
    }

    let moved = folder.join("second");
    fs::rename(&prefix, &moved).unwrap();
    let ddtc = moved.join("bin/ddtc");
    let shown = done(Command::new(&ddtc).args(["preload", "--dry-run", "--", "true"]));
    assert!(shown.contains("second/lib/libddtc_preload.so"), "{shown}");
    // The dynamic loader does not accept a path with a blank in LD_PRELOAD. If the installed folder
    // has such a path, `ddtc preload` must fail. It must not run the program without the preload
    // library.
    let blank = folder.join("third place");
    fs::rename(&moved, &blank).unwrap();
    let out = Command::new(blank.join("bin/ddtc")).args(["preload", "--", "true"]).output().unwrap();
    assert!(
        !out.status.success() && lossy(&out.stderr).contains("blanks and colons"),
        "{}",
        lossy(&out.stderr)
    );
    fs::rename(&blank, &moved).unwrap();
    // Run a job by `ddtc preload` of the moved installation, as the guide does.
    let file = folder.join("report.json");
    let mut job = Command::new(&ddtc);
    // `DDTC_POLICY=all` and `--mode commit` make the result of this job independent of time. By
    // default, measured times determine when a type is compiled and which calls are converted.
    job.env("DDTC_POLICY", "all");
    job.args(["preload", "--mode", "commit"])
        .arg("--report")
        .arg(&file)
        .arg("--")
        .arg(Host::Mpich.root().join("bin/mpiexec"));
    job.args(["-n", "2"])
        .arg(&ddtc)
        .args(["doctor", "--rank"])
        .arg(Host::Mpich.root().join("lib/libmpi.so.12"));
    done(&mut job);
    let counts = report(&fs::read_to_string(&file).unwrap());
    assert!(counts["messages_packed"] > 0 && counts["fallbacks"] == 0, "{counts:?}");
    // Compile a C program against the installed header and library, and run it. The paths in the
    // pkg-config file are relative to that file, so that they stay right when the folder is moved.
    let source = folder.join("program.c");
    let code = "#include <ddtc.h>\nint main(void) { int v, s; return ddtc_version(&v, &s, &s); }\n";
    fs::write(&source, code).unwrap();
    let pc = fs::read_to_string(moved.join("lib/pkgconfig/ddtc.pc")).unwrap();
    assert!(pc.contains("prefix=${pcfiledir}/../..\n"), "{pc}");
    let program = folder.join("program");
    done(
        Command::new("cc")
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .arg("-I")
            .arg(moved.join("include"))
            .arg("-L")
            .arg(moved.join("lib"))
            .arg("-lddtc")
            .arg(format!("-Wl,-rpath,{}", moved.join("lib").display())),
    );
    done(&mut Command::new(&program));

    // Install once more over the first installation, with other options, and then uninstall. A file
    // of the user in the prefix stays, and so does the folder that contains it.
    done(install().arg("--prefix").arg(&moved).args(["--no-debug", "--static"]));
    let again = files(&moved);
    assert!(again.contains("lib/libddtc.a") && !again.contains("bin/.debug/ddtc.debug"), "{again:#?}");
    fs::write(moved.join("lib/mine"), "mine").unwrap();
    done(Command::new("sh").arg(script()).args(["uninstall", "--prefix"]).arg(&moved));
    assert_eq!(files(&moved), BTreeSet::from(["lib/mine".to_owned()]));
    assert_eq!(fs::read_dir(&moved).unwrap().count(), 1, "folders that it made are gone");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn folders_that_it_made_go_with_it() {
    let folder = scratch("made");
    let remove = |prefix: &Path| done(Command::new("sh").arg(prefix.join("share/ddtc/uninstall")));
    let left = || fs::read_dir(&folder).unwrap().count();
    // The first installation makes the prefix and one folder above it, and the second installation
    // makes no folder. The uninstaller removes both folders.
    let prefix = folder.join("above/prefix");
    for _ in 0..2 {
        done(install().arg("--prefix").arg(&prefix).arg("--no-debug"));
    }
    remove(&prefix);
    assert_eq!(left(), 0);
    // If the prefix existed before the installation, the uninstaller leaves it.
    fs::create_dir_all(&prefix).unwrap();
    done(install().arg("--prefix").arg(&prefix).arg("--no-debug"));
    remove(&prefix);
    assert_eq!(fs::read_dir(&prefix).unwrap().count(), 0);
    fs::remove_dir(&prefix).unwrap();
    // If a prefix was moved, the folders above it belong to somebody else, whether they are empty
    // or not, and the uninstaller leaves them. It does not look at the place where the prefix was
    // before either.
    let (first, second) = (folder.join("first/prefix"), folder.join("second"));
    fs::create_dir_all(&second).unwrap();
    done(install().arg("--prefix").arg(&first).arg("--no-debug"));
    fs::rename(&first, second.join("moved")).unwrap();
    remove(&second.join("moved"));
    assert_eq!(fs::read_dir(&second).unwrap().count(), 0);
    assert!(first.parent().unwrap().is_dir());
    // If the prefix contains a file of somebody else, the uninstaller leaves the file and the
    // prefix.
    done(install().arg("--prefix").arg(&first).arg("--no-debug"));
    fs::write(first.join("mine"), "mine").unwrap();
    remove(&first);
    assert_eq!(files(&first), BTreeSet::from(["mine".to_owned()]));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn packagers_get_their_folder() {
    let folder = scratch("destdir");
    done(install().args(["--prefix", "/usr", "--destdir"]).arg(&folder));
    let installed = files(&folder);
    assert!(
        installed.contains("usr/bin/ddtc") && installed.iter().all(|f| f.starts_with("usr/")),
        "{installed:#?}"
    );
    let again = scratch("destdir-variable");
    done(install().args(["--prefix", "/usr"]).env("DESTDIR", &again));
    assert_eq!(files(&again), installed);
    done(Command::new("sh").arg(script()).args(["uninstall", "--prefix", "/usr", "--destdir"]).arg(&folder));
    assert_eq!(files(&folder), BTreeSet::new());
    for folder in [folder, again] {
        fs::remove_dir_all(folder).unwrap();
    }
}

pub(crate) fn refused(command: &mut Command, what: &str) {
    let out: Output = command.output().unwrap();
    let said = lossy(&out.stderr);
    assert!(out.status.code() == Some(2) && said.contains(what), "{what}: {}\n{said}", out.status);
}

#[test]
fn refusals_say_what_to_do() {
    let folder = scratch("refused");
    refused(&mut install(), "--prefix DIR is needed");
    refused(install().args(["--prefix"]), "--prefix needs a value");
    refused(install().args(["--prefx", "/x"]), "unknown argument --prefx");
    let help = done(Command::new("sh").arg(script()).arg("--help"));
    assert!(help.contains("--only PART") && help.contains("--destdir:"), "{help}");
    refused(install().args(["--prefix", "here", "--destdir", "/tmp"]), "must begin with /");
    refused(
        Command::new("sh").arg(script()).args(["uninstall", "--prefix"]).arg(&folder),
        "is --prefix right?",
    );
    // The script must refuse a prefix below /proc, where nobody can write, not even root.
    refused(install().args(["--prefix", "/proc/ddtc"]), "/proc");
    let file = folder.join("file");
    fs::write(&file, "").unwrap();
    refused(install().arg("--prefix").arg(file.join("prefix")), "is a file, not a folder");
    // The script must refuse a prefix in which `lib` is a link to a folder. Files would be
    // installed into the linked folder, where neither the manifest nor the uninstaller finds them.
    let linked = folder.join("linked");
    fs::create_dir_all(linked.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", linked.join("lib")).unwrap();
    refused(install().arg("--prefix").arg(&linked), "lib is a link or a file, and must be a folder");
    assert_eq!(files(&linked), BTreeSet::from(["lib".to_owned()]));
    // It must refuse such a prefix before it builds anything. Here cargo is a program that leaves a
    // file. A folder that the chosen parts do not need may be a link.
    let (cargo, ran) = (folder.join("cargo"), folder.join("ran"));
    fs::write(&cargo, format!("#!/bin/sh\necho >'{}'; exit 9\n", ran.display())).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["bin", "include", "lib", "share"] {
        let linked = folder.join(format!("linked-{name}"));
        fs::create_dir_all(linked.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", linked.join(name)).unwrap();
        let unbuilt = || {
            let mut command = Command::new("sh");
            command.arg(script()).arg("--prefix").arg(&linked).env_remove("DESTDIR").env("CARGO", &cargo);
            command
        };
        refused(&mut unbuilt(), &format!("{name} is a link or a file, and must be a folder"));
        assert!(!ran.exists(), "{name}");
        if name == "include" {
            assert!(!unbuilt().args(["--only", "cli"]).status().unwrap().success());
            assert!(fs::remove_file(&ran).is_ok(), "the command has no file in {name}");
        }
    }
    // If the prefix already has a file of somebody else under the name of a file that would be
    // installed, the script does not replace that file, and writes no other file.
    let theirs = folder.join("theirs");
    fs::create_dir_all(theirs.join("bin")).unwrap();
    fs::write(theirs.join("bin/ddtc"), "theirs").unwrap();
    refused(install().arg("--prefix").arg(&theirs), "bin/ddtc is there already and not of this script");
    assert_eq!(files(&theirs), BTreeSet::from(["bin/ddtc".to_owned()]));
    // The uninstaller must refuse a manifest that names a file outside of the prefix.
    let bad = folder.join("bad/share/ddtc");
    fs::create_dir_all(&bad).unwrap();
    fs::copy(script().parent().unwrap().join("uninstall"), bad.join("uninstall")).unwrap();
    fs::write(bad.join("manifest"), "../../file\n").unwrap();
    refused(Command::new("sh").arg(bad.join("uninstall")), "outside the prefix");
    assert!(file.exists());
    // The script must refuse to build the libraries with toolchains that cannot build them, and
    // without a toolchain.
    let build = || {
        let mut command = Command::new("sh");
        command.arg(script()).arg("--prefix").arg(folder.join("new")).env_remove("DESTDIR");
        command
    };
    for (host, what) in [
        ("x86_64-unknown-linux-musl", "needs glibc"),
        ("i686-unknown-linux-gnu", "64-bit"),
        ("x86_64-apple-darwin", "64-bit Linux with glibc"),
    ] {
        let rustc = folder.join("rustc");
        fs::write(&rustc, format!("#!/bin/sh\necho 'host: {host}'\n")).unwrap();
        fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755)).unwrap();
        refused(build().env("RUSTC", &rustc), what);
    }
    refused(build().env("CARGO", "/no/such/cargo"), "cargo is missing: install Rust");
    assert!(!folder.join("new").exists());
    fs::remove_dir_all(folder).unwrap();
}

/// Returns a command for packaging/install.sh in which a program of the system is replaced. The
/// first program `name` in PATH is a script in `folder` with the contents `text`.
fn install_with_replaced(folder: &Path, name: &str, text: &str) -> Command {
    let programs = folder.join("programs");
    let _ = fs::remove_dir_all(&programs);
    fs::create_dir_all(&programs).unwrap();
    fs::write(programs.join(name), text).unwrap();
    fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = install();
    command.env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()));
    command
}

/// Checks that packaging/install.sh prints one line and writes nothing if this system cannot run
/// what would be installed, or if the files were built for another system.
#[test]
fn what_would_not_run_is_not_installed() {
    let folder = scratch("unsuited");
    let prefix = folder.join("prefix");
    let one_line = |command: &mut Command, what: &str| {
        let out = command.arg("--prefix").arg(&prefix).output().unwrap();
        let said = lossy(&out.stderr);
        assert!(out.status.code() == Some(2) && said.contains(what), "{what}: {}\n{said}", out.status);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!prefix.exists(), "{what}");
    };
    let getconf =
        |bits: &str, glibc: &str| format!("#!/bin/sh\n[ $1 = LONG_BIT ] && echo {bits} || {glibc}\n");
    one_line(
        &mut install_with_replaced(&folder, "getconf", &getconf("32", "echo glibc 2.36")),
        "programs of 32 bits",
    );
    one_line(&mut install_with_replaced(&folder, "getconf", &getconf("64", "exit 1")), "no glibc (musl?)");
    one_line(
        &mut install_with_replaced(&folder, "getconf", &getconf("64", "echo glibc 2.17")),
        "this system has 2.17",
    );
    // What is built by --portable would not run here, so it is not even built.
    one_line(
        install_with_replaced(&folder, "getconf", &getconf("64", "echo glibc 2.17"))
            .args(["--portable"])
            .env("INSTALL_BUILT", "")
            .env("CARGO", "true"),
        "this system has glibc 2.17, and what --portable builds",
    );
    one_line(
        &mut install_with_replaced(&folder, "ldd", "#!/bin/sh\necho 'musl libc' >&2; exit 1\n"),
        "no glibc (musl?)",
    );
    one_line(
        &mut install_with_replaced(&folder, "uname", "#!/bin/sh\necho s390x\n"),
        "this machine is s390x",
    );
    // Pretend that the only version name that the library needs is the one for relative
    // relocations, `GLIBC_ABI_DT_RELR`. These relocations need glibc 2.36, and this system has
    // glibc 2.35.
    let relr = "#!/bin/sh\n/usr/bin/readelf \"$@\" | sed 's/Name: GLIBC_2[0-9.]*/Name: GLIBC_ABI_DT_RELR/'\n";
    let mut old = install_with_replaced(&folder, "getconf", &getconf("64", "echo glibc 2.35"));
    fs::write(folder.join("programs/readelf"), relr).unwrap();
    fs::set_permissions(folder.join("programs/readelf"), fs::Permissions::from_mode(0o755)).unwrap();
    one_line(&mut old, "needs glibc 2.36, and this system has 2.35");
    // Try the preload library with one changed byte in its ELF header. The byte is first the
    // machine and then the width of addresses.
    let name = "libddtc_preload.so";
    let library = fs::read(built().join(name)).unwrap();
    let other = folder.join("built");
    fs::create_dir_all(&other).unwrap();
    let only = |bytes: &[u8], what: &str| {
        fs::write(other.join(name), bytes).unwrap();
        let mut command = Command::new("sh");
        command.arg(script()).args(["--only", "preload", "--built"]).arg(&other).env_remove("DESTDIR");
        one_line(&mut command, what);
    };
    let changed = |at: usize, byte: u8| {
        let mut bytes = library.clone();
        bytes[at] = byte;
        bytes
    };
    only(&changed(18, 22), "for another machine than this one");
    only(&changed(4, 1), "is of 32 bits");
    only(b"#!/bin/sh\n", "no program or library");
    let musl = library.windows(8).position(|w| w == b"ld-linux").map(|at| {
        let mut bytes = library.clone();
        bytes[at..at + 8].copy_from_slice(b"ld-musl-");
        bytes
    });
    only(&musl.expect("the library needs the loader"), "was built for musl");
    // The library without a changed byte must be installed.
    fs::write(other.join(name), &library).unwrap();
    let mut whole = Command::new("sh");
    whole.arg(script()).args(["--only", "preload", "--built"]).arg(&other).env_remove("DESTDIR");
    let said = done(whole.arg("--prefix").arg(&prefix));
    assert!(!said.contains("PATH") && prefix.join("lib").join(name).is_file(), "{said}");
    fs::remove_dir_all(folder).unwrap();
}

/// Checks a system that does not print its version of glibc. The script must not refuse it as a
/// system without glibc.
#[test]
fn an_unknown_glibc_is_no_musl() {
    let folder = scratch("unknown");
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for entry in std::env::split_paths(&path).filter_map(|f| fs::read_dir(f).ok()).flatten() {
        let entry = entry.unwrap();
        if entry.file_name() != "getconf" {
            // For programs of one name in several folders of PATH, the first folder wins. A link
            // that is there already therefore stays, and the error is ignored.
            let _ = std::os::unix::fs::symlink(entry.path(), programs.join(entry.file_name()));
        }
    }
    let prefix = folder.join("prefix");
    let mut command = install();
    command.env("PATH", &programs).args(["--only", "preload", "--no-debug", "--prefix"]).arg(&prefix);
    done(&mut command);
    assert!(prefix.join("lib/libddtc_preload.so").is_file());
    fs::remove_dir_all(folder).unwrap();
}

/// Checks that with `--destdir` the files may be for another system than this one, but that all of
/// them must be for one machine.
#[test]
fn packagers_may_have_another_system() {
    let folder = scratch("other-system");
    let target = folder.join("root");
    let here = |command: &mut Command| {
        command.args(["--no-debug", "--prefix", "/usr", "--destdir"]).arg(&target);
    };
    let old = "#!/bin/sh\n[ $1 = LONG_BIT ] && echo 32 || echo glibc 2.17\n";
    for (name, text) in [("getconf", old), ("uname", "#!/bin/sh\necho s390x\n")] {
        let mut command = install_with_replaced(&folder, name, text);
        here(command.args(["--only", "preload"]));
        done(&mut command);
        assert!(target.join("usr/lib/libddtc_preload.so").is_file(), "{name}");
        fs::remove_dir_all(&target).unwrap();
    }
    // Byte 18 of an ELF file is the low byte of its machine. One of the two libraries in this
    // folder gets another machine.
    let mixed = folder.join("mixed");
    fs::create_dir_all(&mixed).unwrap();
    fs::copy(built().join("libddtc_preload.so"), mixed.join("libddtc_preload.so")).unwrap();
    let mut other = fs::read(built().join("libddtc.so")).unwrap();
    other[18] = 22;
    fs::write(mixed.join("libddtc.so"), other).unwrap();
    for (parts, what) in [
        ("preload,capi", "and the files before it are for"),
        ("capi", "ddtc is for x86-64, aarch64 and riscv64"),
    ] {
        let mut command = Command::new("sh");
        command.arg(script()).args(["--only", parts, "--built"]).arg(&mixed).env_remove("DESTDIR");
        here(&mut command);
        refused(&mut command, what);
        assert!(!target.exists(), "{parts}");
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Returns the contents of the files below the folder `root`, by their paths relative to it.
fn contents(root: &Path) -> BTreeMap<String, Vec<u8>> {
    files(root).into_iter().map(|file| (file.clone(), fs::read(root.join(file)).unwrap())).collect()
}

/// Checks installations that fail or are interrupted. If an installation ends while it still copies
/// its files to a temporary folder, nothing is changed in the prefix. If it fails while it moves
/// the files into place, it leaves a manifest of every file that may be there.
#[test]
fn nothing_is_half_installed() {
    let folder = scratch("half");
    // Returns a script in place of `cp`. It copies a part of the files that are to be installed,
    // and then executes the shell command `end`.
    let cp = |end: &str| {
        format!(
            "#!/bin/sh\ncase \"$*\" in\n    *.ddtc-*) /bin/cp -R \"$3/lib\" \"$4\"; {end} ;;\nesac\nexec /bin/cp \"$@\"\n"
        )
    };
    let full = cp("exit 1");
    let prefix = folder.join("above/prefix");
    let at = |command: &mut Command| {
        command.arg("--no-debug").arg("--prefix").arg(&prefix);
    };
    let fails = |name: &str, text: &str, what: &str| {
        let mut command = install_with_replaced(&folder, name, text);
        at(&mut command);
        refused(&mut command, what);
    };
    fails("cp", &full, "and nothing was changed");
    assert!(!folder.join("above").exists());
    fs::create_dir_all(prefix.join("lib")).unwrap();
    fs::write(prefix.join("lib/mine"), "mine").unwrap();
    fails("cp", &full, "and nothing was changed");
    assert_eq!(files(&prefix), BTreeSet::from(["lib/mine".to_owned()]));
    assert_eq!(fs::read_dir(&prefix).unwrap().count(), 1, "folders that it made are gone");

    // Make an installation of an older version, with a file that this version does not have, and
    // install over it.
    let mut whole = install();
    at(&mut whole);
    done(&mut whole);
    let manifest = prefix.join("share/ddtc/manifest");
    let newest = contents(&prefix);
    fs::create_dir(prefix.join("lib/old")).unwrap();
    fs::write(prefix.join("lib/old/obsolete"), "obsolete").unwrap();
    fs::write(prefix.join("bin/ddtc"), "older").unwrap();
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("bin/ddtc\n", "bin/ddtc\nlib/old/obsolete\n", 1) + "lib/old/\n")
        .unwrap();
    let older = contents(&prefix);
    fails("cp", &full, "and nothing was changed");
    assert!(contents(&prefix) == older, "{:#?}", files(&prefix));
    for (signal, status) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        let mut command = install_with_replaced(&folder, "cp", &cp(&format!("kill -{signal} $PPID; exit 0")));
        at(&mut command);
        assert_eq!(command.output().unwrap().status.code(), Some(status), "{signal}");
        assert!(contents(&prefix) == older, "{signal}: {:#?}", files(&prefix));
    }
    // In this installation one file cannot be moved into place. Afterwards the files that were
    // moved before it are new, and the obsolete file of the older version is still there and in the
    // manifest.
    let mv = "#!/bin/sh\ncase \"$*\" in */include/ddtc.h) exit 1 ;; esac\nexec /bin/mv \"$@\"\n";
    fails("mv", mv, "install once more");
    let between = contents(&prefix);
    assert!(between["bin/ddtc"] == newest["bin/ddtc"] && between.contains_key("lib/old/obsolete"));
    let listed = fs::read_to_string(&manifest).unwrap();
    for file in between.keys().filter(|file| *file != "lib/mine") {
        assert!(listed.lines().any(|line| line == file), "{file} is not in {listed}");
    }
    // Send a signal to the script during each move. The signals do not interrupt the moves, and
    // this installation completes the one that failed before.
    let mut command =
        install_with_replaced(&folder, "mv", "#!/bin/sh\nkill -TERM $PPID\nexec /bin/mv \"$@\"\n");
    at(&mut command);
    done(&mut command);
    assert!(contents(&prefix) == newest, "{:#?}", files(&prefix));
    assert!(!prefix.join("lib/old").exists());
    // The uninstaller can also remove an installation that failed while it moved files into place.
    done(Command::new("sh").arg(prefix.join("share/ddtc/uninstall")));
    fails("mv", mv, "install once more");
    done(Command::new("sh").arg(prefix.join("share/ddtc/uninstall")));
    assert_eq!(files(&prefix), BTreeSet::from(["lib/mine".to_owned()]));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_debian_package_has_the_same_files() {
    let above = scratch("deb");
    let folder = above.join("with a blank");
    // The names of the folders contain blanks, and the script gets both `--profile` and `--built`.
    let link = above.join("what is built");
    std::os::unix::fs::symlink(built(), &link).unwrap();
    let mut build = Command::new("sh");
    build
        .arg(script().parent().unwrap().join("deb.sh"))
        .arg("--out")
        .arg(&folder)
        .args(["--profile", "no-such-profile", "--built"])
        .arg(&link);
    done(build.env_remove("DESTDIR"));
    let version = env!("CARGO_PKG_VERSION");
    let mut packages = files(&folder).into_iter();
    let package = folder.join(packages.next().unwrap());
    assert!(package.to_str().unwrap().contains(&format!("ddtc_{version}-1_")), "{package:?}");
    let control = done(Command::new("dpkg-deb").arg("--info").arg(&package));
    assert!(
        control.contains("Depends: libc6 (>= 2.") && control.contains(&format!("Version: {version}-1")),
        "{control}"
    );
    let root = above.join("root");
    done(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    let unpacked = files(&root);
    for file in [
        "usr/bin/ddtc",
        "usr/lib/libddtc_preload.so",
        "usr/share/man/man1/ddtc.1.gz",
        "usr/share/doc/ddtc/copyright",
        "usr/lib/libddtc.a",
        "usr/lib/ddtc/yaksa/lib/libyaksa.so.0",
    ] {
        assert!(unpacked.contains(file), "{file} is not in {unpacked:#?}");
    }
    let shown = done(Command::new(root.join("usr/bin/ddtc")).args(["preload", "--dry-run", "--", "true"]));
    assert!(shown.contains("/usr/lib/libddtc_preload.so"), "{shown}");
    fs::remove_dir_all(above).unwrap();
}

/// Checks the Spack recipe. No package registry has Spack, so packaging/spack/run.py executes the
/// recipe in place of Spack and prints what the recipe declares. The test checks this text, the
/// files that the recipe's `install` makes, and the recipe itself.
#[test]
fn the_spack_recipe_says_what_is_so() {
    let folder = script().parent().unwrap().join("spack");
    let prefix = scratch("spack").join("prefix");
    let mut run = Command::new("python3");
    run.arg(folder.join("run.py"))
        .arg(&prefix)
        .args(["+static", "+yaksa"])
        .env("INSTALL_BUILT", built())
        .env_remove("DESTDIR");
    let said = done(&mut run);
    assert!(said.lines().any(|l| l == format!("version {}", env!("CARGO_PKG_VERSION"))), "{said}");
    assert!(said.lines().any(|l| l == format!("prepend_path PATH {}/bin", prefix.display())), "{said}");
    let installed = files(&prefix);
    for file in ["bin/ddtc", "lib/libddtc.a", "lib/ddtc/yaksa/lib/libyaksa.so"] {
        assert!(installed.contains(file), "{file} is not in {installed:#?}");
    }
    assert!(!installed.iter().any(|f| f.ends_with(".debug")), "{installed:#?}");
    fs::remove_dir_all(prefix.parent().unwrap()).unwrap();
    let recipe = folder.join("package.py");
    let text = fs::read_to_string(recipe).unwrap();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let rust = manifest.lines().find_map(|l| l.strip_prefix("rust-version = \"")?.strip_suffix('"')).unwrap();
    assert!(text.contains(&format!("depends_on(\"rust@{rust}:\"")), "Rust {rust}");
    // The options that the recipe passes to install.sh must be options that install.sh has.
    let options = text.split('"').filter(|word| word.starts_with("--"));
    let known = fs::read_to_string(script()).unwrap();
    assert!(
        options
            .map(|o| assert!(known.contains(&format!("{o} ")) || known.contains(&format!("{o})")), "{o}"))
            .count()
            >= 3
    );
}
