//! Tests of README.md: its examples must be doctests, and each of its commands must be run by
//! .ci/run or by a test of the user's guide.

use crate::text::{blocks, read};

#[test]
fn the_examples_are_doctests() {
    assert!(read("src/lib.rs").contains("#[doc = include_str!(\"../README.md\")]"));
}

#[test]
fn the_commands_are_run() {
    let commands = |file: &str| -> Vec<String> {
        let shell: String =
            blocks(&read(file)).into_iter().filter(|b| b.tag == "sh").map(|b| b.text).collect();
        shell.lines().map(|line| line.split(" #").next().unwrap().trim().to_owned()).collect()
    };
    // The test preload/tests/hosts/guide.rs runs the commands of docs/GUIDE.md.
    let (guide, run) = (commands("docs/GUIDE.md"), read(".ci/run"));
    let readme = commands("README.md");
    assert!(readme.len() >= 3, "{readme:?}");
    for command in readme {
        let is_ours = command.starts_with("cargo ") || command.starts_with("./test.sh");
        let is_run = if is_ours { run.contains(&command) } else { guide.contains(&command) };
        assert!(is_run, "neither .ci/run nor docs/GUIDE.md has `{command}`, so nothing runs it");
    }
}

#[test]
fn the_licence_is_there() {
    let manifest = read("Cargo.toml");
    assert!(manifest.contains("license = \"MIT OR Apache-2.0\""));
    assert!(read("README.md").contains("MIT OR Apache-2.0"));
    assert!(read("LICENSE-MIT").starts_with("MIT License"));
    assert!(read("LICENSE-APACHE").contains("Apache License"));
}
