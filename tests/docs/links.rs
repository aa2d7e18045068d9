//! Tests that no document names a file that does not exist, and that no Rust source names a
//! document that does not exist.

use std::collections::BTreeSet;

use crate::text::{documents, files, quoted, read, root};

/// Folders and files that documents may name although they exist only after something was built or
/// run.
const MADE: [&str; 1] = ["target/"];

/// Returns true if a word of a document is meant as a path inside the repository.
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
        "gpu/",
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

/// Returns the anchors of the headings of a document, as GitHub makes them from the text of a
/// heading: lower-case letters, hyphens in place of spaces, and no other punctuation.
fn anchors(document: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let headings = document.lines().filter_map(|line| {
        fenced ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len() && !fenced).then(|| heading.trim().to_lowercase())
    });
    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    headings.map(|heading| heading.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn headings_have_anchors() {
    let text = "# One `type`, two\n```sh\n# three\n```\n## A-b\n";
    assert_eq!(anchors(text), ["one-type-two", "a-b"].map(str::to_owned).into());
}

/// Tests that the pages that a new reader reads first are short enough to be read.
#[test]
fn the_way_in_has_at_most_60_kilobytes() {
    let pages = ["README.md", "docs/GUIDE.md", "docs/ARCHITECTURE.md", "docs/GLOSSARY.md"];
    let bytes: usize = pages.iter().map(|page| read(page).len()).sum();
    assert!(bytes <= 60_000, "{pages:?} have {bytes} bytes");
}

/// Returns true if a document contains notes of finished work, which are not changed any more.
/// Files that such a document names may have been deleted.
fn is_frozen(document: &str) -> bool {
    document.starts_with("docs/history/")
}

/// Tests that every page in docs/history says in its first three lines that it is not maintained.
#[test]
fn frozen_documents_say_so() {
    for document in files("docs/history", "md") {
        let head = read(&document).lines().take(3).collect::<Vec<_>>().join(" ");
        assert!(head.contains("not maintained"), "{document} does not say that it is not maintained");
    }
}

#[test]
fn documents_mention_no_missing_file() {
    for document in documents().into_iter().filter(|document| !is_frozen(document)) {
        let text = read(&document);
        // The changelog may name files that earlier releases had.
        let is_history = document == "CHANGELOG.md";
        for word in quoted(&text) {
            if is_path(&word) && !is_history {
                must_exist(&document, word.trim_end_matches('/'));
            }
        }
        // A section may say in which folder its files lie, and then name the files without the
        // folder.
        for section in text.split("\n## ") {
            let Some((_, rest)) = section.split_once("Files of this section lie in `") else { continue };
            let (folder, rest) = rest.split_once('`').unwrap();
            for word in quoted(rest).iter().filter(|word| word.ends_with(".rs")) {
                must_exist(&document, &format!("{folder}/{word}"));
            }
        }
        // Check the targets of links of the form `[words](target)`. Targets are relative to the
        // folder of the document.
        let folder = document.rsplit_once('/').map_or("", |(f, _)| f);
        for rest in text.split("](").skip(1) {
            let link = rest.split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = std::path::Path::new(folder).join(target);
            let path = if target.is_empty() { document.as_str() } else { path.to_str().unwrap() };
            must_exist(&document, path);
            if !anchor.is_empty() {
                let known = anchors(&read(path)).contains(anchor);
                assert!(known, "{document} links to {link}, and {path} has no such heading");
            }
        }
        // Check the names of documents that stand in running text without backquotes.
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
        ["src", "tests", "bench", "capi", "cli", "e2e", "gpu", "hosts", "hunt", "preload", "python", "yaksa"]
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

/// Tests that documents have no very long lines. These are hard to read in a terminal, next to a
/// source, and in a diff.
#[test]
fn no_line_of_a_document_is_longer_than_160_characters() {
    let mut found = Vec::new();
    for document in documents() {
        // Lines of tables and of blocks may be longer: a row of a table takes one line, and output
        // of programs, which is indented or fenced, is left as it was.
        let (text, mut fenced) = (read(&document), false);
        // Pages for which `is_written` is true, and the two pages below, are written by programs.
        let is_written = document.starts_with("docs/findings/") && !document.ends_with("README.md");
        if is_written || ["benches/record/POLICY.md", "tests/runtime/record.md"].contains(&document.as_str())
        {
            continue;
        }
        for (i, line) in text.lines().enumerate() {
            fenced ^= line.starts_with("```");
            let as_it_is = fenced || line.starts_with('|') || line.starts_with("    ");
            if line.chars().count() > 160 && !as_it_is {
                found.push(format!("{document}:{}", i + 1));
            }
        }
    }
    assert!(found.is_empty(), "{} lines: {found:#?}", found.len());
}
