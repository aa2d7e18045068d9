//! Generator of the header ddtc_mpi.h.

use std::fmt::Write;

use super::layout::{fill, wrap};
use super::pieces::Pieces;
use super::{Argument, Declarations, Entry, Function, Group, Language, What, words};

/// Returns the text of the header. Every function in it is static and inline, because the library
/// exports no names of MPI.
pub(super) fn header(entries: &[Entry], ddtc: &Declarations, pieces: &Pieces) -> String {
    let mut out = pieces.text("head").to_owned();
    // `last` is the kind of the previous entry. A blank line separates entries of different kinds,
    // and precedes every enumeration and section.
    let mut last = "";
    for entry in entries {
        let (kind, text) = match &entry.what {
            What::Section(title) => ("section", section(title)),
            What::Text(name) => match pieces.take(name) {
                Some(text) => ("text", text.to_owned()),
                None => continue,
            },
            What::Type(t) => match &t.declaration {
                Some(declaration) => ("type", format!("typedef {declaration};\n")),
                None => ("type", pieces.text(&t.name).to_owned()),
            },
            What::Constants(g) if g.enumerated => ("enum", enumeration(g, ddtc)),
            What::Constants(g) => ("define", definitions(g, ddtc)),
            What::Function(f) if f.languages.contains(&Language::C) => {
                ("function", function(f, ddtc, pieces))
            }
            What::Function(_) | What::Fortran(_) | What::Pointer { .. } => continue,
        };
        if kind != last || kind == "enum" || kind == "section" {
            out.push('\n');
        }
        out += &comment(&entry.comment);
        out += &text;
        last = kind;
    }
    out + "\n" + pieces.text("foot")
}

/// Returns the comment line that begins a section.
fn section(title: &str) -> String {
    format!("/* ---- {title} {} */\n", "-".repeat(107 - title.len()))
}

/// Returns the comment before an entry in C, or nothing if there is none.
fn comment(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    fill(&format!("/* {} */", lines.join(" ")), "").replace('\n', "\n * ") + "\n"
}

/// Returns the value of a constant as a C expression.
fn value(name: &str, value: Option<&str>, ddtc: &Declarations) -> String {
    value.map_or_else(|| ddtc.counterpart(name), str::to_owned)
}

fn definitions(group: &Group, ddtc: &Declarations) -> String {
    let mut out = String::new();
    for (name, given) in &group.members {
        let plain = value(name, given.as_deref(), ddtc);
        let value = match (&group.of, given) {
            // A number is cast to the group's type. If the value is the name of another constant,
            // that constant has the type already.
            (Some(of), Some(number)) if !number.starts_with("MPI_") => format!("(({of}){number})"),
            _ => plain,
        };
        writeln!(out, "#define {name} {value}").unwrap();
    }
    out
}

fn enumeration(group: &Group, ddtc: &Declarations) -> String {
    let members: Vec<String> = group
        .members
        .iter()
        .map(|(name, given)| format!("    {name} = {}", value(name, given.as_deref(), ddtc)))
        .collect();
    let (before, after) = match &group.of {
        Some(name) => ("typedef enum", format!(" {name}")),
        None => ("enum", String::new()),
    };
    format!("{before} {{\n{}\n}}{after};\n", members.join(",\n"))
}

