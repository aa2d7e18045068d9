//! Tests of docs/TESTING.md: its list of fuzz targets must be complete, and its command that runs a
//! target must be the one that is used in .ci/run.

use ddtc::internal::fuzzing::targets::TARGETS;

use crate::text::read;

#[test]
fn fuzz_targets_are_those_of_the_library() {
    let names = TARGETS.map(|(name, _)| name);
    let document = read("docs/TESTING.md");
    let (_, section) = document.split_once("\n## Fuzz targets\n").expect("the section");
    let section = section.split("\n## ").next().unwrap();
    let rows: Vec<&str> =
        section.lines().filter_map(|l| l.strip_prefix("| `")).filter_map(|l| l.split('`').next()).collect();
    assert_eq!(rows, names, "the table of docs/TESTING.md (left) and fuzzing::targets::TARGETS (right)");

    // The command in docs/TESTING.md must be the one that .ci/run uses: it has the same toolchain
    // and options, and names one of the targets.
    let run = read(".ci/run");
    let shared = read("tests/tiers.sh");
    let nightly = shared.lines().find_map(|l| l.strip_prefix("nightly=")).and_then(|l| l.split(' ').next());
    let nightly = nightly.expect("the nightly of tests/tiers.sh");
    let command = section.lines().find_map(|l| l.strip_prefix("    cargo ")).expect("a command");
    let rest = command.strip_prefix(&format!("+{nightly} fuzz run --sanitizer none ")).unwrap_or_else(|| {
        panic!("docs/TESTING.md runs {nightly} as .ci/run does: {command}");
    });
    assert!(run.contains("--sanitizer none"), ".ci/run says so too");
    let target = rest.split(' ').next().unwrap();
    assert!(names.contains(&target), "{target} is no target");
}
