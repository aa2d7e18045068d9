//! Test of the commands in docs/GUIDE.md. They run unchanged and one after another in one home
//! folder, from the installation of ddtc to its removal.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::setup::{Host, built, lossy, scratch};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("workspace").to_owned()
}

/// Returns the commands in the fenced blocks of docs/GUIDE.md that are marked `sh`, in their order.
fn commands() -> Vec<String> {
    let guide = fs::read_to_string(root().join("docs/GUIDE.md")).expect("GUIDE.md");
    let blocks = guide.split("```sh\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0));
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

const PYTHON: &str = "\
from mpi4py import MPI
comm = MPI.COMM_WORLD
column = MPI.DOUBLE.Create_vector(4096, 1, 4).Commit()
data = bytearray(8 * 4 * 4096)
if comm.rank == 0:
    data[:] = bytes(range(256)) * (len(data) // 256)
    comm.Send([data, 1, column], 1)
else:
    comm.Recv([data, 1, column], 0)
    assert data[32:40] == bytes(range(32, 40)) and data[40:64] == bytes(24)
";

#[test]
fn its_commands_run() {
    let folder = scratch("guide");
    let (home, work) = (folder.join("home"), folder.join("work"));
    fs::create_dir_all(&home).unwrap();
    fs::create_dir_all(work.join("packaging")).unwrap();
    let mpi = Host::Mpich.root();
    // Make the things that a reader of the guide has before the first command: the sources of ddtc,
    // an MPI program and a Python script.
    program(
        &work.join("packaging/install.sh"),
        &format!("#!/bin/sh\nexec sh '{}' \"$@\"\n", root().join("packaging/install.sh").display()),
    );
    let rank = format!("#!/bin/sh\nexec ddtc doctor --rank '{}'\n", mpi.join("lib/libmpi.so.12").display());
    program(&work.join("app"), &rank);
    fs::write(work.join("app.py"), PYTHON).unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", home.join(".local/bin").display(), mpi.join("bin").display());
    let mut ran = 0;
    for command in commands() {
        // The command `pip install` is run by preload/tests/hosts/wheel.rs instead, in an
        // environment without Rust.
        if command.starts_with("pip install ") {
            continue;
        }
        let mut shell = Command::new("sh");
        for name in std::env::vars().map(|(name, _)| name).filter(|n| n.starts_with("DDTC_")) {
            shell.env_remove(name);
        }
        shell
            .args(["-c", &command])
            .current_dir(&work)
            .env("PATH", &path)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("DESTDIR");
        // The installation script of the guide installs the files that cargo has built for these
        // tests. Another script, packaging/released.sh, installs release builds and checks them.
        shell.env("HOME", &home).env("INSTALL_BUILT", built());
        let out = shell.output().unwrap_or_else(|e| panic!("{command}: {e}"));
        let (text, errors) = (lossy(&out.stdout), lossy(&out.stderr));
        assert!(out.status.success(), "{command}: {}\n{text}\n{errors}", out.status);
        if command.contains("ddtc doctor") {
            assert!(text.ends_with("problems         none\n"), "{text}");
        }
        if command.contains("--report -") {
            assert!(
                errors.contains("\n4 ranks: ") && errors.contains("\nConverted  "),
                "{command}\n{errors}"
            );
            assert!(!errors.contains("\nFaults  "), "{command}\n{errors}");
        }
        ran += 1;
    }
    assert!(ran >= 14, "{ran} commands");
    // After all commands, the recorded types and the measured policy table must exist. The folder
    // into which ddtc was installed must be gone.
    let record = fs::read_to_string(work.join("types.0")).expect("the record of rank 0");
    assert!(record.contains("resized("), "{record}");
    assert!(home.join(".config/ddtc/policy").is_file());
    assert!(!home.join(".local").exists(), "uninstall leaves the prefix that the installer made");
    fs::remove_dir_all(folder).unwrap();
}
