//! Builds the stand-in for NVIDIA's driver library. The stand-in has no dependencies, so rustc
//! compiles it without cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the stand-in to the file `libcuda.so.1` in the folder `folder`, which is created if it
/// does not exist. Returns the path of the file.
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
