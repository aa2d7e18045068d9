//! Generators of test programs: programs that mention every name of the table, and calls of every
//! function with null pointers.

use std::fmt::Write;

#[cfg(e2e)]
use super::Language;
use super::{Argument, Entry, Function, What, entries, functions};

const ABI: &str = include_str!("../abi.txt");

/// Returns the names of the constants in abi.txt.
pub(crate) fn constants() -> impl Iterator<Item = &'static str> {
    ABI.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split(' ').next())
}

#[cfg(e2e)]
/// Returns the constants that are integers in Fortran, too. Four kinds of constants are excluded:
/// constants of the tool interface, which has no Fortran binding; constants that are identified by
/// their addresses; callback functions; and the indices of a status, which have other names in
/// Fortran.
pub(crate) fn fortran_constants() -> Vec<String> {
    const OTHERS: [&str; 4] = ["MPI_BOTTOM", "MPI_IN_PLACE", "MPI_STATUS_IGNORE", "MPI_STATUSES_IGNORE"];
    let functions = |n: &str| n.ends_with("_COPY_FN") || n.ends_with("DUP_FN") || n.ends_with("_DELETE_FN");
    let other =
        |n: &str| n.starts_with("MPI_T_") || n.starts_with("MPI_F_") || functions(n) || OTHERS.contains(&n);
    constants().filter(|n| !other(n)).map(str::to_owned).collect()
}

/// Returns the names of the types that the header defines.
fn types() -> Vec<String> {
    let name = |e: Entry| match e.what {
        What::Type(t) => Some(t.name),
        What::Constants(group) if group.enumerated => group.of,
        _ => None,
    };
    entries().into_iter().filter_map(name).collect()
}

/// Returns the names that the Fortran module defines, except for constants.
#[cfg(e2e)]
fn fortran_names() -> Vec<String> {
    let name = |e: Entry| match e.what {
        What::Function(f) if f.languages.contains(&Language::Fortran) => Some(f.name),
        What::Fortran(name) => Some(name),
        _ => None,
    };
    entries().into_iter().filter_map(name).collect()
}

/// Returns a C program that declares a pointer to every type, declares a pointer to every function
/// with the function's type in the standard, and mentions each of `constants`.
pub(crate) fn c_mentions(constants: &[String]) -> String {
    let mut code = "#include <mpi.h>\nint main(void)\n{\n".to_owned();
    for (i, name) in types().iter().enumerate() {
        writeln!(code, "    {name} *type_{i} = 0;\n    (void)type_{i};").unwrap();
    }
    for (i, f) in functions().iter().enumerate() {
        let list: Vec<&str> = f.arguments.iter().map(|a| a.declared.as_str()).collect();
        let list = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
        writeln!(code, "    {} (*function_{i})({list}) = {};\n    (void)function_{i};", f.result, f.name)
            .unwrap();
    }
    for name in constants {
        writeln!(code, "    (void)({name});").unwrap();
    }
    code + "    return 0;\n}\n"
}

#[cfg(e2e)]
/// Returns a Fortran program that imports every name of the module, each with a separate statement.
pub(crate) fn fortran_mentions(constants: &[String]) -> String {
    let mut code = "program mentions\n".to_owned();
    for name in fortran_names().iter().chain(constants) {
        writeln!(code, "  use mpi, only: {name}").unwrap();
    }
    code += "  implicit none\n  integer :: k\n  k = 0\n";
    for name in constants {
        writeln!(code, "  k = ieor(k, {name})").unwrap();
    }
    code + "  write (*, '(I0)') k\nend program\n"
}

