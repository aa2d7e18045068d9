//! Line breaking for generated files, and grouping of Fortran declarations.

/// Maximum number of columns of a generated line.
const WIDTH: usize = 120;

/// Breaks `text` after commas into lines of at most [`WIDTH`] columns and returns the result.
/// `indent` begins every line but the first, and `mark` ends every line but the last. Panics if
/// there is no comma at which to break.
pub(super) fn wrap(text: &str, indent: &str, mark: &str) -> String {
    let (mut lines, mut rest) = (Vec::new(), text.to_owned());
    while rest.len() > WIDTH {
        let room = WIDTH - mark.len();
        let at = rest[..room].rfind(", ").unwrap_or_else(|| panic!("no place to break: {rest}")) + 1;
        lines.push(format!("{}{mark}", &rest[..at]));
        rest = format!("{indent}{}", rest[at..].trim_start());
    }
    lines.push(rest);
    lines.join("\n")
}

/// Returns the words of `text` in lines of at most [`WIDTH`] columns. Each line begins with
/// `indent`. A word that is longer than a line has a line of its own.
pub(super) fn fill(text: &str, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("a line");
        if !line.is_empty() && indent.len() + line.len() + word.len() >= WIDTH {
            lines.push(word.to_owned());
        } else {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        }
    }
    lines.iter().map(|l| format!("{indent}{l}")).collect::<Vec<_>>().join("\n")
}

/// Returns Fortran declarations of variables. Neighbouring variables of the same type share a line.
pub(super) fn grouped(variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (declared, name) in variables {
        match lines.last_mut() {
            Some((last, names)) if *last == declared => *names += &format!(", {name}"),
            _ => lines.push((declared, name)),
        }
    }
    lines.into_iter().map(|(declared, names)| format!("    {declared} :: {names}")).collect()
}
