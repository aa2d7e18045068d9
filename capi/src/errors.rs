//! From faults and panics to MPI error classes, and the message of the last one in each thread.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ddtc::error::{Error, ErrorClass};
use ddtc::object::Fault;

use crate::arguments::{export, out};
use crate::{codes, query};

/// What the body of an export returns.
pub(crate) type Outcome = Result<(), Fault>;

/// `MPI_MAX_ERROR_STRING` of the standard ABI.
const MAX_ERROR_STRING: usize = 512;

thread_local! {
    static LAST: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

/// Runs the body of an export: an error becomes its code, a panic class `Intern`.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Outcome) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(fault)) => failed(fault),
        Err(payload) => {
            // Dropping a payload may run anything; nothing is lost but a message.
            std::mem::forget(payload);
            failed(Error::internal("ddtc", "a check inside ddtc failed").into())
        }
    }
}

#[cold]
fn failed(fault: Fault) -> c_int {
    let (code, text) = match fault {
        Fault::Refused(error) => (error.class() as c_int, error.to_string()),
        Fault::Callback(code) => (code, format!("an attribute callback returned {code}")),
    };
    remember(code, text);
    code
}

/// Keeps `text` for `ddtc_error_string(code, ..)` in this thread.
pub(crate) fn remember(code: c_int, text: String) {
    // At the end of a thread there may be no place left for the message; the code remains.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Some((code, text));
        }
    });
}

/// What the classes of MPI 5.0 mean (9.4), by number.
const CLASSES: [&str; 63] = [
    "no error",
    "invalid buffer pointer",
    "invalid count argument",
    "invalid datatype argument",
    "invalid tag",
    "invalid communicator",
    "invalid rank",
    "invalid request",
    "invalid root",
    "invalid group",
    "invalid operation",
    "invalid topology",
    "invalid dimensions",
    "invalid argument",
    "unknown error",
    "data longer than its space",
    "known error not in the list of classes",
    "internal error of the library",
    "pending request",
    "error code in the status",
    "permission denied",
    "invalid access mode",
    "invalid assertion",
    "invalid file name",
    "invalid base",
    "error in a conversion of data",
    "invalid displacement",
    "data representation defined already",
    "file exists",
    "file in use",
    "invalid file handle",
    "invalid info key",
    "no such info key",
    "invalid info value",
    "invalid info object",
    "error of input or output",
    "invalid attribute key",
    "invalid lock type",
    "service name not published",
    "out of memory",
    "collective argument not the same everywhere",
    "not enough space",
    "no such file",
    "invalid port name",
    "quota exceeded",
    "read-only file or file system",
    "memory cannot be attached",
    "conflicting accesses to a window",
    "outside the window",
    "memory cannot be shared",
    "wrong synchronization of a window",
    "service name published already or not by this program",
    "invalid size",
    "processes cannot be spawned",
    "unsupported data representation",
    "unsupported operation",
    "invalid window",
    "wrong flavor of window",
    "a process was aborted",
    "value too large for its argument",
    "invalid session",
    "invalid error handler",
    "error of the binary interface",
];

/// Those of the tool interface, from this number on.
const FIRST_TOOL: usize = 1001;
const TOOL_CLASSES: [&str; 18] = [
    "the tool interface cannot be initialized",
    "the tool interface is not accessible",
    "the tool interface is not initialized",
    "not supported by the tool interface",
    "the tool interface is out of memory",
    "invalid argument of the tool interface",
    "no variable, category or enumeration of that index",
    "no item of that index",
    "invalid session handle",
    "invalid variable handle",
    "no variable of that name",
    "no more variable handles",
    "no more sessions",
    "the variable cannot be set now",
    "the variable can never be set",
    "the performance variable cannot be written",
    "the performance variable cannot be started or stopped",
    "the performance variable cannot be read and reset at once",
];

/// What a predefined class means when no call of this thread failed with it.
fn meaning(code: c_int) -> Option<&'static str> {
    let code = usize::try_from(code).ok()?;
    CLASSES.get(code).or_else(|| TOOL_CLASSES.get(code.checked_sub(FIRST_TOOL)?)).copied()
}

/// Whether a code is one of MPI's classes.
pub(crate) fn is_predefined(code: c_int) -> bool {
    meaning(code).is_some()
}

export! {
    fn ddtc_error_string(code: c_int, string: *mut c_char, resultlen: *mut c_int) {
        let resultlen = out("error_string", "resultlen", resultlen)?;
        let string = out("error_string", "string", string)?;
        // Bytes as the program gave them, or text.
        let text: Cow<'_, [u8]> = if let Some(added) = codes::text_of(code) {
            Cow::Owned(added.into_vec())
        } else {
            let last = LAST.try_with(|last| last.try_borrow().ok()?.clone()).ok().flatten();
            match last {
                Some((c, text)) if c == code && code != 0 => {
                    let mut n = text.len().min(MAX_ERROR_STRING - 1);
                    while !text.is_char_boundary(n) {
                        n -= 1;
                    }
                    Cow::Owned(text.as_bytes()[..n].to_vec())
                }
                _ => Cow::Borrowed(meaning(code).unwrap_or("an error code of the user").as_bytes()),
            }
        };
        string.write_bytes(&text, true);
        resultlen.set(text.len() as c_int);
        Ok(())
    }

    fn ddtc_error_class(code: c_int, class: *mut c_int) {
        let class = out("error_class", "errorclass", class)?;
        let other = ErrorClass::Other as c_int;
        class.set(if is_predefined(code) { code } else { codes::class_of(code).unwrap_or(other) });
        Ok(())
    }

    fn ddtc_mpi_explain(
        code: c_int,
        call: *const c_char,
        argument: *const c_char,
        value: *const c_char,
        rule: *const c_char,
    ) {
        let text = |string| query::text("mpi_explain", "text", string);
        let (call, argument, value, rule) = (text(call)?, text(argument)?, text(value)?, text(rule)?);
        remember(code, format!("{call}: {argument} = {value}: {rule}"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_class() {
        // What the standard library prints about a panic is not wanted in the output of the tests.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let code = guard(|| panic!("on purpose"));
        std::panic::set_hook(hook);
        assert_eq!(code, ErrorClass::Intern as c_int);
        assert_eq!(guard(|| Err(Fault::Callback(77))), 77);
        assert_eq!(guard(|| Ok(())), 0);
    }

    /// Exports that are not made by `export!` are listed here: they cannot fail, or must not allocate.
    #[test]
    fn every_export_is_guarded() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut bare = Vec::new();
        for entry in std::fs::read_dir(sources).unwrap() {
            let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let mut lines = source.lines();
            while let Some(line) = lines.next() {
                if line == "#[unsafe(no_mangle)]" {
                    let signature = lines.next().unwrap_or_default();
                    let name = signature.split("fn ").nth(1).and_then(|s| s.split('(').next());
                    bare.push(name.unwrap_or(signature).to_owned());
                }
            }
        }
        bare.sort();
        let known = [
            "ddtc_aint_add",
            "ddtc_aint_diff",
            "ddtc_mpi_wtime",
            "ddtc_set_allocator",
            "ddtc_version_string",
        ];
        assert_eq!(bare, known);
    }
}
