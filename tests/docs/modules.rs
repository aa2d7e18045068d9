//! Tests of the modules of the library, as docs/ARCHITECTURE.md lists them: which modules there are
//! and which module imports which. The table in that document must say the same.

use std::collections::{BTreeMap, BTreeSet};

use ddtc::internal::engine::STAGES;

use crate::import_cycles;
use crate::text::{files, hold, read, root};

/// Folders of the members of the workspace, with their sources and tests. `src` is the library's.
pub(crate) const SOURCES: [&str; 10] =
    ["src", "bench", "capi", "cli", "gpu", "hosts", "hunt", "preload", "python", "yaksa"];

/// Maximum number of lines of code that a source file may have.
const MAX_LINES: usize = 640;

/// Maximum number of lines of code that a function may have.
const MAX_FUNCTION: usize = 80;

/// A row of the table of modules in docs/ARCHITECTURE.md.
struct Row {
    module: String,
    kind: String,
}

/// Folders of src/ without a row of their own in the table of modules of docs/ARCHITECTURE.md. Each
/// file in such a folder has a row.
const FOLDERS: [&str; 2] = ["code", "exec"];

/// Returns the modules that must have a row in the table: those that src/lib.rs declares, except
/// that the modules in a folder of [`FOLDERS`] take the place of the module that has its name.
fn modules() -> BTreeSet<String> {
    let declared_in = |file: &str| -> Vec<String> {
        let text = read(&format!("src/{file}.rs"));
        let names = text
            .lines()
            .filter_map(|l| l.strip_prefix("pub ").unwrap_or(l).strip_prefix("mod ")?.strip_suffix(';'));
        names.map(str::to_owned).collect()
    };
    let (folders, mut modules): (Vec<String>, Vec<String>) =
        declared_in("lib").into_iter().partition(|name| FOLDERS.contains(&name.as_str()));
    assert_eq!(folders, FOLDERS, "folders without a row of their own");
    modules.extend(folders.iter().flat_map(|folder| declared_in(folder)));
    // The module `internal` re-exports the others and has no row.
    modules.retain(|name| name != "internal");
    modules.into_iter().collect()
}

/// Returns the name of the row that a module of the library belongs to, or `None` for the root of
/// the crate.
fn row_of(module: &[String]) -> Option<&str> {
    let at = usize::from(FOLDERS.contains(&module.first()?.as_str()));
    module.get(at).map(String::as_str)
}

/// Returns the code of a source file without comments, and without code that is compiled for tests
/// only.
pub(crate) fn code(file: &str) -> String {
    if file.ends_with("/tests.rs") || file.contains("/tests/") {
        return String::new();
    }
    let text = read(file);
    // Cut off the test module, which by convention is the last item of a file.
    let end = text.find("\n#[cfg(test)]\nmod ").unwrap_or(text.len());
    let lines = text[..end].lines().filter(|l| !l.trim_start().starts_with("//"));
    lines.map(|l| format!("{l}\n")).collect()
}

/// Returns, for each module with a row, the modules that it imports according to the sources. A
/// module counts as imported if an item is taken from it, whether the module defines the item or
/// re-exports it.
fn graph() -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, to) in import_cycles::graph_of("src", false) {
        if let Some(from) = row_of(&from).filter(|from| *from != "internal") {
            let to = to.iter().filter_map(|to| row_of(to)).filter(|to| *to != from).map(str::to_owned);
            graph.entry(from.to_owned()).or_default().extend(to);
        }
    }
    graph
}

/// Returns the rows of the table of modules in docs/ARCHITECTURE.md.
fn rows(document: &str) -> Vec<Row> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|c| c.trim().trim_matches('`').to_owned()).collect()
    };
    let table = document.lines().skip_while(|l| !l.starts_with("| Module |")).skip(2);
    table
        .take_while(|l| l.starts_with('|'))
        .map(|line| match &cells(line)[..] {
            [module, kind, ..] => Row { module: module.clone(), kind: kind.clone() },
            _ => panic!("not a row: {line}"),
        })
        .collect()
}

/// Returns the text of the table cell that lists the importers of a module. Modules of kind
/// `support`, which are for tests, are not listed. If there are more than nine importers, the text
/// is "nearly all".
fn importers(module: &str, graph: &BTreeMap<String, BTreeSet<String>>, rows: &[Row]) -> String {
    let counts = |from: &str| rows.iter().any(|r| r.module == from && r.kind != "support");
    let from =
        graph.iter().filter(|(from, to)| to.contains(module) && counts(from)).map(|(from, _)| from.as_str());
    let from: Vec<&str> = from.collect();
    if from.len() > 9 { "nearly all".to_owned() } else { from.join(", ") }
}

