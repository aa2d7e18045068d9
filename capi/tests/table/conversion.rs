//! Generator of the bodies of Fortran procedures that have no handwritten body. The types of the
//! arguments determine the generated body. It converts the arguments, calls the function of ddtc.h,
//! converts the results, and passes an error to the error handler.

use super::layout::grouped;
use super::{Argument, Declarations, Function, is_word};

/// A statement before the call.
enum Step {
    /// An expression that is assigned to `code`. If the value is not 0, the later fallible steps
    /// and the call are skipped.
    Fallible(String),
    /// A statement that cannot fail.
    Plain(String),
}

/// The parts of a body while it is generated.
struct Conversion<'a> {
    function: &'a Function,
    /// Types and names of local variables.
    locals: Vec<(String, String)>,
    before: Vec<Step>,
    /// Names of the arguments, each with the expression that is passed for it.
    passed: Vec<(&'a str, String)>,
    /// Statements after the call that are skipped after an error, so that the result arguments keep
    /// their values.
    after: Vec<String>,
    /// Statements after the call that run in any case.
    always: Vec<String>,
}

/// Returns the lines of the body of a procedure.
pub(super) fn body(f: &Function, ddtc: &Declarations) -> Vec<String> {
    let (callee, list) = f.callee();
    ddtc.taken(&callee, list.len());
    if callee.starts_with("MPI_") {
        // The procedure only calls another procedure of the module, which converts the arguments.
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

/// Returns the last line of a body. This line stores `code` in ierror and passes an error to the
/// error handler.
pub(super) fn finish(f: &Function, code: &str) -> String {
    let comm = f.communicator().map_or(String::new(), |comm| format!(", {comm}"));
    format!("    call finish({code}, '{}', ierror{comm})", f.name)
}

/// Returns true for an `int` that is a LOGICAL in Fortran.
pub(super) fn is_logical(a: &Argument) -> bool {
    a.name == "flag"
}

impl Conversion<'_> {
    /// Returns the expression that is passed for an argument, and adds the variables and statements
    /// that it needs. Panics if the conversion of this type is not known.
    fn convert(&mut self, a: &Argument) -> String {
        let (name, f) = (a.name.as_str(), self.function);
        // The name of the local variable with the converted value, if there is one.
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
            // In all functions of the table, a constant array of datatypes has `count` elements.
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
            // Blanks before and after keys and values do not count. `adjustl` removes the blanks
            // before the text, and `to_c` those after it.
            ("char", true) if a.is_const() && f.name.starts_with("MPI_Info_") => {
                format!("to_c(adjustl({name}))")
            }
            ("char", true) if a.is_const() => format!("to_c({name})"),
            ("char", true) => {
                // Some functions of MPI return a string and, in `resultlen`, its length. The
                // variable has room for the longest of these strings.
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

    /// Returns the expression `text` of the table with every argument's name replaced by the
    /// expression that is passed for the argument.
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

    /// Returns the lines of the body, including the call `call`.
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
        // Each fallible step after the first one, and the call, run only if all earlier fallible
        // steps succeeded.
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
