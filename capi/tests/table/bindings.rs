//! Generator of ddtc_c.f90. With iso_c_binding, this file declares the functions and constants of
//! ddtc.h that the Fortran module uses.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::layout::wrap;
use super::pieces::Pieces;
use super::{Argument, Declarations, Entry, What, words};

/// Finds the names of ddtc.h in Fortran code outside of comments. Returns the functions, and the
/// constants with their values, each once and in alphabetical order.
pub(super) fn mentioned<'a>(code: &'a str, ddtc: &Declarations) -> (Vec<&'a str>, Vec<(&'a str, i64)>) {
    let code = code.lines().filter(|l| !l.trim_start().starts_with('!'));
    let (mut functions, mut constants) = (Vec::new(), BTreeMap::new());
    for word in code.flat_map(words) {
        if ddtc.functions.contains_key(word) {
            functions.push(word);
        } else if let Some(value) = ddtc.constants.get(word) {
            constants.insert(word, *value);
        }
    }
    functions.sort_unstable();
    functions.dedup();
    (functions, constants.into_iter().collect())
}

/// Returns the text of the module `ddtc_c`, with the functions and constants that `code` uses.
/// Panics if the table declares a pointer that is not an argument of any of these functions.
pub(super) fn bindings(entries: &[Entry], code: &str, ddtc: &Declarations, pieces: &Pieces) -> String {
    let (functions, constants) = mentioned(code, ddtc);
    for (function, argument, _) in pointers(entries) {
        let known = || ddtc.function(function).arguments.iter().any(|a| a.name == argument);
        assert!(functions.contains(&function) && known(), "pointer {function} {argument} is of no use");
    }
    let mut out = pieces.text("ddtc_c").to_owned();
    for (name, value) in constants {
        writeln!(out, "  integer(c_int), parameter :: {name} = {value}").unwrap();
    }
    out += "\n  interface\n";
    for name in functions {
        let declared = ddtc.function(name);
        let list: Vec<&str> = declared.arguments.iter().map(|a| a.name.as_str()).collect();
        let result = match declared.result.as_str() {
            "int" => "integer(c_int)",
            "double" => "real(c_double)",
            "ddtc_aint" => "integer(c_intptr_t)",
            "const char *" => "type(c_ptr)",
            other => panic!("{name}: a result of type {other}"),
        };
        let head = format!("    {result} function {name}({}) bind(C)", list.join(", "));
        writeln!(out, "{}\n      import", wrap(&head, "        ", " &")).unwrap();
        for a in &declared.arguments {
            out += &argument(entries, name, a);
        }
        out += "    end function\n";
    }
    out + "  end interface\nend module ddtc_c\n"
}

/// Returns the `pointer` entries of the table as tuples of function, argument and declaration.
fn pointers(entries: &[Entry]) -> impl Iterator<Item = (&str, &str, &str)> {
    entries.iter().filter_map(|e| match &e.what {
        What::Pointer { function, argument, declaration } => {
            Some((function.as_str(), argument.as_str(), declaration.as_str()))
        }
        _ => None,
    })
}

/// Returns the declaration of one argument. Panics if its type is unknown.
fn argument(entries: &[Entry], function: &str, a: &Argument) -> String {
    let name = &a.name;
    let pointer = pointers(entries).find(|(f, argument, _)| *f == function && argument == name);
    if let Some((_, _, declaration)) = pointer {
        // With this directive, gfortran accepts an actual argument of any type and rank.
        let any = declaration.starts_with("type(*)");
        let ignored =
            if any { format!("      !GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}\n") } else { String::new() };
        return format!("{ignored}      {declaration} :: {name}\n");
    }
    if a.declared == "void (*)(void)" {
        return format!("      type(c_funptr), value :: {name}\n");
    }
    let plain = match a.base() {
        "int" => "integer(c_int)",
        "ddtc_count" => "integer(c_int64_t)",
        "ddtc_aint" | "ddtc_info" | "ddtc_errhandler" => "integer(c_intptr_t)",
        "ddtc_datatype" | "ddtc_op" => "type(c_ptr)",
        "char" => "character(kind=c_char)",
        // A buffer is passed as its address.
        "void" => return format!("      type(c_ptr), value :: {name}\n"),
        other => panic!("{function}: an argument of type {other}"),
    };
    let intent = match (a.is_pointer(), a.is_const()) {
        (false, _) => "value",
        (true, true) => "intent(in)",
        (true, false) => "intent(inout)",
    };
    let shape = if a.array || (a.base() == "char" && a.is_pointer()) { "(*)" } else { "" };
    format!("      {plain}, {intent} :: {name}{shape}\n")
}
