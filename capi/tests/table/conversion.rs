//! The body of a Fortran procedure whose types tell what it does: arguments are converted, the function of ddtc.h is called, results are
//! converted, and what failed is told.

use super::layout::grouped;
use super::{Argument, Declarations, Function, is_word};

/// A step before the call.
enum Step {
    /// A value of `code`, which ends everything if it is none of success.
    Fallible(String),
    Plain(String),
}

struct Conversion<'a> {
    function: &'a Function,
    /// Type and name of variables.
    locals: Vec<(String, String)>,
    before: Vec<Step>,
    /// Expressions that are passed, by argument.
    passed: Vec<(&'a str, String)>,
    /// After the call, unless something failed: results keep their values then.
    after: Vec<String>,
    /// After the call whatever became of it.
    always: Vec<String>,
}

/// The lines of a procedure.
pub(super) fn body(f: &Function, ddtc: &Declarations) -> Vec<String> {
    let (callee, list) = f.callee();
    ddtc.taken(&callee, list.len());
    if callee.starts_with("MPI_") {
        // Another procedure converts for itself.
        return vec![format!("    call {callee}({}, ierror)", list.join(", "))];
    }
    let mut conversion = Conversion {
        function: f,
        locals: Vec::new(),
        before: Vec::new(),
        passed: Vec::new(),
        after: Vec::new(),
        always: Vec::new(),
    };
    if let Some(comm) = f.communicator() {
        conversion.before.push(Step::Fallible(format!("known({comm}, '{}')", f.name)));
    }
    for argument in &f.arguments {
        let passed = conversion.convert(argument);
        conversion.passed.push((&argument.name, passed));
    }
    let list: Vec<String> = list.iter().map(|text| conversion.substituted(text)).collect();
    conversion.lines(&format!("{callee}({})", list.join(", ")))
}

/// The last line: returns the code, or tells the error handler.
pub(super) fn finish(f: &Function, code: &str) -> String {
    let comm = f.communicator().map_or(String::new(), |comm| format!(", {comm}"));
    format!("    call finish({code}, '{}', ierror{comm})", f.name)
}

/// An `int` that Fortran has as a LOGICAL.
pub(super) fn is_logical(a: &Argument) -> bool {
    a.name == "flag"
}

impl Conversion<'_> {
    /// Returns the expression that is passed for an argument.
    fn convert(&mut self, a: &Argument) -> String {
        let (name, f) = (a.name.as_str(), self.function);
        // A variable that stands for it.
        let own = format!("c_{name}");
        match (a.base(), a.is_pointer()) {
            ("int", true) if is_logical(a) => {
                self.local("integer", &own);
                self.before.push(Step::Plain(format!("{own} = 0")));
                self.always.push(format!("{name} = {own} /= 0"));
                own
            }
            ("int" | "MPI_Count" | "MPI_Aint" | "MPI_Status", _) | ("MPI_Comm", false) => name.to_owned(),
            ("MPI_Datatype", false) => {
                self.local("type(c_ptr)", &own);
                self.before.push(Step::Fallible(format!("ddtc_type_fromint({name}, {own})")));
                own
            }
            // Of `count` elements, as in all of MPI's functions.
            ("MPI_Datatype", true) if a.array && a.is_const() => {
                self.local("type(c_ptr), allocatable", &format!("{own}(:)"));
                self.before
                    .push(Step::Fallible(format!("take_all(int(count, MPI_COUNT_KIND), {name}, {own})")));
                own
            }
            ("MPI_Datatype", true) if !a.array => {
                self.local("type(c_ptr)", &own);
                self.after.push(format!("code = ddtc_type_toint({own}, {name})"));
                own
            }
            ("MPI_Op", false) => {
                self.local("type(c_ptr)", &own);
                self.before.push(Step::Plain(format!("{own} = transfer(int({name}, WIDE), c_null_ptr)")));
                own
            }
            ("MPI_Info" | "MPI_Errhandler", false) => format!("int({name}, WIDE)"),
            ("MPI_Info" | "MPI_Errhandler", true) => {
                self.local("integer(WIDE)", &own);
                if f.name.ends_with("_free") {
                    self.before.push(Step::Plain(format!("{own} = {name}")));
                }
                self.after.push(format!("{name} = int({own})"));
                own
            }
            ("void", true) => format!("buffer({name})"),
            // Blanks are no part of keys and values.
            ("char", true) if a.is_const() && f.name.starts_with("MPI_Info_") => {
                format!("to_c(adjustl({name}))")
            }
            ("char", true) if a.is_const() => format!("to_c({name})"),
            ("char", true) => {
                // Room for the longest of those whose length the call returns.
                self.local("character(kind=c_char)", &format!("{own}(MPI_MAX_ERROR_STRING + 1)"));
                self.after.push(format!("call from_c({own}, resultlen, {name})"));
                own
            }
            (base, true) if base.ends_with("_function") => format!("c_funloc({name})"),
            _ => panic!("{}: how {name} is converted is not known, and there is no piece", f.name),
        }
    }

    fn local(&mut self, declared: &str, name: &str) {
        self.locals.push((declared.to_owned(), name.to_owned()));
    }

    /// An expression of the table with what stands for the arguments.
    fn substituted(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(is_word) {
            let end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |n| start + n);
            let word = &rest[start..end];
            let own = self.passed.iter().find(|(name, _)| *name == word).map_or(word, |(_, own)| own);
            out += &rest[..start];
            out += own;
            rest = &rest[end..];
        }
        out + rest
    }

    fn lines(self, call: &str) -> Vec<String> {
        let f = self.function;
        if f.result != "int" {
            return vec![format!("    answer = {call}")];
        }
        if self.locals.is_empty() && self.before.is_empty() {
            return vec![finish(f, call)];
        }
        let code = ("integer".to_owned(), "code".to_owned());
        let mut lines = grouped(self.locals.into_iter().chain([code]));
        // Everything depends on what went before.
        let mut condition = "";
        for step in self.before.into_iter().chain([Step::Fallible(call.to_owned())]) {
            match step {
                Step::Plain(text) => lines.push(format!("    {text}")),
                Step::Fallible(value) => {
                    lines.push(format!("    {condition}code = {value}"));
                    condition = "if (code == 0) ";
                }
            }
        }
        lines.extend(self.after.iter().map(|text| format!("    if (code == 0) {text}")));
        lines.extend(self.always.iter().map(|text| format!("    {text}")));
        lines.push(finish(f, "code"));
        lines
    }
}
