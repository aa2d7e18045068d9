//! The README: its example is a doctest (src/lib.rs includes it), its commands are those of the project.

use crate::text::{blocks, read};

#[test]
fn the_example_is_the_crates_own() {
    let readme = read("README.md");
    let examples: Vec<String> =
        blocks(&readme).into_iter().filter(|b| b.tag == "rust").map(|b| b.text).collect();
    assert_eq!(examples.len(), 1, "one example in README.md");
    assert_eq!(examples[0].lines().count(), 12, "the example has twelve lines");
    let crate_docs: String = read("src/lib.rs")
        .lines()
        .filter_map(|l| l.strip_prefix("//!"))
        .map(|l| format!("{}\n", l.strip_prefix(' ').unwrap_or(l)))
        .collect();
    let own: Vec<String> =
        blocks(&crate_docs).into_iter().filter(|b| b.tag.is_empty()).map(|b| b.text).collect();
    assert_eq!(own, examples, "the example of src/lib.rs (left) and of README.md (right)");
    assert!(read("src/lib.rs").contains("#[doc = include_str!(\"../README.md\")]"), "README.md is a doctest");
}

#[test]
fn two_commands() {
    let readme = read("README.md");
    let commands: String = blocks(&readme).into_iter().filter(|b| b.tag == "sh").map(|b| b.text).collect();
    let lines: Vec<&str> = commands.lines().collect();
    assert_eq!(lines.len(), 2, "two commands in README.md: {lines:?}");
    assert!(lines[0].starts_with("cargo run --release -- bench"), "{}", lines[0]);
    assert!(lines[1].starts_with("cargo test --workspace"), "{}", lines[1]);
}

#[test]
fn the_licence_is_there() {
    let manifest = read("Cargo.toml");
    assert!(manifest.contains("license = \"MIT OR Apache-2.0\""));
    assert!(read("README.md").contains("MIT OR Apache-2.0"));
    assert!(read("LICENSE-MIT").starts_with("MIT License"));
    assert!(read("LICENSE-APACHE").contains("Apache License"));
}
