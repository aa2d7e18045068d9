//! From faults and panics to MPI error classes, and the message of the last one in each thread.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ddtc::error::{Error, ErrorClass};
use ddtc::object::Fault;

use crate::arguments::{export, out};

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

/// What a class means when no call of this thread failed with it.
fn meaning(code: c_int) -> &'static str {
    match code {
        0 => "no error",
        1 => "invalid buffer pointer",
        2 => "invalid count argument",
        3 => "invalid datatype argument",
        5 => "invalid communicator",
        13 => "invalid argument",
        14 => "unknown error",
        15 => "data longer than its space",
        16 => "known error not in the list of classes",
        17 => "internal error of the library",
        36 => "invalid attribute key",
        39 => "out of memory",
        55 => "unsupported operation",
        59 => "value too large for its argument",
        1001 => "the tool interface cannot be initialized",
        1002 => "the tool interface is not accessible",
        1003 => "the tool interface is not initialized",
        1004 => "not supported by the tool interface",
        1005 => "the tool interface is out of memory",
        1006 => "invalid argument of the tool interface",
        1007 => "no variable, category or enumeration of that index",
        1008 => "no item of that index",
        1009 => "invalid session handle",
        1010 => "invalid variable handle",
        1011 => "no variable of that name",
        1014 => "the variable cannot be set now",
        1015 => "the variable can never be set",
        1016 => "the performance variable cannot be written",
        1017 => "the performance variable cannot be started or stopped",
        1018 => "the performance variable cannot be read and reset at once",
        _ => "an error code of the user",
    }
}

export! {
    fn ddtc_error_string(code: c_int, string: *mut c_char, resultlen: *mut c_int) {
        let resultlen = out("error_string", "resultlen", resultlen)?;
        let string = out("error_string", "string", string)?;
        let last = LAST.try_with(|last| last.try_borrow().ok()?.clone()).ok().flatten();
        let text = match last {
            Some((c, text)) if c == code && code != 0 => text,
            _ => meaning(code).to_owned(),
        };
        let mut n = text.len().min(MAX_ERROR_STRING - 1);
        while !text.is_char_boundary(n) {
            n -= 1;
        }
        string.write_bytes(&text.as_bytes()[..n], true);
        resultlen.set(n as c_int);
        Ok(())
    }
}

export! {
    fn ddtc_error_class(code: c_int, class: *mut c_int) {
        let class = out("error_class", "errorclass", class)?;
        let known = (0..=62).contains(&code) || (1001..=1018).contains(&code);
        class.set(if known { code } else { ErrorClass::Other as c_int });
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
