//! Tests that files do not import each other in cycles. For each file, the tests find the files
//! that define the items that it names, also if a name is in a group of a `use` or is re-exported.
//! They check the library and all members of the workspace.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::{SOURCES, code};
use crate::text::files;

/// The path of a module from the root of its crate, as a list of names.
pub(crate) type Path = Vec<String>;

/// For each module that has a file of its own, the modules with files of their own that it names.
pub(crate) type Graph = BTreeMap<Path, BTreeSet<Path>>;

/// Returns the path of the module that a file defines. `folder` is the folder of the crate's
/// sources.
pub(crate) fn module_of(folder: &str, file: &str) -> Path {
    let inside = file[folder.len()..].trim_start_matches('/').trim_end_matches(".rs");
    let mut path: Path = inside.split('/').map(str::to_owned).collect();
    if path.last().is_some_and(|name| name == "mod" || path.len() == 1 && (name == "lib" || name == "main")) {
        path.pop();
    }
    path
}

/// Returns the paths that the tree of a `use` declaration names, each with the name under which the
/// declaration makes it known. The tree begins at the start of `text`.
fn tree(text: &str) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    let mut stack: Vec<Path> = Vec::new();
    let (mut path, mut name, mut alias): (Path, String, Option<String>) = Default::default();
    let mut close = |path: &mut Path, name: &mut String, alias: &mut Option<String>| {
        let last = std::mem::take(name);
        if !last.is_empty() {
            match alias.take() {
                Some(of) => {
                    path.push(of);
                    found.push((path.clone(), last));
                }
                None if last == "self" => {
                    found.push((path.clone(), path.last().cloned().unwrap_or_default()));
                }
                None => {
                    path.push(last.clone());
                    found.push((path.clone(), last));
                }
            }
        }
    };
    // Read words and punctuation of the tree one by one. `stack` contains the path before each
    // brace that is open, `path` is the path before the current word, and `close` records a path
    // that ends here.
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c.is_alphanumeric() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            match &rest[..end] {
                "as" => alias = Some(std::mem::take(&mut name)),
                word => word.clone_into(&mut name),
            }
            rest = &rest[end..];
            continue;
        }
        match c {
            ':' if rest.starts_with("::") => {
                path.push(std::mem::take(&mut name));
                rest = &rest[2..];
                continue;
            }
            '{' => stack.push(path.clone()),
            ',' | '}' => {
                close(&mut path, &mut name, &mut alias);
                path = stack.last().cloned().unwrap_or_default();
                if c == '}' {
                    stack.pop();
                }
                if stack.is_empty() {
                    return found;
                }
            }
            c if c.is_whitespace() => {}
            _ => break,
        }
        rest = &rest[c.len_utf8()..];
    }
    close(&mut path, &mut name, &mut alias);
    found
}

/// Maximum number of re-exports that are followed from a name to the module that defines it.
const MAX_REEXPORTS: usize = 8;

/// The modules of a folder of sources, and the names that each of these modules imports.
struct Names {
    modules: BTreeSet<Path>,
    /// For each module, the names that its `use` declarations make known in it, with the path of
    /// each name.
    used: BTreeMap<Path, BTreeMap<String, Path>>,
}

impl Names {
    /// Returns the module that defines the item that `path` names, where `path` is as written in
    /// the module `from`. Returns `None` if the item belongs to another crate. If more than
    /// `MAX_REEXPORTS` re-exports have to be followed, returns the module that was reached by then.
    /// `depth` is the number of re-exports that were followed already.
    fn resolve(&self, from: &Path, path: &[String], depth: usize) -> Option<Path> {
        let mut at = from.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => (at, rest) = (Path::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                let child = [&at[..], &[first.to_owned()]].concat();
                if !self.modules.contains(&child) && !self.used[&at].contains_key(first) {
                    return None;
                }
            }
        }
        while let Some(name) = rest.first() {
            let child = [&at[..], std::slice::from_ref(name)].concat();
            if self.modules.contains(&child) {
                (at, rest) = (child, &rest[1..]);
                continue;
            }
            let known = self.used.get(&at).and_then(|used| used.get(name)).filter(|_| depth < MAX_REEXPORTS);
            if let Some(known) = known {
                let whole = [known, &rest[1..]].concat();
                return self.resolve(&at, &whole, depth + 1).or(Some(at));
            }
            break;
        }
        Some(at)
    }
}

/// Returns the graph of the files in a folder of sources, with an arrow from each file to each file
/// of which it names an item. If `defined` is true, the arrow leads to the file that defines the
/// item. If it is false, the arrow leads to the file from which the item is imported, which may
/// only re-export it.
pub(crate) fn graph_of(folder: &str, defined: bool) -> Graph {
    let texts = files(folder, "rs").into_iter().map(|file| (module_of(folder, &file), code(&file)));
    arrows(&texts.filter(|(_, text)| !text.is_empty()).collect(), defined)
}

