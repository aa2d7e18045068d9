//! The function [`guard`], which runs the body of an export. It turns faults and panics into return
//! codes, and keeps the message of each thread's last failure.

use std::cell::RefCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ddtc::internal::error::{Error, ErrorClass};
use ddtc::internal::methods::*;
use ddtc::internal::object::Fault;
use ddtc::internal::process::is_inconsistent;

/// Result of the body of an export. The error is an [`Error`] of ddtc, or the code that an
/// attribute callback of the program returned.
pub(crate) type Outcome = Result<(), Fault>;

thread_local! {
    /// Code and message of the last failure in this thread, or none before the first failure.
    static LAST: RefCell<Option<(c_int, String)>> = const { RefCell::new(None) };
}

/// Runs the body of an export and returns 0, the code of its error, or class `Intern` if the body
/// panicked.
///
/// If [`is_inconsistent`] returns true for this process, the body does not run, because it could
/// wait for a lock that no thread of this process will release. In that case the result is class
/// `Other`.
#[inline]
pub(crate) fn guard(body: impl FnOnce() -> Outcome) -> c_int {
    if is_inconsistent() {
        return inconsistent();
    }
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(fault)) => failed(fault),
        Err(payload) => {
            // The destructor of a panic payload may run any code, which could panic in turn. So the
            // payload is leaked, which loses only the panic's message.
            std::mem::forget(payload);
            failed(
                Error::internal(
                    "ddtc",
                    "a check inside ddtc failed; this is a fault of ddtc: please report it",
                )
                .into(),
            )
        }
    }
}

#[cold]
fn inconsistent() -> c_int {
    let rule = "must not be the child of a fork that could not wait until all threads of the parent had left ddtc: fork while no other thread calls ddtc";
    failed(Error::new(ErrorClass::Other, "ddtc", "process", std::process::id(), rule).into())
}

#[cold]
fn failed(fault: Fault) -> c_int {
    let (code, text) = match fault {
        Fault::Refused(error) => (error.class() as c_int, error.to_string()),
        Fault::Callback(code) => (code, format!("an attribute callback returned {code}")),
    };
    store_last_error(code, text);
    code
}

/// Stores `text` as the message that `ddtc_error_string` returns for `code` in this thread, in
/// place of the message of an earlier failure.
pub(crate) fn store_last_error(code: c_int, text: String) {
    // While a thread ends, its thread-local values may already be destroyed. The message is lost
    // then, but the caller of the export still gets the code.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            *last = Some((code, text));
        }
    });
}

/// Returns the code and message of the last failure in this thread, or none if there was no failure
/// or if the thread is ending.
pub(crate) fn last() -> Option<(c_int, String)> {
    LAST.try_with(|last| last.try_borrow().ok()?.clone()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_class() {
        // The default hook would print the panic to the output of the tests, so it is replaced for
        // this one call.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let code = guard(|| panic!("on purpose"));
        std::panic::set_hook(hook);
        assert_eq!(code, ErrorClass::Intern as c_int);
        assert_eq!(guard(|| Err(Fault::Callback(77))), 77);
        assert_eq!(guard(|| Ok(())), 0);
    }

    /// Checks that only the exports listed here are defined without `export!`. These exports cannot
    /// fail, or must not allocate memory. `guard` allocates memory when it records a message.
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
