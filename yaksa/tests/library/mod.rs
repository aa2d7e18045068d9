//! Installation of libyaksa.so.0 into a temporary folder, for the tests that load it or link with
//! it.

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

/// Returns the folder that contains libyaksa.so.0. The first call in a test process builds and
/// installs the library, because cargo does not build a cdylib for the tests of the same package.
pub(crate) fn installed() -> &'static Path {
    static LIB: OnceLock<PathBuf> = OnceLock::new();
    LIB.get_or_init(|| {
        // Tests run from `<target>/<profile>/deps`. The library is built with the same profile in
        // the same target folder, because the crates on which it depends are already compiled
        // there.
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