/// Separates the inline modules (`mod x { .. }`) of a source from the source. Returns each inline
/// module with its own text, and `module` with the rest of the text. Modules for tests are left
/// out. Sources are formatted, so the brace that closes a module has the indentation of the
/// module's first line.
fn split_inline(module: &Path, text: &str) -> Vec<(Path, String)> {
    let (mut rest, mut found) = (String::new(), Vec::new());
    let mut lines = text.lines();
    let mut before = "";
    while let Some(line) = lines.next() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [visibility @ .., "mod", name, "{"] = &words[..]
            && visibility.iter().all(|word| word.starts_with("pub"))
        {
            let end = format!("{indent}}}");
            let inside: String = lines.by_ref().take_while(|l| *l != end).map(|l| format!("{l}\n")).collect();
            if before.trim() != "#[cfg(test)]" {
                found.extend(split_inline(&[&module[..], &[(*name).to_owned()]].concat(), &inside));
            }
        } else {
            rest += line;
            rest.push('\n');
        }
        before = line;
    }
    found.push((module.clone(), rest));
    found
}

/// Returns the graph of files, with an arrow from each file to each file that it names. `texts`
/// contains the module and the code of each file. An arrow from or to an inline module counts as an
/// arrow from or to the file that contains the module. `defined` is as in [`graph_of`].
fn arrows(texts: &BTreeMap<Path, String>, defined: bool) -> Graph {
    let uses = |text: &str| -> Vec<(Path, String)> {
        let starts = text
            .match_indices("use ")
            .filter(|&(at, _)| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
        starts.flat_map(|(at, _)| tree(&text[at + 4..])).collect()
    };
    let modules: BTreeMap<Path, String> =
        texts.iter().flat_map(|(module, text)| split_inline(module, text)).collect();
    let used = modules.iter().map(|(module, text)| {
        (module.clone(), uses(text).into_iter().map(|(path, name)| (name, path)).collect())
    });
    let names = Names { modules: modules.keys().cloned().collect(), used: used.collect() };
    let file = |module: &Path| {
        let parents = (0..=module.len()).rev().map(|n| module[..n].to_vec());
        parents.into_iter().find(|parent| texts.contains_key(parent)).expect("a file")
    };
    let mut graph: Graph = texts.keys().map(|module| (module.clone(), BTreeSet::new())).collect();
    for (module, text) in &modules {
        let mut named: Vec<Path> = uses(text).into_iter().map(|(path, _)| path).collect();
        for start in ["crate::", "super::", "self::"] {
            let at = text.match_indices(start).map(|(at, _)| at);
            let at =
                at.filter(|&at| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':'));
            named.extend(at.flat_map(|at| tree(&text[at..])).map(|(path, _)| path));
        }
        let from = file(module);
        let to = named
            .iter()
            .filter_map(|path| names.resolve(module, path, if defined { 0 } else { MAX_REEXPORTS }));
        graph.get_mut(&from).unwrap().extend(to.map(|to| file(&to)).filter(|to| *to != from));
    }
    graph
}

