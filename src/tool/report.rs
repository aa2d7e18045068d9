//! The report: a table of all performance variables since the start of the process.

use std::fmt::Write;
use std::io;
use std::path::Path;

use super::{PERFORMANCE, Value};
use crate::calls::Counting;
use crate::files;
use crate::process::{Mutex, to_stderr};

/// Destination of the report, if there is one. As long as there is one, calls are counted.
static DESTINATION: Mutex<Option<(String, Counting)>> = Mutex::new(None);

pub(super) fn destination() -> String {
    DESTINATION.lock().as_ref().map(|d| d.0.clone()).unwrap_or_default()
}

pub(super) fn set_destination(to: &str) {
    let old = if to.is_empty() {
        DESTINATION.lock().take()
    } else {
        DESTINATION.lock().replace((to.to_owned(), Counting::start()))
    };
    drop(old);
}

/// Returns the report, with one line for each performance variable.
pub fn report() -> String {
    let mut table = String::from("ddtc report\n");
    for variable in &PERFORMANCE {
        // Writing to a `String` does not fail.
        let _ = match variable.total() {
            Value::Double(seconds) => writeln!(table, "{:<24}{seconds:>20.6} s", variable.name),
            Value::Unsigned(n) => writeln!(table, "{:<24}{n:>20}", variable.name),
            other => writeln!(table, "{:<24}{other:?}", variable.name),
        };
    }
    table
}

/// Writes the report to the destination in the control variable `ddtc_report`: standard error for
/// `-`, otherwise a file. If the variable is empty, nothing is written.
///
/// # Errors
/// The errors of writing the file or standard error.
pub fn write_report() -> io::Result<()> {
    match destination().as_str() {
        "" => Ok(()),
        "-" => to_stderr(report().as_bytes()),
        file => files::replace(Path::new(file), report()),
    }
}
