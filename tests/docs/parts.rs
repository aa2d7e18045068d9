//! Tests of tests/parts.txt, which lists the parts of e2e. Each test of the binary `hosts` must be
//! in exactly one part, each test binary of e2e must be in at least one part, and docs/TESTING.md
//! must show the parts as a table.

use std::collections::BTreeSet;

use crate::text::{files, hold, read, root};

/// Maximum time, in seconds on two idle cores, of all parts together that need no environment
/// variable `DDTC_..` and so run without being asked for.
const SECONDS: u32 = 4200;

struct Part {
    name: String,
    seconds: u32,
    needs: String,
    files: Vec<String>,
    text: String,
    command: String,
}

fn parts() -> Vec<Part> {
    let part = |line: &str| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, seconds, needs, files, text, command] = columns[..] else { panic!("six columns: {line}") };
        Part {
            name: name.to_owned(),
            seconds: seconds.parse().unwrap_or_else(|e| panic!("{line}: {e}")),
            needs: needs.to_owned(),
            files: files.split(' ').map(str::to_owned).collect(),
            text: text.to_owned(),
            command: command.to_owned(),
        }
    };
    read("tests/parts.txt").lines().filter(|l| !l.starts_with('#')).map(part).collect()
}

/// Returns the filters in the words after `--` of a command that runs tests: those that select
/// tests, and those that come after `--skip`.
fn filters(command: &str) -> (Vec<&str>, Vec<&str>) {
    let words: Vec<&str> = command.split_once(" -- ").map_or("", |c| c.1).split_whitespace().collect();
    let at = words.iter().position(|w| *w == "--skip").unwrap_or(words.len());
    let skipped = words[at..].iter().filter(|w| **w != "--skip").copied().collect();
    (words[..at].to_vec(), skipped)
}

/// Returns the tests of the test binary `hosts`, with the names that the test runner gives them.
fn tests_of_hosts() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let main = read("preload/tests/hosts/main.rs");
    for file in files("preload/tests/hosts", "rs") {
        let module = file.rsplit('/').next().unwrap().trim_end_matches(".rs");
        if !main.contains(&format!("mod {module};")) {
            continue;
        }
        for rest in read(&file).split("#[test]\n").skip(1) {
            let line = rest.lines().find(|l| l.starts_with("fn ")).unwrap();
            found.insert(format!("{module}::{}", line[3..].split('(').next().unwrap()));
        }
    }
    found
}

#[test]
fn every_test_under_an_mpi_library_is_in_one_part() {
    let (parts, tests) = (parts(), tests_of_hosts());
    assert!(tests.len() > 80, "{} tests", tests.len());
    let ours: Vec<&Part> = parts.iter().filter(|p| p.command.contains("--test hosts ")).collect();
    for test in &tests {
        let takes = |part: &&&Part| {
            let (filters, skipped) = filters(&part.command);
            let matches = |words: &[&str]| words.iter().any(|w| test.contains(w));
            matches(&filters) && !matches(&skipped)
        };
        let names: Vec<&str> = ours.iter().filter(takes).map(|p| p.name.as_str()).collect();
        assert_eq!(names.len(), 1, "{test} is in {names:?}");
    }
    // Each filter must match at least one test. Otherwise nobody would notice a filter that is
    // misspelled.
    for part in &ours {
        let (filters, skipped) = filters(&part.command);
        for word in filters.iter().chain(&skipped) {
            assert!(tests.iter().any(|t| t.contains(word)), "{}: {word} matches no test", part.name);
        }
    }
}

#[test]
fn every_binary_of_e2e_is_in_a_part() {
    let parts = parts();
    let manifest = read("e2e/Cargo.toml");
    let binaries: Vec<&str> =
        manifest.split("[[test]]\nname = \"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(binaries.len() >= 5, "{binaries:?}");
    let named = |part: &Part, binary: &str| {
        let words: Vec<&str> = part.command.split(' ').collect();
        words.windows(2).any(|w| w == ["--test", binary])
    };
    for binary in &binaries {
        assert!(parts.iter().any(|p| named(p, binary)), "no part runs {binary}");
    }
}

#[test]
fn the_table_of_parts_is_that_of_the_document() {
    let parts = parts();
    let usual = parts.iter().filter(|p| !p.needs.contains("DDTC_"));
    assert!(usual.map(|p| p.seconds).sum::<u32>() <= SECONDS, "more than {SECONDS} s");
    let names: BTreeSet<&str> = parts.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names.len(), parts.len(), "a name twice");
    let mut table = "| Part | Needs | Seconds | What it holds |\n|---|---|---|---|\n".to_owned();
    for part in &parts {
        for file in &part.files {
            let known = root().join(file).exists() || root().join(format!("{file}.rs")).exists();
            assert!(known || root().join(format!("{file}.txt")).exists(), "{}: {file}", part.name);
        }
        let needs = if part.needs.is_empty() { "" } else { &part.needs.replace(' ', ", ") };
        table += &format!("| `{}` | {needs} | {} | {} |\n", part.name, part.seconds, part.text);
    }
    let document = read("docs/TESTING.md");
    let (before, rest) = document.split_once("<!-- parts: tests/parts.txt -->\n").expect("the table");
    let (_, after) = rest.split_once("<!-- end -->").expect("its end");
    hold("docs/TESTING.md", &format!("{before}<!-- parts: tests/parts.txt -->\n{table}<!-- end -->{after}"));
}
