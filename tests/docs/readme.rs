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
    assert_eq!(
        own.first(),
        examples.first(),
        "the first example of src/lib.rs (left) and that of README.md (right)"
    );
    assert!(read("src/lib.rs").contains("#[doc = include_str!(\"../README.md\")]"), "README.md is a doctest");
}

#[test]
fn the_commands_are_run() {
    let readme = read("README.md");
    let commands: String = blocks(&readme).into_iter().filter(|b| b.tag == "sh").map(|b| b.text).collect();
    let lines: Vec<&str> = commands.lines().collect();
    // For users: those of the guide, which preload/tests/hosts/guide.rs runs. For us: those of .ci/run.
    let plain = |line: &str| line.split('#').next().unwrap().trim().to_owned();
    let (ours, users): (Vec<_>, Vec<_>) =
        lines.iter().map(|l| plain(l)).partition(|l| l.starts_with("cargo ") || l.starts_with("./test.sh"));
    assert_eq!(ours, ["cargo run --release -- bench", "./test.sh"]);
    let run = read(".ci/run");
    assert!(ours.iter().all(|command| run.contains(command)), ".ci/run runs {ours:?}");
    let guide: String =
        blocks(&read("docs/GUIDE.md")).into_iter().filter(|b| b.tag == "sh").map(|b| b.text).collect();
    assert_eq!(users.len(), 3, "{users:?}");
    for command in users {
        assert!(
            guide.lines().any(|l| l == command),
            "docs/GUIDE.md has no line `{command}`, so nothing runs it"
        );
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
