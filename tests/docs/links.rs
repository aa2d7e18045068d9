//! No document names a file that does not exist, and source comments name no missing document.

use std::collections::BTreeSet;

use crate::text::{documents, files, quoted, read, root};

/// Files that appear only when something is built or run.
const MADE: [&str; 1] = ["target/"];

/// Whether a word is meant as a path inside the repository.
fn is_path(word: &str) -> bool {
    let folders = [
        "src/",
        "docs/",
        "tests/",
        "corpus/",
        "benches/",
        "fuzz/",
        "capi/",
        "e2e/",
        "preload/",
        "bench/",
        "cli/",
        "hosts/",
        "hunt/",
        "python/",
        "yaksa/",
        "packaging/",
        ".ci/",
        ".github/",
    ];
    let plain = word.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    plain && folders.iter().any(|f| word.starts_with(f))
}

fn must_exist(document: &str, path: &str) {
    if MADE.iter().any(|m| path.starts_with(m)) {
        return;
    }
    assert!(root().join(path).exists(), "{document} mentions {path}, which does not exist");
}

#[test]
fn documents_mention_no_missing_file() {
    for document in documents() {
        let text = read(&document);
        for word in quoted(&text) {
            if is_path(&word) {
                must_exist(&document, word.trim_end_matches('/'));
            }
        }
        // Names of files without their folder, in sections that say which folder it is.
        for section in text.split("\n## ") {
            let Some((_, rest)) = section.split_once("Files of this section lie in `") else { continue };
            let (folder, rest) = rest.split_once('`').unwrap();
            for word in quoted(rest).iter().filter(|word| word.ends_with(".rs")) {
                must_exist(&document, &format!("{folder}/{word}"));
            }
        }
        // Links: `[words](target)`, relative to the document's folder.
        let folder = document.rsplit_once('/').map_or("", |(f, _)| f);
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = std::path::Path::new(folder).join(target);
            must_exist(&document, path.to_str().unwrap());
        }
        // Bare names of documents in running text.
        for word in text.split(|c: char| !(c.is_alphanumeric() || "_-./".contains(c))) {
            let word = word.trim_end_matches('.');
            if word.ends_with(".md") && word.starts_with("docs/") {
                must_exist(&document, word);
            }
        }
    }
}

#[test]
fn sources_mention_no_missing_document() {
    let mut missing = BTreeSet::new();
    for folder in
        ["src", "tests", "bench", "capi", "cli", "e2e", "hosts", "hunt", "preload", "python", "yaksa"]
    {
        for file in files(folder, "rs") {
            for rest in read(&file).split("docs/").skip(1) {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || "_-./".contains(c)));
                let name = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
                let known = root().join("docs").join(name).exists();
                if name.ends_with(".md") && !known {
                    missing.insert(format!("{file}: docs/{name}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_document_is_reachable_from_the_readme() {
    assert!(read("README.md").contains("](docs/README.md)"), "README.md has no link to the index");
    let index = read("docs/README.md");
    for document in files("docs", "md").iter().filter(|d| *d != "docs/README.md") {
        let inside = document.trim_start_matches("docs/");
        assert!(index.contains(&format!("]({inside})")), "docs/README.md has no link to {document}");
    }
}

/// What is longer is read nowhere: not in a terminal, not beside the source, not in a difference.
#[test]
fn no_line_of_a_document_is_longer_than_160_characters() {
    let mut found = Vec::new();
    let more = ["CHANGELOG.md", "python/README.md", "benches/record/README.md"].map(str::to_owned);
    for document in documents().into_iter().chain(more) {
        // Tables have their rows on a line each, and what a program has printed is as it was.
        let (text, mut fenced) = (read(&document), false);
        // Those of findings are what `ddtc check --mpi` writes.
        let found_by_a_hunt = document.starts_with("docs/findings/") && !document.ends_with("README.md");
        for (i, line) in text.lines().enumerate().take_while(|_| !found_by_a_hunt) {
            fenced ^= line.starts_with("```");
            let as_it_is = fenced || line.starts_with('|') || line.starts_with("    ");
            if line.chars().count() > 160 && !as_it_is {
                found.push(format!("{document}:{}", i + 1));
            }
        }
    }
    assert!(found.is_empty(), "{} lines: {found:#?}", found.len());
}
