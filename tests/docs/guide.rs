//! The user's guide: its report is that of the preload library, line by line, and it fits two pages.

use std::collections::BTreeSet;

use ddtc::left::{Left, NOTHING};

use crate::text::{blocks, read};

#[test]
fn every_line_of_a_report_is_explained() {
    let source = read("preload/src/report.rs");
    let totals =
        source.split("let totals = [").nth(1).and_then(|t| t.split("];").next()).expect("the totals");
    let mut names: BTreeSet<&str> = totals
        .lines()
        .filter_map(|l| l.trim().strip_prefix("(\""))
        .filter_map(|l| l.split('"').next())
        .collect();
    assert!(names.len() > 15, "{names:?}");
    names.extend(["host", "mode", "target", "note", "left_", NOTHING.trim_end_matches([':', ' '])]);
    let guide = read("docs/GUIDE.md");
    let table =
        guide.lines().skip_while(|l| !l.starts_with("| Line |")).skip(2).take_while(|l| l.starts_with('|'));
    let first = table.map(|l| l.split('|').nth(1).expect("a cell"));
    let explained: BTreeSet<&str> = first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(names, explained, "lines of a report (left) and those that docs/GUIDE.md explains (right)");
    let reasons = guide.lines().find(|l| l.starts_with("| `left_`")).expect("the row of reasons");
    let listed: Vec<&str> =
        reasons.split('`').skip(3).step_by(2).filter(|n| !n.starts_with("MPI_")).collect();
    let known: Vec<&str> = Left::ALL.iter().filter_map(|why| why.name().strip_prefix("left_")).collect();
    assert_eq!(known, listed, "reasons (left) and those that docs/GUIDE.md explains (right)");
}

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
    let last = headings.iter().find(|h| **h != "Unreleased").expect("a release in CHANGELOG.md");
    assert_eq!(
        *last,
        format!("{version} ({date})"),
        "the newest release of CHANGELOG.md and of packaging/released"
    );
    let number = |v: &str| v.split('.').map(|n| n.parse().expect("a number")).collect::<Vec<u32>>();
    assert!(number(version) <= number(env!("CARGO_PKG_VERSION")), "{version} is newer than the workspace");
}
