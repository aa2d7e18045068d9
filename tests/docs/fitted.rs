//! Tests of the table under "Fitted constants" in docs/PRELOAD.md: each value in the table must be
//! the value of the constant in the sources.

use crate::text::read;

/// A row of the table of fitted constants in docs/PRELOAD.md.
struct Row {
    /// Path of the source file from the root of the workspace.
    file: String,
    /// Name of the constant, field or function whose value the row gives.
    name: String,
    /// Text of the cell with the value of the constant.
    value: String,
}

/// Returns the section "Fitted constants" of docs/PRELOAD.md.
fn section() -> String {
    let document = read("docs/PRELOAD.md");
    let (_, section) = document.split_once("\n## Fitted constants\n").expect("the section");
    section.split("\n## ").next().unwrap().to_owned()
}

/// Returns the rows of the table of constants in `section`.
fn rows(section: &str) -> Vec<Row> {
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let mut cells = row.split(" | ");
        let (key, value) = (cells.next().unwrap(), cells.next().expect("a value"));
        let (file, name) = key.trim_end_matches('`').rsplit_once("::").expect("a file and a name");
        let is_whole = file.starts_with("hosts/") || file.starts_with("src/");
        let file = if is_whole { file.to_owned() } else { format!("preload/src/{file}") };
        Row { file, name: name.to_owned(), value: value.to_owned() }
    })
    .collect()
}

/// Returns the value of a Rust expression that consists of numbers, shifts, products and constants
/// of the same source file. Returns `None` for any other expression.
fn evaluated(source: &str, expression: &str) -> Option<u64> {
    let expression = expression.trim();
    if let Some((left, right)) = expression.split_once("<<") {
        return Some(evaluated(source, left)? << evaluated(source, right)?);
    }
    if let Some((left, right)) = expression.split_once('*') {
        return Some(evaluated(source, left)? * evaluated(source, right)?);
    }
    let digits: String = expression.chars().filter(|&c| c != '_').collect();
    digits.parse().ok().or_else(|| constant(source, expression))
}

/// Returns the value of the constant `name` in a source, or the initial value of the atomic static
/// of that name.
fn constant(source: &str, name: &str) -> Option<u64> {
    let definition = source.lines().find_map(|line| {
        let line = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        let line = line.strip_prefix("const ").or_else(|| line.strip_prefix("static "))?;
        line.strip_prefix(name)?.strip_prefix(": ")
    })?;
    let (_, expression) = definition.split_once(" = ")?;
    let expression = expression.trim_end_matches(';');
    let inner = expression.split_once("::new(").map(|(_, inner)| inner.trim_end_matches(')'));
    evaluated(source, inner.unwrap_or(expression))
}

/// Returns the number in a cell of the table, such as `80 KiB`, `1500 ns` or `63`. Returns `None`
/// if the cell does not begin with a whole number.
fn said(cell: &str) -> Option<u64> {
    let mut words = cell.split(' ');
    let number: u64 = words.next()?.parse().ok()?;
    Some(match words.next() {
        Some("KiB") => number << 10,
        Some("MiB") => number << 20,
        _ => number,
    })
}

/// Returns the four profiles of MPI libraries in which `source` sets costs, each with the text of
/// its definition.
fn profiles(source: &str) -> Vec<(&'static str, &str)> {
    [("MPICH", "MPICH"), ("MPICH 4.2", "MPICH_4_2"), ("Intel MPI", "INTEL"), ("Open MPI", "OPEN_MPI")]
        .into_iter()
        .map(|(library, name)| {
            let (_, rest) = source.split_once(&format!("pub const {name}: Profile = ")).expect("a profile");
            (library, rest.split("\n};").next().unwrap())
        })
        .collect()
}

/// Returns the text of the value of the field `name` in `text`, up to the next comma or the end of
/// the line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let at = text.find(&format!(" {name}: "))?;
    text[at..].split_once(": ")?.1.split([',', '\n']).next()
}

/// Returns what is wrong with a row of the table of fitted constants, or `None` if its value is
/// that in the sources.
fn wrong(row: &Row) -> Option<String> {
    let Row { file, name, value } = row;
    let source = read(file);
    if file == "hosts/src/profile.rs" {
        // For the file with the profiles, the cell has the form "MPICH `2 << 20`, Intel MPI
        // `u64::MAX` bytes". The cell must name exactly the MPI libraries whose profiles set the
        // field.
        return profiles(&source).into_iter().find_map(|(library, text)| {
            let listed = value
                .split(", ")
                .find_map(|part| part.strip_prefix(library)?.strip_prefix(" `")?.split('`').next());
            let set = field(text, name);
            (listed != set).then(|| format!("{name} of {library} is {set:?}, not {listed:?}"))
        });
    }
    let found = if name.chars().all(|c| c.is_ascii_uppercase() || c == '_') {
        constant(&source, name)
    } else if source.contains(&format!("fn {name}(")) {
        // The name in this row is that of a function. The number is inside the function's body,
        // which is not checked.
        return None;
    } else {
        // The name in this row is that of a field. Take the first `name: value` in the source whose
        // value is a number; the definition of the field has a type in that place.
        let mark = format!(" {name}: ");
        source.match_indices(&mark).find_map(|(at, _)| evaluated(&source, field(&source[at..], name)?))
    };
    let said = said(value);
    (found.is_none() || found != said).then(|| format!("{file}: {name} is {found:?}, not {said:?}"))
}

#[test]
fn constants_have_the_values_of_the_table() {
    let section = section();
    let rows = rows(&section);
    let number = rows.len();
    assert!(section.contains(&format!("These {number} values")), "the table has {number} rows");
    let wrong: Vec<String> = rows.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "sources, not docs/PRELOAD.md:\n{}", wrong.join("\n"));
}

#[test]
fn the_table_has_all_that_was_fitted_in_these_files() {
    let rows = rows(&section());
    let has = |file: &str, name: &str| rows.iter().any(|row| row.file == file && row.name == name);
    for file in ["preload/src/worth.rs", "preload/src/overhead_budget.rs"] {
        let source = read(file);
        let names = source.split("const ").skip(1).filter_map(|rest| rest.split_once(": u64 = "));
        for (name, _) in names.filter(|(name, _)| !name.contains(' ')) {
            assert!(has(file, name), "docs/PRELOAD.md lacks {name} of {file}");
        }
    }
    let source = read("hosts/src/profile.rs");
    let (_, costs) = source.split_once("pub struct Costs {").expect("the costs");
    let fields = costs.split("\n}").next().unwrap().lines();
    for name in fields.filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next()) {
        assert!(has("hosts/src/profile.rs", name), "docs/PRELOAD.md lacks the cost {name}");
    }
}

#[test]
fn values_of_sources_and_cells_are_read() {
    let source = "const A: u64 = 1_500;\npub(crate) const B: usize = 2 * A;\nstatic C: AtomicU32 = AtomicU32::new(64);\npub const D: i64 = 3 << 10;\n";
    let values = ["A", "B", "C", "D", "E"].map(|name| constant(source, name));
    assert_eq!(values, [Some(1500), Some(3000), Some(64), Some(3072), None]);
    assert_eq!(["80 KiB", "1500 ns", "63", "1/4 ns"].map(said), [Some(81920), Some(1500), Some(63), None]);
    assert_eq!(field("{ a: 9 << 10, ab: 2 }", "ab"), Some("2 }"));
}
