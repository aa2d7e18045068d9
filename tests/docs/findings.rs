//! Tests of docs/findings: each document is listed and links the programs in its folder, and what
//! the programs share is in one file.

use std::collections::BTreeSet;

use crate::text::{files, read};

#[test]
fn findings_have_their_programs() {
    let listed = read("docs/findings/README.md");
    let header = read("docs/findings/finding.h");
    let documents = files("docs/findings", "md");
    let names: Vec<&str> = documents
        .iter()
        .filter_map(|path| path.strip_prefix("docs/findings/")?.strip_suffix(".md"))
        .filter(|name| *name != "README")
        .collect();
    assert!(names.len() >= 6, "{names:?}");
    for name in names {
        assert!(listed.contains(&format!("]({name}.md)")), "docs/findings/README.md does not list {name}.md");
        let document = read(&format!("docs/findings/{name}.md"));
        let linked: BTreeSet<String> = document
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .map(|target| format!("docs/findings/{target}"))
            .collect();
        let there: BTreeSet<String> = files(&format!("docs/findings/{name}"), "c").into_iter().collect();
        assert!(!there.is_empty() && linked == there, "{name}.md links {linked:?}, and there are {there:?}");
        // A finding has no program if its memory is too large for any program to access.
        let without = document.matches("\n* No program.").count();
        assert_eq!(
            document.matches("\n### ").count(),
            there.len() + without,
            "{name}.md: a program for each finding"
        );
        for path in there {
            let text = read(&path);
            let told: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
            let check = told.first().and_then(|line| line.strip_prefix("#define ")).unwrap_or_default();
            let is_part = header.lines().any(|l| l.starts_with("#if ") && l.split(' ').any(|w| w == check));
            assert!(is_part, "{path}: finding.h has no check '{check}'");
            assert_eq!(told[1..], ["#include \"../finding.h\""], "{path} shares finding.h and nothing else");
            assert!(text.contains("\nstatic void check(MPI_Datatype t)\n{\n"), "{path} makes no check");
        }
    }
}
