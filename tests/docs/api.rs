//! Tests of docs/api.txt, which lists the public items of the crate `ddtc`: the list must be short,
//! and each item must have an example that runs.
//!
//! The script tests/api.sh compares the list with the code. It needs a nightly compiler for that;
//! the tests of this module do not.

use crate::text::{files, read};

/// Maximum number of lines of docs/api.txt, which lists the public items of the crate.
const MAX_LINES: usize = 200;

/// Maximum number of types, traits and free functions in docs/api.txt.
const MAX_ITEMS: usize = 40;

/// Traits whose methods need no example. Most of these traits are from the standard library, and
/// everybody knows how `fmt` or `==` are called.
const KNOWN: [&str; 9] =
    ["Default", "Display", "Debug", "FromStr", "PartialEq", "Eq", "Hash", "Error", "Scalar"];

/// Returns the words of a line of docs/api.txt, without the attributes at its start and without
/// `pub`, `unsafe` and `const`.
fn words(line: &str) -> Vec<&str> {
    let line = line.rsplit("] ").next().unwrap_or(line);
    line.split_whitespace().filter(|w| !["pub", "unsafe", "const"].contains(w)).collect()
}

/// Returns the path of a declared item inside the crate as a list of names, such as `Committed` and
/// `pack`. `word` is the item's name in docs/api.txt, from which generics and arguments are
/// removed.
fn path(word: &str) -> Vec<&str> {
    let end = word.find(['(', '<']).unwrap_or(word.len());
    // If the item is a method of a generic type, for example `Segments<'l>::len(..)`, the generics
    // come before the method's name.
    let whole = match word.split_once(">::") {
        Some((of, rest)) if of.contains('<') && !of.contains('(') => {
            let method = rest.split(['(', '<']).next().unwrap_or("");
            return [of.split('<').next().unwrap_or(of).trim_start_matches("ddtc::"), method].to_vec();
        }
        _ => &word[..end],
    };
    whole.trim_start_matches("ddtc::").split("::").collect()
}

#[test]
fn the_interface_is_small() {
    let text = read("docs/api.txt");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() <= MAX_LINES, "docs/api.txt has {} lines", lines.len());
    assert!(!text.contains("internal"), "docs/api.txt lists what is for the workspace");
    let item = |line: &&&str| {
        let words = words(line);
        let free = |word: &str| path(word).len() == 1;
        match words[..] {
            ["struct" | "enum" | "trait" | "union" | "type", name, ..] | ["fn", name, ..] => free(name),
            _ => false,
        }
    };
    let items = lines.iter().filter(item).count();
    assert!((10..=MAX_ITEMS).contains(&items), "docs/api.txt has {items} types, traits and free functions");
}

/// Finds the items of the library's sources whose line begins with one of `starts`, and returns the
/// comments and attributes before each of these items.
fn documented<'a>(texts: &'a [String], starts: &[String]) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    for text in texts {
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let line = line.trim_start();
            if starts.iter().any(|start| line.starts_with(start)) {
                let above = lines[..i].iter().rev().map(|l| l.trim_start());
                found.push(above.take_while(|l| l.starts_with("//") || l.starts_with('#')).collect());
            }
        }
    }
    found
}

#[test]
fn public_items_have_examples() {
    let texts: Vec<String> = files("src", "rs").iter().map(|file| read(file)).collect();
    let list = read("docs/api.txt");
    let (mut seen, mut known) = (0, false);
    // For each line of docs/api.txt, find the beginnings that the declaration can have in the
    // sources. `known` is true while the lines belong to an implementation of a trait that needs no
    // examples.
    for line in list.lines() {
        let words = words(line);
        let starts: Vec<String> = match words[..] {
            [first, .., _, _] if first.starts_with("impl") => {
                let name = words.iter().find(|w| w.contains("::") || w.starts_with("ddtc")).unwrap_or(&"");
                let name = name.split('<').next().unwrap_or(name);
                known = line.contains(" for ") && KNOWN.contains(&name.rsplit("::").next().unwrap_or(name));
                continue;
            }
            [first, ..] if first.starts_with("impl") => {
                known = false;
                continue;
            }
            ["struct" | "enum" | "trait", ..] => {
                known = false;
                let name = path(words[1])[0].trim_end_matches(':');
                ["struct", "enum", "trait"].iter().map(|kind| format!("pub {kind} {name}")).collect()
            }
            ["fn", name, ..] if !known => {
                let name = path(name).last().copied().unwrap_or("").to_owned();
                // A macro declares the setters of `Config`, so in the sources they stand as name
                // and type without `fn`.
                let kinds = ["pub fn", "pub unsafe fn", "pub const fn"].iter();
                kinds
                    .flat_map(|kind| [format!("{kind} {name}("), format!("{kind} {name}<")])
                    .chain(line.contains("ddtc::Config::").then(|| format!("{name}: ")))
                    .collect()
            }
            _ => continue,
        };
        let found = documented(&texts, &starts);
        let example = found.iter().any(|doc| doc.iter().any(|l| l.starts_with("/// ```")));
        assert!(example, "no example that runs: {line}");
        seen += 1;
    }
    assert!(seen > 80, "{seen}");
}
