//! Tests that the user's guide, docs/GUIDE.md, fits on two pages, and that CHANGELOG.md has the
//! release that packaging/released names.

use crate::text::{blocks, read};

#[test]
fn it_is_two_pages() {
    let guide = read("docs/GUIDE.md");
    let words = guide.split_whitespace().count();
    assert!(words < 1500, "{words} words");
    assert!(
        blocks(&guide).iter().all(|b| b.tag == "sh"),
        "commands alone, which preload/tests/hosts/guide.rs runs"
    );
}

#[test]
fn the_changelog_has_the_release_that_interfaces_are_compared_with() {
    let release = read("packaging/released");
    let lines: Vec<&str> = release.lines().filter(|l| !l.starts_with('#')).collect();
    let [line] = lines[..] else { panic!("packaging/released: one release, not {lines:?}") };
    let [version, commit, date] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    assert!(commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit()), "a whole commit: {commit}");
    let changelog = read("CHANGELOG.md");
    let headings: Vec<&str> = changelog.lines().filter_map(|l| l.strip_prefix("## ")).collect();
    // While a release is made, its section has its heading, and packaging/released names the last one.
    let current = env!("CARGO_PKG_VERSION");
    let in_the_making = format!("{current} (");
    let last = headings
        .iter()
        .find(|h| !h.starts_with("Unreleased") && (version == current || !h.starts_with(&in_the_making)))
        .expect("a release in CHANGELOG.md");
    assert_eq!(
        *last,
        format!("{version} ({date})"),
        "the newest release of CHANGELOG.md and of packaging/released"
    );
    let number = |v: &str| v.split('.').map(|n| n.parse().expect("a number")).collect::<Vec<u32>>();
    assert!(number(version) <= number(current), "{version} is newer than the workspace");
}
