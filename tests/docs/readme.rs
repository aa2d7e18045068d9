//! Tests of README.md: its examples must be doctests, and each of its commands must be run by
//! .ci/run or by a test of the user's guide.

use crate::text::{blocks, read};

#[test]
fn the_examples_are_doctests() {
    assert!(read("src/lib.rs").contains("#[doc = include_str!(\"../README.md\")]"));
}

/// Tests that the page of the crate on crates.io has the example of README.md, which is a doctest,
/// and no link to a file, since crates.io has no other file of the repository.
#[test]
fn the_crate_has_a_page_of_its_own() {
    let example = |file: &str| -> Vec<String> {
        blocks(&read(file)).into_iter().filter(|b| b.tag == "rust").map(|b| b.text).collect()
    };
    assert!(read("Cargo.toml").contains("\nreadme = \"src/README.md\"\n"));
    assert_eq!(example("src/README.md"), example("README.md"));
    assert!(!read("src/README.md").contains("]("));
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
