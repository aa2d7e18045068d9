//! Tests of docs/GLOSSARY.md: the table must be short and sorted, and the file or folder that is
//! given as the owner of each word must exist.

use crate::text::{read, root};

/// Maximum number of entries of the glossary. A longer glossary would show that private words need
/// to be replaced by usual ones.
const MAX_ENTRIES: usize = 60;

/// Returns what is wrong with a glossary. `exists` returns whether the file or folder that owns a
/// word exists.
fn faults(document: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let rows = document.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows: Vec<Vec<&str>> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut found = Vec::new();
    if rows.is_empty() || rows.len() > MAX_ENTRIES {
        found.push(format!("{} entries", rows.len()));
    }
    for pair in rows.windows(2).filter(|pair| pair[0][0].to_lowercase() >= pair[1][0].to_lowercase()) {
        found.push(format!("{} stands before {}", pair[0][0], pair[1][0]));
    }
    for row in &rows {
        let owner = row.get(1).map_or("", |owner| owner.trim_matches('`'));
        if row.len() != 3 || owner.is_empty() || !exists(owner) {
            found.push(format!("{} has no owner that exists, or not three columns", row[0]));
        }
    }
    found
}

#[test]
fn the_glossary_is_short_and_sorted() {
    let found = faults(&read("docs/GLOSSARY.md"), |owner| root().join(owner).exists());
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn faults_of_a_glossary_are_found() {
    let table =
        |rows: &str| faults(&format!("| Term | Owner | Meaning |\n|---|---|---|\n{rows}"), |o| o == "a/");
    assert!(table("| a | `a/` | A. |\n| B | `a/` | B. |\n").is_empty());
    assert_eq!(table("| b | `a/` | B. |\n| a | `a/` | A. |\n"), ["b stands before a"]);
    assert_eq!(table("| a | `b/` | A. |\n").len(), 1);
    assert_eq!(table("| a | `a/` |\n").len(), 1);
    let long: String = (10..71).map(|i| format!("| a{i} | `a/` | A. |\n")).collect();
    assert_eq!(table(&long), ["61 entries"]);
    assert_eq!(table(""), ["0 entries"]);
}
