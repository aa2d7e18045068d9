//! Builds the libraries and the command that the tests of the preload library need. The tests call
//! cargo for this, because cargo does not build the shared libraries of a package for that
//! package's own tests.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages that tests may build, each with further arguments for cargo. The arguments enable
/// the same features of each crate as a build of the tests does, so that no crate is compiled a
/// second time with other features. tests/builds.rs checks this.
pub(crate) const BUILDS: [(&str, &[&str]); 4] = [
    ("ddtc-cli", &["--features", "ddtc/default,ddtc/foreign"]),
    ("ddtc-capi", &[]),
    ("ddtc-preload", &[]),
    ("ddtc-yaksa", &[]),
];

/// Builds the package `package`, which must be in [`BUILDS`], in the profile and the target folder
/// of this test. Returns the folder that contains the built files.
#[allow(dead_code, reason = "some ask for the list alone")]
pub(crate) fn build(package: &str) -> PathBuf {
    // Cargo has put the executable of this test into `target/PROFILE/deps`, so its grandparent is
    // the folder of the profile.
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
