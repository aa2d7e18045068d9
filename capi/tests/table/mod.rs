//! Parser for names.txt, the table of all names of MPI that ddtc implements.
//!
//! The header and the Fortran files are generated from the table (`interfaces`), and so are test
//! programs that mention every name and call every function (`programs`). The comment at the top of
//! names.txt describes the lines of the table.

mod bindings;
mod conversion;
mod declarations;
mod header;
mod interfaces;
mod layout;
mod module;
mod pieces;
mod programs;

pub(crate) use declarations::Declarations;
pub(crate) use programs::{c_mentions, constants, null_calls};
#[cfg(e2e)]
pub(crate) use programs::{fortran_constants, fortran_mentions};

const NAMES: &str = include_str!("names.txt");

/// A line of the table, or a group of constants, with the comment before it.
struct Entry {
    comment: Vec<String>,
    what: What,
}

/// The content of an entry. Each variant belongs to one form of lines in the table.
enum What {
    Section(String),
    Text(String),
    Type(Type),
    Constants(Group),
    Function(Function),
    /// A name that a handwritten piece of the Fortran module defines.
    Fortran(String),
    /// The Fortran declaration of a pointer that is an argument of a function of ddtc.h.
    Pointer {
        function: String,
        argument: String,
        declaration: String,
    },
}

struct Type {
    name: String,
    /// Text after `typedef`, or none if a handwritten piece has the declaration.
    declaration: Option<String>,
}

struct Group {
    /// True for enumerators, false for macros.
    enumerated: bool,
    /// Type to which macros are cast, or name of the enumeration.
    of: Option<String>,
    c_only: bool,
    members: Vec<(String, Option<String>)>,
}

/// A language in which a function exists.
#[derive(Clone, Copy, PartialEq)]
enum Language {
    C,
    Fortran,
}

/// A function of the table. The fields from `call` on are the notes after the prototype.
pub(crate) struct Function {
    pub(crate) name: String,
    languages: Vec<Language>,
    result: String,
    arguments: Vec<Argument>,
    call: Option<String>,
    cast: bool,
    value: bool,
    pure: bool,
    null: Vec<String>,
    with: Vec<(String, String)>,
    fails: bool,
}

impl Function {
    /// Returns true if the table allows a null pointer for an argument.
    fn may_be_null(&self, argument: &Argument) -> bool {
        self.null.iter().any(|n| n == "*" || *n == argument.name)
    }

    /// Returns the name of the function that is called, and the expressions that are passed to it.
    fn callee(&self) -> (String, Vec<String>) {
        let all = |callee: &str| {
            // The communicator is checked before the call. It is passed on only if the callee is
            // another function of MPI, since the functions of ddtc.h have no communicators.
            let passed =
                self.arguments.iter().filter(|a| a.base() != "MPI_Comm" || callee.starts_with("MPI_"));
            passed.map(|a| a.name.clone()).collect()
        };
        let call = match &self.call {
            Some(call) => call.clone(),
            None => format!("ddtc_{}", self.name["MPI_".len()..].to_lowercase()),
        };
        match call.split_once('(') {
            None => (call.clone(), all(&call)),
            Some((name, list)) => (name.to_owned(), split(list.strip_suffix(')').expect("a call"))),
        }
    }

    /// Returns the name of the communicator argument, or none.
    fn communicator(&self) -> Option<&str> {
        self.arguments.iter().find(|a| a.base() == "MPI_Comm").map(|a| a.name.as_str())
    }
}

/// An argument of a prototype.
struct Argument {
    /// The declaration as it is written in the prototype.
    text: String,
    /// The declaration without the name. Arrays are written as pointers.
    declared: String,
    name: String,
    array: bool,
}

impl Argument {
    fn parse(text: &str) -> Argument {
        // The name of a pointer to a function is inside its declaration.
        if let Some((before, after)) = text.split_once("(*") {
            let (name, list) = after.split_once(')').expect("pointer to a function");
            let declared = format!("{before}(*){list}");
            return Argument { text: text.to_owned(), declared, name: name.to_owned(), array: false };
        }
        let (bare, array) = match text.find('[') {
            Some(at) => (&text[..at], true),
            None => (text, false),
        };
        let at = bare.rfind(|c: char| !is_word(c)).expect("type and name") + 1;
        let declared = format!("{}{}", bare[..at].trim(), if array { "*" } else { "" });
        Argument { text: text.to_owned(), declared, name: bare[at..].to_owned(), array }
    }

    fn is_const(&self) -> bool {
        self.declared.starts_with("const ")
    }

    fn is_pointer(&self) -> bool {
        self.declared.contains('*')
    }

    /// Returns the type without `const` and without asterisks.
    fn base(&self) -> &str {
        self.declared.trim_start_matches("const ").trim_end_matches(['*', ' '])
    }
}

/// Returns true for a character of an identifier or a number.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the words of a text, which are its names and numbers.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c)).filter(|w| !w.is_empty())
}

/// Splits a list at its commas, except for those inside of parentheses.
fn split(list: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.into_iter().map(|p| p.trim().to_owned()).filter(|p| !p.is_empty()).collect()
}

