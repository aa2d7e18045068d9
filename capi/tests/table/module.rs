//! Generator of ddtc_mpi.f90, the Fortran module.

use std::fmt::Write;

use super::bindings::mentioned;
use super::conversion::{body, finish, is_logical};
use super::layout::{fill, grouped, wrap};
use super::pieces::Pieces;
use super::{Declarations, Entry, Function, Group, Language, What, words};

/// Returns the text of two modules: `ddtc_mpi`, and `mpi`, which has the same contents under the
/// usual name. The names of ddtc.h that the procedures use are private.
pub(super) fn module(entries: &[Entry], ddtc: &Declarations, pieces: &Pieces) -> String {
    let procedures = procedures(entries, ddtc, pieces);
    let (functions, constants) = mentioned(&procedures, ddtc);
    let names: Vec<&str> = functions.into_iter().chain(constants.into_iter().map(|(name, _)| name)).collect();
    let private = wrap(&format!("  private :: {}", names.join(", ")), "    ", " &");
    pieces.text("head").to_owned()
        + &parameters(entries, ddtc)
        + "\n"
        + pieces.text("declarations")
        + &private
        + "\n\ncontains\n"
        + &procedures
        + "\n"
        + pieces.text("foot")
}

/// Returns the declarations of the constants that exist in Fortran.
fn parameters(entries: &[Entry], ddtc: &Declarations) -> String {
    let groups: Vec<&Group> = entries
        .iter()
        .filter_map(|e| match &e.what {
            What::Constants(group) if !group.c_only => Some(group),
            _ => None,
        })
        .collect();
    let mut out = String::new();
    for (name, value) in groups.iter().flat_map(|g| &g.members) {
        let value = number(name, value.as_deref(), &groups, ddtc);
        // Strings in Fortran have no NUL, so their maximum length is smaller by 1.
        let value = if name.starts_with("MPI_MAX_") { value - 1 } else { value };
        writeln!(out, "  integer, parameter :: {name} = {value}").unwrap();
    }
    out
}

/// Returns the number of a constant. If the value in the table is a number, returns that number. If
/// it is the name of another constant, returns the number of that constant. If the table has no
/// value, returns the number of the corresponding constant in ddtc.h.
fn number(name: &str, value: Option<&str>, groups: &[&Group], ddtc: &Declarations) -> i64 {
    let Some(value) = value else {
        return ddtc.constants[&ddtc.counterpart(name)];
    };
    let parsed = match value.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => value.parse().ok(),
    };
    parsed.unwrap_or_else(|| {
        let other = groups.iter().flat_map(|g| &g.members).find(|(n, _)| n == value);
        let (other, value) = other.unwrap_or_else(|| panic!("{name} is {value}?"));
        number(other, value.as_deref(), groups, ddtc)
    })
}

/// Returns the procedures of the module with their comments and headings, after the helpers.
fn procedures(entries: &[Entry], ddtc: &Declarations, pieces: &Pieces) -> String {
    let mut out = String::from("\n") + pieces.text("helpers");
    // A heading is written only if an entry of its section exists in Fortran.
    let mut heading = String::new();
    for entry in entries {
        let text = match &entry.what {
            What::Section(title) => {
                heading = format!("\n  ! ---- {title} {}\n", "-".repeat(107 - title.len()));
                continue;
            }
            What::Text(name) => match pieces.take(name) {
                Some(text) => text.to_owned(),
                None => continue,
            },
            What::Function(f) if f.languages.contains(&Language::Fortran) => {
                let comment = entry.comment.join(" ");
                let comment = if comment.is_empty() { comment } else { fill(&comment, "  ! ") + "\n" };
                comment + &procedure(f, ddtc, pieces)
            }
            _ => continue,
        };
        out += &std::mem::take(&mut heading);
        out += "\n";
        out += &text;
    }
    out
}

/// Returns the procedure for a function: a subroutine with ierror if the C function returns an
/// `int`, otherwise a function.
fn procedure(f: &Function, ddtc: &Declarations, pieces: &Pieces) -> String {
    let mut names: Vec<&str> = f.arguments.iter().map(|a| a.name.as_str()).collect();
    let (head, end, result) = if f.result == "int" {
        names.push("ierror");
        let head = format!("  subroutine {}({})", f.name, names.join(", "));
        (head, "subroutine", "integer, intent(out), optional :: ierror".to_owned())
    } else {
        let pure = if f.pure { "pure " } else { "" };
        let head = format!("  {pure}function {}({}) result(answer)", f.name, names.join(", "));
        (head, "function", format!("{} :: answer", kind(&f.result, f)))
    };
    let mut lines = vec![head];
    let any = f.arguments.iter().filter(|a| a.base() == "void").map(|a| a.name.as_str()).collect::<Vec<_>>();
    if !any.is_empty() {
        lines.push(format!("    !GCC$ ATTRIBUTES NO_ARG_CHECK :: {}", any.join(", ")));
    }
    lines.extend(declarations(f));
    lines.push(format!("    {result}"));
    match pieces.take(&f.name) {
        Some(piece) => {
            lines.extend(piece.lines().map(str::to_owned));
            lines.extend(ending(f, piece));
        }
        None => lines.extend(body(f, ddtc)),
    }
    lines.push(format!("  end {end}"));
    lines.iter().map(|l| wrap(l, "      ", " &") + "\n").collect()
}

/// Returns the statement that sets ierror at the end of a handwritten body, or none if the body
/// mentions ierror or the procedure is a function.
fn ending(f: &Function, piece: &str) -> Option<String> {
    let has = |name| words(piece).any(|w| w == name);
    if has("ierror") || f.result != "int" {
        return None;
    }
    Some(match f.communicator() {
        _ if has("code") => finish(f, "code"),
        Some(comm) => finish(f, &format!("known({comm}, '{}')", f.name)),
        None => "    if (present(ierror)) ierror = MPI_SUCCESS".to_owned(),
    })
}

/// Returns the Fortran type of a number or a handle. Panics if it is not known.
fn kind(base: &str, f: &Function) -> &'static str {
    match base {
        "int" | "MPI_Comm" | "MPI_Datatype" | "MPI_Errhandler" | "MPI_Info" | "MPI_Op" => "integer",
        "MPI_Count" => "integer(MPI_COUNT_KIND)",
        "MPI_Aint" => "integer(MPI_ADDRESS_KIND)",
        "double" => "double precision",
        _ => panic!("{}: what {base} is in Fortran is not known", f.name),
    }
}

/// Returns the declarations of the dummy arguments of a procedure.
fn declarations(f: &Function) -> Vec<String> {
    grouped(f.arguments.iter().map(|a| {
        let intent = if a.is_pointer() && !a.is_const() { "intent(inout)" } else { "intent(in)" };
        let (declared, shape) = match a.base() {
            "void" if a.is_const() => ("type(*), intent(in)".to_owned(), ""),
            "void" => ("type(*)".to_owned(), ""),
            "char" => (format!("character(len=*), {intent}"), ""),
            "int" if is_logical(a) => (format!("logical, {intent}"), ""),
            "MPI_Status" => (format!("integer, {intent}"), "(MPI_STATUS_SIZE)"),
            base if base.ends_with("_function") => (format!("procedure({base})"), ""),
            base => (format!("{}, {intent}", kind(base, f)), if a.array { "(*)" } else { "" }),
        };
        (declared, format!("{}{shape}", a.name))
    }))
}
