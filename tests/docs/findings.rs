//! Tests of docs/findings: every finding has its program and every program its finding, documents
//! link them, and what the programs share is in one file. `tests/command/cli.rs` checks that the
//! documents are what the records render to.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::text::{files, read};

/// Returns the findings of one library, in the order in which they were found.
fn findings(name: &str) -> Vec<Value> {
    let path = format!("docs/findings/{name}/findings.jsonl");
    let parse = |(number, line): (usize, &str)| {
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|e| panic!("{path}, line {}: {e}", number + 1));
        // The tests that run the programs write the records again, and the difference must show
        // what they changed and nothing else.
        assert_eq!(value.to_string(), line, "{path}, line {}: not as serde_json writes it", number + 1);
        value
    };
    read(&path).lines().enumerate().map(parse).collect()
}

/// Returns the text of a field of a finding.
fn field<'f>(finding: &'f Value, name: &str) -> &'f str {
    finding[name].as_str().unwrap_or_else(|| panic!("no text '{name}': {finding}"))
}

/// Returns the C programs that a document links, by path from the root.
fn linked(document: &str) -> BTreeSet<String> {
    let targets = document.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| target.ends_with(".c")).map(|target| format!("docs/findings/{target}")).collect()
}

#[test]
fn findings_have_their_programs() {
    let listed = read("docs/findings/README.md");
    let header = read("docs/findings/finding.h");
    let records = files("docs/findings", "jsonl");
    let names: Vec<&str> = records
        .iter()
        .filter_map(|path| path.strip_prefix("docs/findings/")?.strip_suffix("/findings.jsonl"))
        .collect();
    assert!(names.len() >= 6, "{names:?}");
    let shared = read("docs/findings/differences.md");
    assert!(listed.contains("](differences.md)"), "docs/findings/README.md does not list differences.md");
    let (mut total, mut other) = (0, BTreeSet::new());
    for name in names {
        assert!(listed.contains(&format!("]({name}.md)")), "docs/findings/README.md does not list {name}.md");
        let (document, findings) = (read(&format!("docs/findings/{name}.md")), findings(name));
        total += findings.len();
        let fingerprints: BTreeSet<&str> = findings.iter().map(|f| field(f, "fingerprint")).collect();
        assert_eq!(fingerprints.len(), findings.len(), "{name}: two findings have one name");
        // A finding has no program if its memory is too large for any program to access.
        let with_program = || findings.iter().filter(|f| !f["program"].is_null());
        let path = |f: &Value| format!("docs/findings/{name}/{}", field(f, "program"));
        let programs: Vec<String> = with_program().map(path).collect();
        let there: BTreeSet<String> = files(&format!("docs/findings/{name}"), "c").into_iter().collect();
        assert_eq!(programs.iter().cloned().collect::<BTreeSet<_>>(), there, "{name}: programs and findings");
        assert_eq!(programs.len(), there.len(), "{name}: two findings have one program");
        // The document of the library has the bugs, and the shared document the other differences.
        let is_bug = |f: &&Value| field(f, "class") == "bug";
        let bugs: BTreeSet<String> = with_program().filter(is_bug).map(path).collect();
        assert_eq!(linked(&document), bugs, "{name}.md: a link for each bug");
        let entries: BTreeSet<&str> =
            document.split("\n### ").skip(1).filter_map(|entry| entry.lines().next()).collect();
        let expected: BTreeSet<&str> =
            findings.iter().filter(is_bug).map(|f| field(f, "fingerprint")).collect();
        assert_eq!(entries, expected, "{name}.md: an entry for each bug");
        other.extend(with_program().filter(|f| !is_bug(f)).map(path));
        for path in there {
            let text = read(&path);
            let directives: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
            let check = directives.first().and_then(|line| line.strip_prefix("#define ")).unwrap_or_default();
            let is_part = header.lines().any(|l| l.starts_with("#if ") && l.split(' ').any(|w| w == check));
            assert!(is_part, "{path}: finding.h has no check '{check}'");
            assert_eq!(
                directives[1..],
                ["#include \"../finding.h\""],
                "{path} shares finding.h and nothing else"
            );
            assert!(text.contains("\nstatic void check(MPI_Datatype t)\n{\n"), "{path} makes no check");
        }
    }
    assert_eq!(linked(&shared), other, "differences.md: a link for each difference that is not a bug");
    assert!(total >= 287, "{total} findings: some were lost");
}
