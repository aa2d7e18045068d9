//! Names of kernels for profilers: `/tmp/perf-PID.map`, which perf reads for code without a file.
//!
//! One line per kernel, `START SIZE NAME` in hexadecimal, appended when a kernel is first used.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use ddtc::committed::Committed;
use ddtc::engine::Mode;
use ddtc::files;
use ddtc::kind::Direction;
use ddtc::process::{Lazy, Mutex, without_sigxfsz};

use crate::warn::warn;

static NAMED: Lazy<Mutex<HashSet<(usize, usize)>>> = Lazy::new(Mutex::default);

/// Names the kernel of a direction that was just used.
pub(crate) fn name(committed: &Committed, direction: Direction) {
    // In mode lazy, asking for the kernel would compile it.
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
    // A name that anybody can know, in a folder that anybody can write to.
    let path = PathBuf::from(format!("/tmp/perf-{}.map", std::process::id()));
    let written = files::append(&path).and_then(|mut map| without_sigxfsz(|| map.write_all(line.as_bytes())));
    static SAID: AtomicBool = AtomicBool::new(false);
    if let Err(error) = written
        && !SAID.swap(true, Ordering::Relaxed)
    {
        warn(format_args!("{}: {error}; kernels have no names there", path.display()));
    }
}