/// Returns the import cycles of a graph: the groups of two or more modules in which each module
/// reaches all others along arrows.
fn cycles(graph: &Graph) -> Vec<BTreeSet<Path>> {
    let reach = |from: &Path| {
        let (mut seen, mut pending) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(at) = pending.pop() {
            for to in graph.get(&at).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    pending.push(to.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Path, BTreeSet<Path>> = graph.keys().map(|from| (from, reach(from))).collect();
    let mut found: Vec<BTreeSet<Path>> = Vec::new();
    for (from, to) in &reached {
        let cycle: BTreeSet<Path> = to
            .iter()
            .filter(|to| reached.get(to).is_some_and(|back| back.contains(*from)))
            .cloned()
            .collect();
        if cycle.len() > 1 && !found.contains(&cycle) {
            found.push(cycle);
        }
    }
    found
}

/// Returns the import cycles that are not allowed: those that leave the folder of a file, and those
/// between files of which none is the parent of another file of the cycle. A file and its children
/// may name each other.
fn wrong(graph: &Graph) -> Vec<BTreeSet<Path>> {
    // First treat each file and its children as one: a name that a child uses counts as used by its
    // parent. The root of the crate is left out, because all files are its children.
    let mut whole = graph.clone();
    for child in graph.keys().filter(|path| path.len() > 1) {
        whole.entry(child[..child.len() - 1].to_vec()).or_default().insert(child.clone());
    }
    whole.remove(&Path::new());
    let mut found = cycles(&whole);
    found.retain(|cycle| {
        let top = cycle.iter().min_by_key(|path| path.len()).expect("a cycle has files");
        !cycle.iter().all(|path| path.starts_with(top))
    });
    let outside_families = graph.iter().map(|(from, to)| {
        let to = to.iter().filter(|to| !to.starts_with(from) && !from.starts_with(to)).cloned();
        (from.clone(), to.collect())
    });
    for cycle in cycles(&outside_families.collect()) {
        if !found.iter().any(|known| known.is_superset(&cycle)) {
            found.push(cycle);
        }
    }
    found
}

/// Returns the import cycles that are not allowed among `files`, which are given as path and text.
fn by_hand(files: &[(&str, &str)]) -> Vec<String> {
    let path = |file: &str| file.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let texts = files.iter().map(|(file, text)| (path(file), (*text).to_owned())).collect();
    let print =
        |cycle: &BTreeSet<Path>| cycle.iter().map(|path| path.join("/")).collect::<Vec<_>>().join(" ");
    wrong(&arrows(&texts, true)).iter().map(print).collect()
}

#[test]
fn import_cycles_are_found() {
    let one_way = [("", "mod a; mod b;"), ("a", "use crate::b::{self, x as y};"), ("b", "fn x() {}")];
    assert_eq!(by_hand(&one_way), [""; 0]);
    let both = [("a", "use crate::{b::{x, y}, c};"), ("b", "let z = super::a::z;"), ("c", "")];
    assert_eq!(by_hand(&both), ["a b"]);
    // A parent and its children may name each other, but no file outside of the parent's folder may
    // be part of their cycle.
    let parent = [("a", "use b::X;"), ("a/b", "use super::Y;"), ("c", "use crate::a::Y;")];
    assert_eq!(by_hand(&parent), [""; 0]);
    let between = [("a", "mod b;"), ("a/b", "use crate::c::Z;"), ("c", "use crate::a::Y;")];
    assert_eq!(by_hand(&between), ["a a/b c"]);
    // A module may name an item through its parent, which imports it from another module. The arrow
    // then leads to the module that defines the item.
    let through =
        [("", ""), ("a", "pub use b::X; use c::Z;"), ("a/b", "use super::Z;"), ("a/c", "use super::X;")];
    assert_eq!(by_hand(&through), ["a/b a/c"]);
    // An inline module belongs to the file that contains it. `super` inside the inline module is
    // that file.
    let inline =
        "pub(crate) mod x {\n    mod y {\n        use super::super::super::b;\n    }\n    fn f() {}\n}\n";
    let both = [("", "mod a; mod b;"), ("a", inline), ("b", "use crate::a::x::f;")];
    assert_eq!(by_hand(&both), ["a b"]);
    let inside = [("a", "mod x {\n    use super::z;\n}\nuse x::y;"), ("b", "use crate::a;")];
    assert_eq!(by_hand(&inside), [""; 0]);
    let for_tests = [("a", "#[cfg(test)]\nmod x {\n    use crate::b;\n}\n"), ("b", "use crate::a;")];
    assert_eq!(by_hand(&for_tests), [""; 0]);
}

#[test]
fn files_import_one_way() {
    let mut found = String::new();
    for (folder, minimum) in SOURCES.into_iter().zip([500, 30, 30, 30, 8, 3, 15, 200, 0, 20]) {
        let folder = if folder == "src" { folder.to_owned() } else { format!("{folder}/src") };
        let graph = graph_of(&folder, true);
        let count = graph.values().map(BTreeSet::len).sum::<usize>();
        assert!(count >= minimum, "{folder}: {count} arrows");
        for cycle in wrong(&graph) {
            let inside =
                cycle.iter().flat_map(|from| graph[from].intersection(&cycle).map(move |to| (from, to)));
            let inside = inside.map(|(from, to)| format!("\n  {} -> {}", from.join("/"), to.join("/")));
            found += &format!("\n{folder}:{}", inside.collect::<String>());
        }
    }
    assert!(found.is_empty(), "files import each other:{found}");
}

/// Tests that only the module `hooks` and the root of the crate name the module `convertor_hook`,
/// which uses Open MPI's convertor hook. The rest of the preload library reaches this hook through
/// a trait, which `hooks` provides for Open MPI only.
#[test]
fn only_hooks_names_the_hook_of_open_mpi() {
    let is_inside = |path: &Path| path.first().is_some_and(|first| first == "convertor_hook");
    let graph = graph_of("preload/src", true);
    let outside = graph.iter().filter(|(from, to)| !is_inside(from) && to.iter().any(is_inside));
    let names: Vec<String> =
        outside.map(|(from, _)| from.join("/")).filter(|name| !name.is_empty()).collect();
    assert_eq!(names, ["hooks"]);
}
