//! Standard output of the command.
//!
//! `println!` panics if standard output cannot be written, for example to a full disk. What the
//! subcommands print goes through [`print()`] instead, which returns the error.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _, stdout};

/// Writes text to standard output, and flushes it.
///
/// A broken pipe is not an error: the process that reads the output, for example `head`, has closed
/// its end of the pipe.
///
/// # Errors
/// All other errors of the system, with the words "standard output".
pub(crate) fn print(text: Arguments<'_>) -> io::Result<()> {
    let mut out = stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(io::Error::new(error.kind(), format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints like `print!`, and returns the result of [`print()`].
macro_rules! out {
    ($($argument:tt)*) => { $crate::output::print(format_args!($($argument)*)) };
}
pub(crate) use out;

/// Prints like `println!`, and returns the result of [`print()`].
macro_rules! outln {
    ($($argument:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($argument)*))) };
}
pub(crate) use outln;
