//! Parser for ddtc.h, which finds its functions and its constants.

use std::collections::BTreeMap;

use super::{Argument, prototype};

/// Result and arguments of a function of ddtc.h.
pub(crate) struct Declared {
    pub(super) result: String,
    pub(super) arguments: Vec<Argument>,
}

/// The functions and constants of ddtc.h by their names.
pub(crate) struct Declarations {
    pub(crate) functions: BTreeMap<String, Declared>,
    pub(super) constants: BTreeMap<String, i64>,
}

impl Declarations {
    pub(crate) fn parse(header: &str) -> Declarations {
        let code = without_comments(header);
        // Directives are parsed separately, because they are not statements.
        let (directives, code): (Vec<&str>, Vec<&str>) = code.lines().partition(|l| l.starts_with('#'));
        let code = code.join(" ");
        let mut functions = BTreeMap::new();
        for statement in
            code.split(['{', '}', ';']).map(|s| s.split_whitespace().collect::<Vec<_>>().join(" "))
        {
            let Some((result, name, arguments)) = prototype(&statement) else { continue };
            if name.starts_with("ddtc_") && !result.starts_with("typedef") {
                functions.insert(name, Declared { result, arguments });
            }
        }
        let mut constants = BTreeMap::new();
        for enumerator in code.split(['{', '}', ',', ';']) {
            if let Some((name, value)) = enumerator.split_once('=') {
                constants.insert(name.trim().to_owned(), value.trim().parse().expect("a number"));
            }
        }
        for macro_ in directives.iter().filter_map(|d| d.strip_prefix("#define ")) {
            // A macro is written as `NAME ((type)0x200)` or `NAME 0`.
            let Some((name, value)) = macro_.split_once(' ') else { continue };
            let digits = value.trim_end_matches(')').rsplit(')').next().expect("a part");
            let number = match digits.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16),
                None => digits.parse(),
            };
            constants.insert(name.to_owned(), number.unwrap_or_else(|e| panic!("{macro_}: {e}")));
        }
        Declarations { functions, constants }
    }

    /// Returns the name that a constant of MPI has in ddtc.h. Panics if ddtc.h does not have that
    /// constant.
    pub(super) fn counterpart(&self, name: &str) -> String {
        let bare = name.strip_prefix("MPI_").expect("a name of MPI");
        let candidates = [format!("DDTC_TYPE_{bare}"), format!("DDTC_{bare}")];
        let found = candidates.into_iter().find(|c| self.constants.contains_key(c));
        found.unwrap_or_else(|| panic!("{name} has no value, and no constant in ddtc.h"))
    }

    /// Returns the declared arguments of `callee`, a function of ddtc.h that a function of MPI
    /// calls with `passed` arguments. Returns none if `callee` is another function of MPI or a
    /// handwritten helper `ddtc_mpi_x`. The arguments of these two are not checked. Panics if the
    /// number of arguments is wrong or if there is no such function.
    pub(super) fn taken(&self, callee: &str, passed: usize) -> Option<&[Argument]> {
        let Some(declared) = self.functions.get(callee) else {
            let known = ["MPI_", "ddtc_mpi_"].iter().any(|start| callee.starts_with(start));
            assert!(known, "{callee} is not in ddtc.h");
            return None;
        };
        assert_eq!(passed, declared.arguments.len(), "arguments of {callee}");
        Some(&declared.arguments)
    }

    pub(super) fn function(&self, name: &str) -> &Declared {
        self.functions.get(name).unwrap_or_else(|| panic!("{name} is not in ddtc.h"))
    }
}

/// Returns C code without its comments.
fn without_comments(source: &str) -> String {
    let mut code = String::new();
    let mut rest = source;
    while let Some((before, after)) = rest.split_once("/*") {
        code.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    code + rest
}
