//! names.txt, the names of MPI that a program over types may mention, and the programs that are made of it.
//!
//! A line is `type NAME`, `function PROTOTYPE` or `fortran NAME`; constants stand in abi.txt, with their values. After a prototype
//! comes what the calls with null pointers need to know:
//!
//! * `null A B`: arguments where a null pointer is as good as any; `null *`: all of them
//! * `with A=E`: what is passed as A, where its name and type do not tell
//! * `fails`: what it asks for does not exist here, so that it fails whatever is passed
//! * `value`: it returns no error code

use std::fmt::Write;

const NAMES: &str = include_str!("names.txt");
const ABI: &str = include_str!("../abi.txt");

/// The names in abi.txt.
pub(crate) fn constants() -> impl Iterator<Item = &'static str> {
    ABI.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split(' ').next())
}

#[cfg(e2e)]
/// Those that are integers in Fortran too: not the tool interface's, which has no Fortran form, not what is known by its address,
/// and not the indices of a status, which have other names there.
pub(crate) fn fortran_constants() -> Vec<String> {
    const OTHERS: [&str; 4] = ["MPI_BOTTOM", "MPI_IN_PLACE", "MPI_STATUS_IGNORE", "MPI_STATUSES_IGNORE"];
    let functions = |n: &str| n.ends_with("_COPY_FN") || n.ends_with("DUP_FN") || n.ends_with("_DELETE_FN");
    let other =
        |n: &str| n.starts_with("MPI_T_") || n.starts_with("MPI_F_") || functions(n) || OTHERS.contains(&n);
    constants().filter(|n| !other(n)).map(str::to_owned).collect()
}

struct Argument {
    /// The declaration without the name.
    declared: String,
    name: String,
}

pub(crate) struct Function {
    pub(crate) name: String,
    result: String,
    arguments: Vec<Argument>,
    null: Vec<String>,
    with: Vec<(String, String)>,
    fails: bool,
    value: bool,
}

/// The lines of a kind.
pub(crate) fn names(kind: &str) -> Vec<&'static str> {
    NAMES.lines().filter_map(|l| l.strip_prefix(kind)?.strip_prefix(' ')).collect()
}

fn argument(text: &str) -> Argument {
    let (text, array) = match text.find('[') {
        Some(at) => (&text[..at], "*"),
        None => (text, ""),
    };
    let at = text.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).expect("type and name") + 1;
    Argument { declared: format!("{}{array}", text[..at].trim()), name: text[at..].to_owned() }
}

pub(crate) fn functions() -> Vec<Function> {
    let parse = |line: &str| {
        let (prototype, notes) = line.split_once(';').unwrap_or((line, ""));
        let (head, rest) = prototype.split_once('(').expect("prototype");
        let (result, name) = head.rsplit_once(' ').expect("result and name");
        let list = rest.rsplit_once(')').expect("prototype").0;
        let mut function = Function {
            name: name.to_owned(),
            result: result.to_owned(),
            arguments: list.split(", ").filter(|a| *a != "void").map(argument).collect(),
            null: Vec::new(),
            with: Vec::new(),
            fails: false,
            value: false,
        };
        for note in notes.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            let mut words = note.split(' ');
            match words.next().expect("a word") {
                "null" => function.null = words.map(str::to_owned).collect(),
                "with" => {
                    let pair = |w: &str| w.split_once('=').map(|(a, e)| (a.to_owned(), e.to_owned()));
                    function.with = words.map(|w| pair(w).expect("A=E")).collect();
                }
                "fails" => function.fails = true,
                "value" => function.value = true,
                other => panic!("{other} in: {line}"),
            }
        }
        for name in function.null.iter().chain(function.with.iter().map(|(a, _)| a)) {
            let known = name == "*" || function.arguments.iter().any(|a| a.name == *name);
            assert!(known, "{name} is no argument: {line}");
        }
        function
    };
    names("function").into_iter().map(parse).collect()
}

/// A C program that has a variable of every type and a pointer of the standard's type to every function.
pub(crate) fn c_mentions(constants: &[String]) -> String {
    let mut code = "#include <mpi.h>\nint main(void)\n{\n".to_owned();
    for (i, name) in names("type").into_iter().enumerate() {
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
/// A Fortran program that takes every name from the module by itself.
pub(crate) fn fortran_mentions(constants: &[String]) -> String {
    let mut code = "program mentions\n".to_owned();
    let procedures = names("fortran").into_iter().map(str::to_owned);
    for name in procedures.chain(constants.iter().cloned()) {
        writeln!(code, "  use mpi, only: {name}").unwrap();
    }
    code += "  implicit none\n  integer :: k\n  k = 0\n";
    for name in constants {
        writeln!(code, "  k = ieor(k, {name})").unwrap();
    }
    code + "  write (*, '(I0)') k\nend program\n"
}

/// What is passed in the place of an argument: a value by its name, or memory with one.
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

const NUMBERS: [&str; 6] =
    ["MPI_Count", "MPI_Aint", "MPI_Offset", "MPI_Fint", "MPI_T_cb_safety", "MPI_T_source_order"];

/// Calls of every function: as it is meant, then with each pointer and handle null in turn. For table/nulls.c.
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
            let legal = f.null.iter().any(|n| n == "*" || *n == argument.name);
            let mut values = values.clone();
            values[i] = "0".to_owned();
            let expected = if legal && !f.fails { "ACCEPTED" } else { "REFUSED" };
            call(&format!("without {}", argument.name), expected, &values);
        }
    }
    code
}
