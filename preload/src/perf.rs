//! Names of kernels for the profiler perf: the file `/tmp/perf-PID.map`, in which perf looks up
//! machine code that was not loaded from a file.
//!
//! The file has one line `START SIZE NAME` for each kernel, with hexadecimal numbers. The line of a
//! kernel is appended when the kernel is first used.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use ddtc::internal::committed::Committed;
use ddtc::internal::engine::Mode;
use ddtc::internal::files;
use ddtc::internal::kind::Direction;
use ddtc::internal::methods::*;
use ddtc::internal::process::{Lazy, Mutex, without_sigxfsz};

use crate::warn::warn;

/// Address and size of each kernel that has a line in the file.
static NAMED: Lazy<Mutex<HashSet<(usize, usize)>>> = Lazy::new(Mutex::default);

/// Appends a line with the name of a type's kernel to the file, unless the file has a line for that
/// kernel already. Called after the kernel was used in this direction.
pub(crate) fn name(committed: &Committed, direction: Direction) {
    // `Committed::kernel` would compile the layout in mode `lazy` if the layout is not compiled
    // yet, so it is not called for such a layout.
    if committed.engine().config().mode == Mode::Lazy
        && committed.schedule(direction).starts_with("not compiled")
    {
        return;
    }
    let Some(kernel) = committed.kernel(direction) else { return };
    let (start, size) = (kernel.entry() as usize, kernel.code().len());
    if !NAMED.lock().insert((start, size)) {
        return;
    }
    let text: String = committed.datatype().to_string().chars().take(80).collect();
    let line = format!("{start:x} {size:x} ddtc_{direction}:{}\n", text.replace([' ', '\n'], ""));
    // Anybody can predict the name of this file, and anybody can create files in `/tmp`. So
    // `files::append` opens only a regular file that belongs to this user, and follows no link.
    let path = PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()));
    let written = files::append(&path).and_then(|mut map| without_sigxfsz(|| map.write_all(line.as_bytes())));
    static SAID: AtomicBool = AtomicBool::new(false);
    if let Err(error) = written
        && !SAID.swap(true, Ordering::Relaxed)
    {
        warn(format_args!("{}: {error}; the profiler perf shows no names for compiled code", path.display()));
    }
}
