//! Tests of two documents about the compiler. docs/PASSES.md must have each rewrite of
//! normalization with its rule, and the lowering of each constructor. docs/records/constants.md
//! must have each cost constant with its source.

use ddtc::internal::normalize::REWRITES;
use ddtc::internal::target::Level;

use crate::text::{hold, read, root};

/// Returns the words of a text with single spaces, so that line breaks do not matter.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first paragraph of the module documentation (`//!`) of a source file.
fn rule(file: &str) -> String {
    let source = read(file);
    let lines = source.lines().map_while(|l| l.strip_prefix("//!"));
    let paragraph = lines.take_while(|l| !l.is_empty());
    words(&paragraph.collect::<Vec<_>>().join(" "))
}

#[test]
fn every_rewrite_has_its_rule_and_its_file() {
    let document = read("docs/PASSES.md");
    let sections: Vec<&str> = document.split("\n### ").skip(1).collect();
    let names: Vec<&str> = sections.iter().map(|s| s.lines().next().unwrap()).collect();
    // The document must have one section for each rewrite, in the order of `REWRITES`: first the
    // rewrites of single nodes, then those of lists, and then that of the offset. It has no other
    // sections of this level.
    assert_eq!(names, REWRITES, "sections of docs/PASSES.md (left) and normalize::REWRITES (right)");
    for (name, section) in names.iter().zip(sections) {
        let rule = rule(&format!("src/normalize/{name}.rs"));
        assert!(rule.contains("-->"), "src/normalize/{name}.rs states its rule first");
        assert!(words(section).contains(&rule), "docs/PASSES.md, {name}: the rule of the source is\n{rule}");
        assert!(section.contains("```nest input\n"), "docs/PASSES.md, {name}: an example");
        let filetest = format!("tests/filetests/normalize/{name}.ddt");
        assert!(root().join(&filetest).exists(), "{filetest} is the filetest of {name}");
    }
    for file in crate::text::files("src/normalize", "rs") {
        let name = file.trim_start_matches("src/normalize/").trim_end_matches(".rs");
        assert!(name == "mod" || REWRITES.contains(&name), "{file} is no rewrite");
    }
}

#[test]
fn every_constructor_is_lowered() {
    let document = read("docs/PASSES.md");
    let section = document.split("\n## ").find(|s| s.starts_with("lower\n")).unwrap();
    for rest in read("src/datatype/text/mod.rs").split("name: \"").skip(1) {
        let name = rest.split('"').next().unwrap();
        // The legacy form of a constructor, whose name ends in `_integer`, shares the row of the
        // current form. The types of Fortran 90, whose names begin with `f90`, share one row.
        let name = name.trim_end_matches("_integer");
        let name = if name.starts_with("f90") { "f90_*" } else { name };
        assert!(section.contains(&format!("`{name}")), "docs/PASSES.md says nothing on lowering {name}");
    }
}

/// Tests that three files, which state the widths of accesses after legalization, give the widths
/// of the instruction-set levels.
#[test]
fn access_widths_are_those_of_the_levels() {
    let widest = Level::ALL.map(Level::widest_access).into_iter().max().unwrap();
    let widths: Vec<String> = (0..=widest.ilog2()).rev().map(|i| (1 << i).to_string()).collect();
    let list = format!("accesses of {} bytes", widths.join(", "));
    for file in ["docs/PASSES.md", "docs/ARCHITECTURE.md", "src/legalize.rs"] {
        let text = read(file).replace("//!", "");
        assert!(words(&text).contains(&list), "{file} does not say: {list}");
    }
}

/// Returns the constants and public functions of a source file, each with name, value and
/// documentation. In place of a value, a function has the words "a function".
fn constants(file: &str) -> Vec<(String, String, String)> {
    let source = read(file);
    let mut found = Vec::new();
    let mut docs = String::new();
    for line in source.lines().map(str::trim) {
        let item = line.trim_start_matches("pub ");
        if let Some(text) = line.strip_prefix("///") {
            docs += text;
            continue;
        }
        let constant = item.strip_prefix("const ").and_then(|c| c.strip_suffix(';')?.split_once(": "));
        if let Some((name, (_, value))) =
            constant.and_then(|(name, rest)| Some((name, rest.split_once(" = ")?)))
        {
            found.push((name.to_owned(), format!("`{value}`"), words(&docs)));
        } else if let Some((name, _)) = line.strip_prefix("pub fn ").and_then(|f| f.split_once('(')) {
            found.push((name.to_owned(), "a function".to_owned(), words(&docs)));
        }
        docs.clear();
    }
    found
}

#[test]
fn cost_constants_are_listed() {
    let mut rows = String::new();
    let target = read("src/target.rs");
    assert!(target.contains("pub mod cost {"));
    for file in ["src/target.rs", "src/schedule/mod.rs", "src/schedule/irregular.rs", "src/plan/mod.rs"] {
        for (name, value, docs) in constants(file) {
            // Of src/target.rs, list only what the module `cost` contains. Of the other files, list
            // only constants and no functions.
            let inside = file != "src/target.rs" || target.find(&name) > target.find("pub mod cost {");
            let upper = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            if !inside || !(upper || file == "src/target.rs") || name == "NAME" {
                continue;
            }
            // The schedule takes its costs from src/target.rs. The constants that src/schedule has
            // itself are limits, and `PIECES_PER_STORE`, which says how a table is filled.
            const OWN: [&str; 5] = ["MAX_DEPTH", "MAX_OPS", "MAX", "MAX_STRETCH_CALLS", "PIECES_PER_STORE"];
            assert!(!file.starts_with("src/schedule") || OWN.contains(&&*name), "{file}: {name} is a cost");
            assert!(!docs.is_empty(), "{file}: {name} has no documentation");
            let docs = docs.replace('|', "\\|").replace(['[', ']'], "");
            rows += &format!("| `{name}` | {value} | {docs} |\n");
        }
    }
    let document = read("docs/records/constants.md");
    let header = "| Constant | Value | What, and where it comes from |\n|---|---|---|\n";
    let (before, after) = document.split_once(header).expect("the table of constants");
    let rest: String = after.split_inclusive('\n').skip_while(|l| l.starts_with('|')).collect();
    hold("docs/records/constants.md", &format!("{before}{header}{rows}{rest}"));
}
