//! Tests that docs/SETTINGS.md explains every number of the preload library's report, and that
//! docs/PRELOAD.md explains every reason for which the preload library bypasses a call.

use std::collections::BTreeSet;

use ddtc_hosts::bypass::Bypass;

use crate::text::read;

#[test]
fn every_number_of_a_report_is_explained() {
    let source = read("preload/src/report.rs");
    let totals =
        source.split("let totals = [").nth(1).and_then(|t| t.split("];").next()).expect("the totals");
    let mut names: BTreeSet<&str> = totals
        .lines()
        .filter_map(|l| l.trim().strip_prefix("(\""))
        .filter_map(|l| l.split('"').next())
        .collect();
    assert!(names.len() > 15, "{names:?}");
    names.insert("bypassed_");
    let guide = read("docs/SETTINGS.md");
    let table =
        guide.lines().skip_while(|l| !l.starts_with("| Name |")).skip(2).take_while(|l| l.starts_with('|'));
    let first = table.map(|l| l.split('|').nth(1).expect("a cell"));
    let explained: BTreeSet<&str> = first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(
        names, explained,
        "numbers of a report (left) and those that docs/SETTINGS.md explains (right)"
    );
}

#[test]
fn every_reason_for_bypassing_a_call_is_explained() {
    let document = read("docs/PRELOAD.md");
    let table = document
        .lines()
        .skip_while(|l| !l.starts_with("| Reason |"))
        .skip(2)
        .take_while(|l| l.starts_with('|'));
    let listed: Vec<&str> = table.map(|l| l.split('`').nth(1).expect("a name")).collect();
    let known: Vec<&str> =
        Bypass::ALL.iter().filter_map(|why| why.name().strip_prefix("bypassed_")).collect();
    assert_eq!(known, listed, "reasons (left) and those that docs/PRELOAD.md explains (right)");
}
