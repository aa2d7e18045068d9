//! ddtc_mpi.h.

use std::fmt::Write;

use super::layout::{fill, wrap};
use super::pieces::Pieces;
use super::{Argument, Declarations, Entry, Function, Group, Language, What, words};

/// The header. Every function is static: what the library exports bears ddtc's names.
pub(super) fn header(entries: &[Entry], ddtc: &Declarations, pieces: &Pieces) -> String {
    let mut out = pieces.text("head").to_owned();
    // A blank line before what is no line among its like.
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

fn section(title: &str) -> String {
    format!("/* ---- {title} {} */\n", "-".repeat(107 - title.len()))
}

fn comment(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    fill(&format!("/* {} */", lines.join(" ")), "").replace('\n', "\n * ") + "\n"
}

/// A constant's value in C.
fn value(name: &str, value: Option<&str>, ddtc: &Declarations) -> String {
    value.map_or_else(|| ddtc.counterpart(name), str::to_owned)
}

fn definitions(group: &Group, ddtc: &Declarations) -> String {
    let mut out = String::new();
    for (name, given) in &group.members {
        let plain = value(name, given.as_deref(), ddtc);
        let value = match (&group.of, given) {
            // Names have their type.
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

fn function(f: &Function, ddtc: &Declarations, pieces: &Pieces) -> String {
    let list: Vec<&str> = f.arguments.iter().map(|a| a.text.as_str()).collect();
    let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
    let head = format!("static inline {} {}({list})", f.result, f.name);
    let piece = pieces.take(&f.name);
    // Declarations come first: older programs ask for that.
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

/// Refusals before anything else: of objects that do not exist, of null pointers that the function itself would follow.
fn checks(f: &Function, by_hand: bool) -> String {
    let mut out = String::new();
    // Who hands everything on leaves the checks to the other.
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
    // The tool interface calls no error handler.
    if f.value || callee.starts_with("MPI_") || f.name.starts_with("MPI_T_") {
        return call;
    }
    match f.communicator() {
        Some(comm) => format!("ddtc_mpi_check_on({comm}, {call}, \"{}\")", f.name),
        None => format!("ddtc_mpi_check({call}, \"{}\")", f.name),
    }
}

/// An argument as ddtc.h takes it: without the types of functions and enumerations.
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
