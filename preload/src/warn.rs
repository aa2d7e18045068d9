//! Warnings and findings for the user. Each is a line on standard error, written in one write, so
//! that the lines of several ranks do not mix.

use std::fmt::Arguments;

use ddtc::internal::process::to_stderr;

/// Writes a line with the prefix `ddtc: `. Errors are ignored, because there is nowhere to report
/// them.
pub(crate) fn warn(line: Arguments<'_>) {
    let _ = to_stderr(format!("ddtc: {line}\n").as_bytes());
}