#[test]
fn every_module_has_a_row_and_a_section() {
    let document = read("docs/ARCHITECTURE.md");
    let rows = rows(&document);
    let listed: Vec<&str> = rows.iter().map(|r| r.module.as_str()).collect();
    let unique: BTreeSet<String> = listed.iter().map(|&r| r.to_owned()).collect();
    assert_eq!(unique.len(), listed.len(), "a module is listed twice");
    assert_eq!(unique, modules(), "rows of docs/ARCHITECTURE.md (left) and modules of src/lib.rs (right)");
    let sections: Vec<&str> = document.lines().filter_map(|l| l.strip_prefix("### ")).collect();
    assert_eq!(sections, listed, "sections and rows of docs/ARCHITECTURE.md in one order");
    for file in files("src", "rs") {
        let module = import_cycles::module_of("src", &file);
        if module.first().is_some_and(|first| first == "internal") {
            continue;
        }
        let known = row_of(&module).is_none_or(|name| unique.contains(name));
        assert!(known, "{file} belongs to no row of docs/ARCHITECTURE.md");
    }
    // The file src/internal.rs has a table of the modules too. It must list all modules except
    // `fuzzing`.
    let page = read("src/internal.rs");
    for module in unique.iter().filter(|r| *r != "fuzzing") {
        assert!(
            page.contains(&format!("[`{module}`]")),
            "the table of modules in src/internal.rs lacks `{module}`"
        );
    }
    // The column of importers is generated here, so that the table cannot be out of date.
    let graph = graph();
    let mut wanted = String::new();
    for line in document.lines() {
        match rows.iter().find(|r| line.starts_with(&format!("| `{}` |", r.module))) {
            None => wanted += line,
            Some(Row { module, kind }) => {
                wanted += &format!("| `{module}` | {kind} | {} |", importers(module, &graph, &rows));
            }
        }
        wanted.push('\n');
    }
    hold("docs/ARCHITECTURE.md", &wanted);
}

#[test]
fn arrows_point_one_way() {
    let document = read("docs/ARCHITECTURE.md");
    let kind: BTreeMap<String, String> = rows(&document).into_iter().map(|r| (r.module, r.kind)).collect();
    let of_kind = |wanted: &str| -> BTreeSet<&str> {
        kind.iter().filter(|(_, k)| *k == wanted).map(|(module, _)| module.as_str()).collect()
    };
    assert_eq!(
        of_kind("pass"),
        BTreeSet::from(STAGES),
        "passes of docs/ARCHITECTURE.md (left) and stages (right)"
    );
    assert_eq!(of_kind("executor"), BTreeSet::from(["apply", "interp", "nest_interpreter"]));
    // The meaning of a datatype and of its bytes does not depend on the machine or on the process.
    // So modules that describe data have a kind of their own, apart from those of the kinds
    // "machine" and "state".
    assert_eq!(of_kind("machine"), BTreeSet::from(["arena", "kernel", "micro", "plan"]));
    assert_eq!(of_kind("state"), BTreeSet::from(["cache", "calls", "files", "layout", "process"]));
    for (from, to) in graph() {
        for to in to {
            let (a, b) = (kind[&from].as_str(), kind[&to].as_str());
            let allowed = match a {
                // All modules may import `process`, because values that are made once per
                // process need its locks.
                "data" => b == "data" || to == "process",
                "machine" => ["data", "machine"].contains(&b) || to == "process",
                "state" => ["data", "machine", "state"].contains(&b),
                "pass" | "executor" => ["data", "machine"].contains(&b),
                "pipeline" => !["surface", "support"].contains(&b),
                "surface" => !["pass", "executor", "support"].contains(&b),
                "support" => true,
                _ => panic!("{from}: no such kind as {a}"),
            };
            assert!(allowed, "{from} ({a}) imports {to} ({b})");
        }
    }
}

