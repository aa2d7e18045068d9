//! Tests that the section "Limits" of docs/PRELOAD.md contains each limit of the preload library
//! that the last column of preload/tests/hosts/repro.txt names.

use std::collections::BTreeSet;

use crate::text::read;

#[test]
fn what_programs_still_show_is_a_limit() {
    let document = read("docs/PRELOAD.md");
    let (_, section) = document.split_once("\n## Limits\n").expect("the section");
    let section = section.split("\n## ").next().unwrap();
    let limits: String = section.split_whitespace().collect::<Vec<_>>().join(" ");
    let table = read("preload/tests/hosts/repro.txt");
    let open: BTreeSet<&str> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit('|').next())
        .map(str::trim)
        .filter(|limit| !limit.is_empty())
        .collect();
    for limit in open {
        assert!(limits.contains(limit), "docs/PRELOAD.md, \"Limits\", lacks: {limit}");
    }
}
