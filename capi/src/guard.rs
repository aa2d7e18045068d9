//! Runs the body of every export: faults and panics become MPI error classes, and each thread keeps the message of its last one.

use std::cell::RefCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ddtc::internal::error::{Error, ErrorClass};
use ddtc::internal::methods::*;
use ddtc::internal::object::Fault;
use ddtc::internal::process::is_inconsistent;

/// Result of the body of an export.
pub(crate) type Outcome = Result<(), Fault>;

thread_local! {
    static LAST: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

/// Runs the body of an export: an error becomes its code, a panic class `Intern`. In an inconsistent
/// child the body does not run, since it could wait for a lock that nobody gives back.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Outcome) -> c_int {
    if is_inconsistent() {
        return inconsistent();
    }
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
fn inconsistent() -> c_int {
    let rule = "must not be the child of a fork that has not waited for all threads of its parent";
    failed(Error::new(ErrorClass::Other, "ddtc", "process", std::process::id(), rule).into())
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

/// Returns the message that this thread keeps, and its code.
pub(crate) fn last() -> Option<(c_int, String)> {
    LAST.try_with(|last| last.try_borrow().ok()?.clone()).ok().flatten()
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