#[test]
fn stage_names_are_the_same_everywhere() {
    let modules = modules();
    for stage in STAGES {
        assert!(modules.contains(stage), "no module of that name: {stage}");
    }
    // The pipeline in src/engine.rs gives the names of the stages to log lines and timings. It must
    // name the stages in their order.
    let labels: Vec<String> = code("src/engine.rs")
        .split(".stage(\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    let mut last = 0;
    for label in &labels {
        let place = STAGES.iter().position(|s| s == label);
        let place = place.unwrap_or_else(|| panic!("src/engine.rs runs `{label}`, which is no stage"));
        assert!(place >= last, "{label} is out of order in src/engine.rs");
        last = place;
    }
    // Some commands of the command line print the result of one stage. Their names must be those of
    // the stages.
    let verbs: Vec<String> = read("cli/src/lib.rs")
        .split("explain::stage(\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect();
    let printed: Vec<&str> = STAGES.into_iter().filter(|s| verbs.iter().any(|v| v == s)).collect();
    assert_eq!(verbs, printed, "verbs of the command line (left) that are stages, in order (right)");
    assert!(printed.len() >= 5, "{printed:?}");
    // The folder of filetests has one folder for each stage that has filetests.
    for folder in std::fs::read_dir(root().join("tests/filetests")).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        // The folder `engines` is an exception: its cases go through all stages.
        assert!(STAGES.contains(&name.as_str()) || name == "engines", "tests/filetests/{name} is no stage");
    }
    // These documents draw the flow of the stages. They must show the stages in their order.
    for file in ["docs/README.md", "src/internal.rs", "docs/ARCHITECTURE.md"] {
        let text = read(file);
        let drawn: Vec<&str> = text
            .split('[')
            .skip(1)
            .filter_map(|rest| rest.split_once(']').map(|(name, _)| name))
            .filter(|name| STAGES.contains(name))
            .collect();
        assert_eq!(drawn[..STAGES.len().min(drawn.len())], STAGES, "the flow in {file}");
    }
}

/// Returns true for a line of code, and false for a comment or a blank line. The limits on lengths
/// count only lines of code.
fn is_code(line: &str) -> bool {
    !line.trim().is_empty() && !line.trim_start().starts_with("//")
}

#[test]
fn files_are_short() {
    for folder in SOURCES.into_iter().chain(["tests"]) {
        for file in files(folder, "rs") {
            let lines = read(&file).lines().filter(|line| is_code(line)).count();
            assert!(lines <= MAX_LINES, "{file} has {lines} lines of code: split it");
        }
    }
}

/// Returns the functions in a source text: the name of each, and its number of lines of code.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |line: &str| -> Option<usize> {
        let at =
            if line.trim_start().starts_with("fn ") { line.find("fn ")? } else { line.find(" fn ")? + 1 };
        let words = ["const", "unsafe", "extern", "\"C\""];
        let known = |word: &str| word.starts_with("pub") || words.contains(&word) || word.ends_with(')');
        line[..at].split_whitespace().all(known).then_some(at)
    };
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(at) = begins(line) else { continue };
        let name = line[at + 3..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = |l: &&&str| l.strip_prefix(indent).is_some_and(|rest| rest == "}" || rest.starts_with(';'));
        let opens = lines[i..].iter().find(|l| l.ends_with('{') || l.ends_with(';') || l.ends_with('}'));
        if opens.is_some_and(|l| l.ends_with('{')) {
            let length = lines[i..].iter().position(|l| end(&l)).unwrap_or(0) + 1;
            found.push((name, lines[i..i + length].iter().filter(|line| is_code(line)).count()));
        }
    }
    found
}

#[test]
fn functions_are_short() {
    let text = "pub(crate) unsafe fn a(\n    b: u8,\n) {\n\n    // Why.\n    c();\n}\nfn d();\n    const fn e() {\n    }\n// fn f() {\n";
    assert_eq!(functions(text), [("a", 5), ("e", 2)]);
    let mut seen = 0;
    for file in SOURCES.into_iter().flat_map(|folder| files(folder, "rs")) {
        if !file.contains("/tests/") && !file.ends_with("tests.rs") {
            for (name, length) in functions(&read(&file)) {
                assert!(length <= MAX_FUNCTION, "{file}: {name} has {length} lines of code: take it apart");
                seen += 1;
            }
        }
    }
    assert!(seen > 3000, "{seen}");
}

/// Tests that no value with a `Drop` implementation is the argument of `then_some`. Such an
/// argument is made even if the condition is false, and is then dropped. If its `Drop` ends
/// something, it would end what was never begun. So such values must be made inside the closure of
/// `then`.
#[test]
fn no_value_that_ends_something_is_made_in_vain() {
    let texts: Vec<(String, String)> = SOURCES
        .into_iter()
        .flat_map(|f| files(f, "rs"))
        .map(|file| (read(&file), file))
        .map(|(t, f)| (f, t))
        .collect();
    let names = texts.iter().flat_map(|(_, text)| {
        text.split(" Drop for ")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next())
    });
    let names: std::collections::BTreeSet<&str> = names.filter(|name| name.len() > 1).collect();
    assert!(names.contains("Claim") && names.len() > 10, "{names:?}");
    for (file, text) in &texts {
        for rest in text.split("then_some(").skip(1) {
            let made = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
            assert!(!names.contains(made), "{file}: then_some({made}..: write then(|| {made}..)");
        }
    }
}
