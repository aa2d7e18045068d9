//! Warnings and findings for the user: lines to stderr, one write each, so that ranks do not mix theirs.

use std::fmt::Arguments;

use ddtc::process::to_stderr;

/// Writes one line, prefixed. Errors are nobody's: there is nowhere to report them.
pub(crate) fn warn(line: Arguments<'_>) {
    let _ = to_stderr(format!("ddtc: {line}\n").as_bytes());
}
