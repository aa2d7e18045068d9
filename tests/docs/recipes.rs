//! Tests of the patches of docs/EXTENDING.md, which add a family of micro-kernels and a kind. These
//! tests are a part of e2e, because each of them compiles the library in a patched copy of the
//! sources.

#[allow(dead_code, reason = "the documents' tests use the rest")]
mod text;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use text::root;

/// Copies a file, or a folder with everything that it contains.
fn copy(from: &Path, to: &Path) {
    if !from.is_dir() {
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(from, to).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
        return;
    }
    for entry in std::fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name();
        copy(&from.join(&name), &to.join(&name));
    }
}

/// Makes a new copy of the files from which the packages of the workspace are built, and returns
/// its folder.
fn copied(name: &str) -> PathBuf {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extending").join(name);
    let _ = std::fs::remove_dir_all(&to);
    let parts = ["Cargo.toml", "Cargo.lock", "README.md", "src", "corpus", "benches/layouts.rs", "tests"];
    for part in parts
        .iter()
        .chain(&["bench", "capi", "cli", "e2e", "gpu", "hosts", "hunt", "preload", "python", "yaksa"])
    {
        copy(&root().join(part), &to.join(part));
    }
    to
}

/// Runs a program, which must succeed and write nothing to standard error, and returns its standard
/// output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Applies the patch docs/extending/`name`.patch to a copy of the current tree, compiles the
/// library in this copy, and returns the files that the patch changes.
fn patched(name: &str) -> BTreeSet<String> {
    let tree = copied(name);
    let git = || {
        let mut git = Command::new("git");
        git.current_dir(&tree).args(["apply"]).arg(root().join(format!("docs/extending/{name}.patch")));
        // Keep git from looking for a repository above the copied files. The folder that contains
        // the copy belongs to a repository, but the copy itself does not.
        git.env("GIT_CEILING_DIRECTORIES", tree.parent().unwrap()).env_remove("GIT_DIR");
        git
    };
    let numbers = run(git().arg("--numstat"));
    let files: BTreeSet<String> =
        numbers.lines().filter_map(|l| l.split('\t').next_back()).map(str::to_owned).collect();
    run(&mut git());
    for file in &files {
        let was = std::fs::read_to_string(root().join(file)).ok();
        let is = std::fs::read_to_string(tree.join(file)).unwrap();
        assert!(was.is_none_or(|was| was != is), "{file}");
    }
    // Check the patched library and its tests. Use the target folder of the build that runs now:
    // other checks, such as clippy, have already compiled the dependencies there.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut check = Command::new(env!("CARGO"));
    check.args([
        "check",
        "--locked",
        "--offline",
        "--quiet",
        "--package",
        "ddtc",
        "--lib",
        "--profile",
        "test",
    ]);
    run(check.current_dir(&tree).env("CARGO_TARGET_DIR", target));
    files
}

/// Tests that adding a family of micro-kernels takes at most three files: the file of the family, a
/// line in the list of families, and a filetest.
#[test]
fn a_family_is_three_files() {
    let files = patched("family");
    let old: Vec<&String> = files.iter().filter(|f| root().join(f).exists()).collect();
    let filetests = files.iter().filter(|f| f.starts_with("tests/filetests/schedule/")).count();
    assert!(old == ["src/micro/mod.rs"] && filetests == 1 && files.len() <= 3, "{files:?}");
}

/// Tests that adding a leaf operation takes at most six files: those with its variant, its values,
/// its implementation, its line in the list of operations that are applied, and its test.
#[test]
fn a_kind_is_six_files_at_most() {
    let files = patched("kind");
    let new: Vec<&String> = files.iter().filter(|f| !root().join(f).exists()).collect();
    assert!(new == ["src/exec/apply/complement.rs", "tests/complement.rs"] && files.len() <= 6, "{files:?}");
}
