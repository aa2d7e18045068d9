//! Doc comments: the first line of a public item says what it does or holds, and stands alone where rustdoc lists it without its neighbours.

use crate::text::{files, read};

/// Folders of the sources of all packages.
const SOURCES: [&str; 9] = ["src", "bench", "capi", "cli", "hosts", "hunt", "preload", "python", "yaksa"];

/// Beginnings that say nothing out of their place: the first asks, the second points at a neighbour.
const EMPTY: [&str; 2] = ["What ", "The same "];

/// First lines of the doc comments in a text, with their line numbers: of its modules, and of items that are public outside or inside the crate.
fn first_lines(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let begins = |mark: &str| {
            line.strip_prefix(mark).filter(|_| i == 0 || !lines[i - 1].starts_with(mark)).map(str::trim_start)
        };
        if let Some(words) = begins("//!") {
            found.push((i + 1, words));
        } else if let Some(words) = begins("///") {
            let mut item = lines[i..].iter().skip_while(|l| l.starts_with("///") || l.starts_with("#["));
            if item.next().is_some_and(|l| l.starts_with("pub ") || l.starts_with("pub(")) {
                found.push((i + 1, words));
            }
        }
    }
    found
}

#[test]
fn first_lines_are_found() {
    let text = "//! A file.\n//! What more.\n\n/// Holds a word.\n/// What else.\n#[derive(Debug)]\npub struct A {\n    /// What it is.\n    pub(crate) a: u8,\n    /// What is private.\n    b: u8,\n}\n";
    assert_eq!(first_lines(text), [(1, "A file."), (4, "Holds a word."), (8, "What it is.")]);
}

#[test]
fn comments_of_public_items_stand_alone() {
    let (mut comments, mut wrong) = (0, Vec::new());
    for file in SOURCES.into_iter().flat_map(|folder| files(folder, "rs")) {
        let text = read(&file);
        for (line, words) in first_lines(&text) {
            comments += 1;
            if EMPTY.iter().any(|begin| words.starts_with(begin)) {
                wrong.push(format!("{file}:{line}: {words}"));
            }
        }
    }
    assert!(comments > 2000, "{comments} comments");
    assert!(
        wrong.is_empty(),
        "begin with a verb that stands alone (Returns, Holds, Says whether): {wrong:#?}"
    );
}
