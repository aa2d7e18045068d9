//! Installed library for the tests of this member.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns a folder for the calling test, inside the temporary folder that cargo made. Creates it
/// if it does not exist.
pub(crate) fn scratch() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("yaksa").join(env!("CARGO_CRATE_NAME"));
    std::fs::create_dir_all(&folder).expect("a folder for this test");
    folder
}

/// Returns the folder with libyaksa.so.0. The library is installed once in each test process,
/// because cargo builds no cdylib for the tests of its own package.
pub(crate) fn installed() -> &'static Path {
    static LIB: OnceLock<PathBuf> = OnceLock::new();
    LIB.get_or_init(|| {
        // Tests run from `<target>/<profile>/deps`. The library is built with the same profile and
        // target folder, in which the other crates are compiled already.
        let exe = std::env::current_exe().expect("path of this test");
        let libs = exe.parent().and_then(Path::parent).expect("profile directory");
        let profile = match libs.file_name().and_then(|n| n.to_str()).expect("profile") {
            "debug" => "dev",
            other => other,
        };
        let target = libs.parent().expect("target directory");
        let prefix = scratch().join("prefix");
        let mut command = Command::new("sh");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../packaging/install.sh")).args([
            "--only",
            "yaksa",
            "--no-debug",
        ]);
        command.args(["--profile", profile, "--prefix"]).arg(&prefix);
        command
            .env("CARGO", env!("CARGO"))
            .env("CARGO_TARGET_DIR", target)
            .env_remove("DESTDIR")
            .env_remove("INSTALL_BUILT");
        let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        prefix.join("lib/ddtc/yaksa/lib")
    })
}
