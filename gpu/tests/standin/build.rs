//! Builds the stand-in for NVIDIA's driver library, a library that replaces `libcuda.so.1` in
//! tests. It has no dependencies, so rustc compiles it without cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the stand-in for NVIDIA's driver library to the file `libcuda.so.1` in `folder`, and
/// returns the path of this file. Creates `folder` if it does not exist.
pub(crate) fn standin(folder: &Path) -> PathBuf {
    std::fs::create_dir_all(folder).expect("the folder of the stand-in");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/tests/standin/lib.rs");
    let file = folder.join("libcuda.so.1");
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition", "2024", "--crate-name", "cuda", "--crate-type", "cdylib"]);
    compiler.args(["-O", "-C", "debug-assertions", "--deny", "warnings", "-o"]).arg(&file).arg(source);
    let output = compiler.output().unwrap_or_else(|e| panic!("{compiler:?}: {e}"));
    assert!(output.status.success(), "{compiler:?}: {}", String::from_utf8_lossy(&output.stderr));
    file
}
