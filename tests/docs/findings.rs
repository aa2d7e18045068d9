//! docs/findings: every document is listed, and has the programs that it names, each of which stands alone.

use std::collections::BTreeSet;

use crate::text::{files, read};

#[test]
fn findings_have_their_programs() {
    let listed = read("docs/findings/README.md");
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
        // What is too large to be touched has none.
        let without = document.matches("\n* No program.").count();
        assert_eq!(
            document.matches("\n### ").count(),
            there.len() + without,
            "{name}.md: a program for each finding"
        );
        for path in there {
            let text = read(&path);
            let own = text.lines().filter(|l| l.trim_start().starts_with("#include"));
            assert!(
                own.clone().count() > 0 && own.clone().all(|l| l.contains('<')),
                "{path} includes a file of its own"
            );
            assert!(text.contains("int main("), "{path} is no program");
        }
    }
}