/// Returns the result, name and arguments of a prototype, or none if `text` is not a prototype.
fn prototype(text: &str) -> Option<(String, String, Vec<Argument>)> {
    let (head, rest) = text.split_once('(')?;
    let at = head.rfind(|c: char| !is_word(c))? + 1;
    let list = split(rest.rsplit_once(')')?.0);
    let arguments = list.iter().filter(|a| *a != "void").map(|a| Argument::parse(a)).collect();
    Some((head[..at].trim().to_owned(), head[at..].to_owned(), arguments))
}

/// Parses a prototype and the notes after it. Panics if a note is unknown or names no argument.
fn function(languages: &[Language], line: &str) -> Function {
    let mut parts = line.split(';').map(str::trim);
    let (result, name, arguments) =
        prototype(parts.next().expect("a part")).unwrap_or_else(|| panic!("no prototype: {line}"));
    let mut function = Function {
        name,
        languages: languages.to_vec(),
        result,
        arguments,
        call: None,
        cast: false,
        value: false,
        pure: false,
        null: Vec::new(),
        with: Vec::new(),
        fails: false,
    };
    for note in parts {
        let (word, rest) = note.split_once(' ').unwrap_or((note, ""));
        let list = || rest.split(' ');
        match word {
            "=" => function.call = Some(rest.to_owned()),
            "cast" => (function.cast, function.value) = (true, true),
            "value" => function.value = true,
            "pure" => function.pure = true,
            "null" => function.null = list().map(str::to_owned).collect(),
            "with" => {
                let pair = |w: &str| w.split_once('=').map(|(a, e)| (a.to_owned(), e.to_owned()));
                function.with = list().map(|w| pair(w).expect("A=E")).collect();
            }
            "fails" => function.fails = true,
            _ => panic!("{note} in: {line}"),
        }
    }
    for name in function.null.iter().chain(function.with.iter().map(|(a, _)| a)) {
        let known = name == "*" || function.arguments.iter().any(|a| a.name == *name);
        assert!(known, "{name} is no argument: {line}");
    }
    function
}

/// Parses the part of a line after the word `type`.
fn type_of(rest: &str) -> Type {
    // The name of a function type is in parentheses, as in `int(NAME)(...)`. Any other name is the
    // last word.
    let name = match rest.split_once(")(") {
        Some((before, _)) => words(before).last(),
        None => words(rest).last(),
    };
    let name = name.expect("a type").to_owned();
    let declaration = (rest != name).then(|| rest.to_owned());
    Type { name, declaration }
}

/// Parses the part of a line after the word `define` or `enum`.
fn group(enumerated: bool, rest: &str) -> Group {
    let (of, c_only) = match rest.split_once(';') {
        Some((of, mark)) => {
            assert_eq!(mark.trim(), "c", "after a group: {rest}");
            (of, true)
        }
        None => (rest, false),
    };
    let of = Some(of.trim().to_owned()).filter(|of| !of.is_empty());
    Group { enumerated, of, c_only, members: Vec::new() }
}

/// Returns the entries of a table in order. Panics if a line has none of the forms of the table.
fn parse(table: &str) -> Vec<Entry> {
    let (mut entries, mut comment) = (Vec::<Entry>::new(), Vec::new());
    for line in table.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        if let Some(member) = line.strip_prefix("  ") {
            let Some(Entry { what: What::Constants(group), .. }) = entries.last_mut() else {
                panic!("a constant in no group: {line}");
            };
            let (name, value) = match member.split_once(' ') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (member, None),
            };
            group.members.push((name.to_owned(), value));
            continue;
        }
        // A semicolon may follow the word directly, as in `define; c`, or come after `define TYPE`.
        let at = line.find([' ', ';']).unwrap_or(line.len());
        let (word, rest) = (&line[..at], line[at..].trim_start());
        let what = match word {
            "//" => {
                comment.push(rest.to_owned());
                continue;
            }
            "section" => What::Section(rest.to_owned()),
            "text" => What::Text(rest.to_owned()),
            "type" => What::Type(type_of(rest)),
            "define" | "enum" => What::Constants(group(word == "enum", rest)),
            "both" => What::Function(function(&[Language::C, Language::Fortran], rest)),
            "c" => What::Function(function(&[Language::C], rest)),
            "fortran" if !rest.contains('(') => What::Fortran(rest.to_owned()),
            "fortran" => What::Function(function(&[Language::Fortran], rest)),
            "pointer" => {
                let (place, declaration) =
                    rest.split_once(": ").expect("pointer FUNCTION ARGUMENT: DECLARATION");
                let (function, argument) = place.split_once(' ').expect("function and argument");
                let [function, argument, declaration] = [function, argument, declaration].map(str::to_owned);
                What::Pointer { function, argument, declaration }
            }
            _ => panic!("{word} is no kind of line: {line}"),
        };
        entries.push(Entry { comment: std::mem::take(&mut comment), what });
    }
    assert!(comment.is_empty(), "a comment on nothing: {comment:?}");
    entries
}

/// Returns the entries of names.txt in order.
fn entries() -> Vec<Entry> {
    parse(NAMES)
}

/// Returns the functions of the table that exist in C.
pub(crate) fn functions() -> Vec<Function> {
    let function = |e: Entry| match e.what {
        What::Function(f) if f.languages.contains(&Language::C) => Some(f),
        _ => None,
    };
    entries().into_iter().filter_map(function).collect()
}
