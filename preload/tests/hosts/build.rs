//! Builds of the libraries and the command that tests need. Cargo does not build shared libraries
//! for the tests of their own packages.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages and further arguments for cargo. The features are those that the same crates have in
/// tests, so that no crate is compiled once more, as tests/builds.rs checks.
pub(crate) const BUILDS: [(&str, &[&str]); 4] = [
    ("ddtc-cli", &["--features", "ddtc/default,ddtc/foreign"]),
    ("ddtc-capi", &[]),
    ("ddtc-preload", &[]),
    ("ddtc-yaksa", &[]),
];

/// Builds a package in the profile and the target folder of this test, and returns the folder with
/// the built files.
#[allow(dead_code, reason = "some ask for the list alone")]
pub(crate) fn build(package: &str) -> PathBuf {
    // Executables of tests are in `target/PROFILE/deps`.
    let test = std::env::current_exe().expect("path of this test");
    let folder = test.parent().and_then(Path::parent).expect("profile directory").to_path_buf();
    let profile = match folder.file_name().and_then(|n| n.to_str()).expect("profile") {
        "debug" => "dev",
        other => other,
    };
    let (_, options) = BUILDS.iter().find(|(name, _)| *name == package).expect("a package of the list");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", package, "--profile", profile]).args(*options);
    cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("CARGO_TARGET_DIR", folder.parent().expect("target directory"));
    let output = cargo.output().unwrap_or_else(|e| panic!("{cargo:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{cargo:?}: the package does not build\n{said}");
    folder
}