/// Returns the definition of a function of MPI. If there is a piece with the function's name, that
/// piece is the body.
fn function(f: &Function, ddtc: &Declarations, pieces: &Pieces) -> String {
    let list: Vec<&str> = f.arguments.iter().map(|a| a.text.as_str()).collect();
    let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
    let head = format!("static inline {} {}({list})", f.result, f.name);
    let piece = pieces.take(&f.name);
    // Declarations come before the checks and the statements, as C of 1989 demands.
    let (declarations, statements) = match piece {
        Some(piece) => piece.split_once("\n\n").unwrap_or(("", piece)),
        None => ("", ""),
    };
    let statements = match &piece {
        Some(_) => statements.to_owned(),
        None => format!("    return {};\n", returned(f, ddtc)),
    };
    let statements = checks(f, piece.is_some()) + &statements;
    let unused: Vec<String> = f
        .arguments
        .iter()
        .filter(|a| words(declarations).chain(words(&statements)).all(|w| w != a.name))
        .map(|a| format!("(void){}", a.name))
        .collect();
    let unused = if unused.is_empty() { String::new() } else { format!("    {};\n", unused.join(", ")) };
    let body = format!("{declarations}\n{unused}{statements}");
    let body: Vec<String> = body.trim_start_matches('\n').lines().map(|l| wrap(l, "        ", "")).collect();
    match &body[..] {
        [line] if head.len() + line.len() < 118 => format!("{head} {{ {} }}\n", line.trim()),
        _ => format!("{}\n{{\n{}\n}}\n", wrap(&head, "    ", ""), body.join("\n")),
    }
}

/// Returns the checks at the beginning of a function. The checks refuse objects that do not exist,
/// and null pointers that the code of the header itself would dereference.
fn checks(f: &Function, by_hand: bool) -> String {
    let mut out = String::new();
    // If a function only calls another function of MPI, that other function makes the checks.
    let hands_on = f.callee().0.starts_with("MPI_") && !by_hand;
    if f.value || hands_on {
        return out;
    }
    for a in &f.arguments {
        let object = match a.declared.as_str() {
            "MPI_Comm" => Some("COMM"),
            "MPI_File" => Some("FILE"),
            "MPI_Session" => Some("SESSION"),
            "MPI_Win" => Some("WIN"),
            _ => None,
        };
        if let Some(object) = object {
            writeln!(out, "    DDTC_MPI_{object}({}, \"{}\");", a.name, f.name).unwrap();
        }
    }
    for a in f.arguments.iter().filter(|a| a.is_pointer() && !f.may_be_null(a)) {
        if by_hand || a.base() == "MPI_Status" {
            writeln!(out, "    DDTC_MPI_NOT_NULL({}, \"{}\");", a.name, f.name).unwrap();
        }
    }
    out
}

/// Returns the C expression after `return` in a generated function. Functions with a handwritten
/// body do not use it.
fn returned(f: &Function, ddtc: &Declarations) -> String {
    if f.cast {
        return format!("({})(intptr_t){}", f.result, f.arguments[0].name);
    }
    let (callee, list) = f.callee();
    let taken = ddtc.taken(&callee, list.len());
    let passed: Vec<String> = list
        .iter()
        .enumerate()
        .map(|(i, text)| match (f.arguments.iter().find(|a| a.name == *text), taken) {
            (Some(argument), Some(taken)) => converted(argument, &taken[i]),
            _ => text.clone(),
        })
        .collect();
    let call = format!("{callee}({})", passed.join(", "));
    // Functions of the tool interface call no error handler, so they return the code directly.
    if f.value || callee.starts_with("MPI_") || f.name.starts_with("MPI_T_") {
        return call;
    }
    match f.communicator() {
        Some(comm) => format!("ddtc_mpi_check_on({comm}, {call}, \"{}\")", f.name),
        None => format!("ddtc_mpi_check({call}, \"{}\")", f.name),
    }
}

/// Returns the C expression with which an argument is passed to a function of ddtc.h. Function
/// pointers and enumerations are cast to the types that ddtc.h has for them.
fn converted(argument: &Argument, taken: &Argument) -> String {
    let name = &argument.name;
    let base = argument.base();
    let enumeration = base.starts_with("MPI_T_") && taken.base() == "int";
    match taken.declared.as_str() {
        "void (*)(void)" if base.ends_with("_function") => format!("(void (*)(void)){name}"),
        declared if enumeration => format!("({declared}){name}"),
        _ => name.clone(),
    }
}