/// Returns the C expression that a call passes for an argument. The value depends on the name and
/// type of the argument. For a pointer, the expression points to memory that holds such a value.
fn passed(function: &Function, argument: &Argument) -> String {
    if let Some((_, expression)) = function.with.iter().find(|(a, _)| *a == argument.name) {
        return expression.clone();
    }
    let name = argument.name.trim_start_matches("array_of_");
    let number = match name {
        "rank" | "start" | "starts" | "n" | "lb" | "position" | "displacements" | "required" => "0",
        "order" => "MPI_ORDER_C",
        "distribs" => "MPI_DISTRIBUTE_BLOCK",
        "dargs" => "MPI_DISTRIBUTE_DFLT_DARG",
        "comm_keyval" => "MPI_TAG_UB",
        "type_keyval" => "keyval",
        "errorclass" | "errorcode" => "MPI_ERR_ARG",
        "cat_index" | "cvar_index" | "pvar_index" | "event_index" | "source_index" | "indx" => "0",
        "outsize" | "insize" | "extent" | "buflen" | "name_len" | "desc_len" => "64",
        _ if name.starts_with("max_") => "64",
        _ => "1",
    };
    let text = match name {
        "key" => "\"key\"",
        "name" => "\"ddtc_mode\"",
        _ => "\"text\"",
    };
    let declared = argument.declared.trim_start_matches("const ").replace(" *", "*");
    let handle = |base: &str| base.starts_with("MPI_") && !NUMBERS.contains(&base);
    match declared.strip_suffix('*') {
        Some("void") => "buffer".to_owned(),
        Some("char") if argument.declared.starts_with("const") => text.to_owned(),
        Some("char") => "(char[MPI_MAX_LIBRARY_VERSION_STRING]){0}".to_owned(),
        Some("MPI_Status") => "fresh_status()".to_owned(),
        Some(base) if base.ends_with("_errhandler_function") || base == "MPI_Handler_function" => {
            format!("({base} *)handler")
        }
        Some(base) if base.ends_with("_function") => "0".to_owned(),
        Some(base) if handle(base) => format!("({base}[64]){{fresh_{base}()}}"),
        Some(base) => format!("({base}[64]){{{number}}}"),
        None if declared.ends_with("_function") => "0".to_owned(),
        None if handle(&declared) => match (declared.as_str(), name) {
            ("MPI_Datatype", "oldtype") => "MPI_INT".to_owned(),
            _ => format!("fresh_{declared}()"),
        },
        None => number.to_owned(),
    }
}

/// The types of MPI that are numbers and not handles.
const NUMBERS: [&str; 6] =
    ["MPI_Count", "MPI_Aint", "MPI_Offset", "MPI_Fint", "MPI_T_cb_safety", "MPI_T_source_order"];

/// Returns the calls that table/nulls.c includes. The calls cover each function that returns an
/// error code and has a pointer or handle as an argument. Each such function is called once with
/// valid arguments, and then once for each pointer or handle, with that argument null.
pub(crate) fn null_calls() -> String {
    let mut code = String::new();
    for f in functions().iter().filter(|f| !f.value) {
        let values: Vec<String> = f.arguments.iter().map(|a| passed(f, a)).collect();
        let pointer = |a: &Argument| {
            let declared = a.declared.trim_start_matches("const ");
            let plain = declared.starts_with("MPI_") && !NUMBERS.contains(&declared);
            declared.ends_with('*') || plain
        };
        let pointers: Vec<usize> = (0..values.len()).filter(|&i| pointer(&f.arguments[i])).collect();
        if pointers.is_empty() {
            continue;
        }
        let mut call = |what: &str, expected: &str, values: &[String]| {
            writeln!(code, "CALL(\"{} {what}\", {expected}, {}({}));", f.name, f.name, values.join(", "))
                .unwrap();
        };
        call("as it is meant", if f.fails { "REFUSED" } else { "ACCEPTED" }, &values);
        for i in pointers {
            let argument = &f.arguments[i];
            let legal = f.may_be_null(argument);
            let mut values = values.clone();
            values[i] = "0".to_owned();
            let expected = if legal && !f.fails { "ACCEPTED" } else { "REFUSED" };
            call(&format!("without {}", argument.name), expected, &values);
        }
    }
    code
}
