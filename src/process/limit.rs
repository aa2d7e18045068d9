//! Writes past the limit on the size of files (RLIMIT_FSIZE): an error and not the end of the process, and without a lock.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::ptr;

/// Runs `grow`, in which this thread writes or enlarges files. Where that passes the limit on file sizes, the system call fails (EFBIG);
/// the signal that comes with it, and would end the process, is taken away.
///
/// To ask for the limit first would not do: another thread, or another process, may lower it in between. The signal goes to the thread that made the call, so
/// it is enough that this one does not see it. `grow` takes errno with it: it may be another afterwards.
pub fn without_sigxfsz<T>(grow: impl FnOnce() -> T) -> T {
    let _masked = Masked::new();
    grow()
}

/// The rule for values of variables that are words or numbers.
pub const NO_TEXT: &str = "must be text in UTF-8";

/// Most characters that are said of a value which somebody else wrote.
const MOST: usize = 80;

/// Returns a value as messages name it: on one line, and not all of one without end.
pub fn cut(value: &OsStr) -> String {
    let shown = |text: &str| -> String {
        text.chars()
            .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
            .collect()
    };
    let text = value.to_string_lossy();
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}... ({} bytes)", shown(&text[..at]), value.len()),
        None => shown(&text),
    }
}

/// Describes the fault of a value, which stands in the text as [`cut`] shows it.
pub fn said(value: &str, wrong: &impl Display) -> String {
    let wrong = wrong.to_string();
    if value.is_empty() { wrong } else { wrong.replace(value, &cut(value.as_ref())) }
}

/// Writes to standard error, past the lock of the standard library: a child may find that one taken.
///
/// # Errors
/// Of the file that it is.
pub fn to_stderr(text: &[u8]) -> io::Result<()> {
    let mut file = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    without_sigxfsz(|| file.write_all(text))
}

/// The signal is masked in this thread.
struct Masked {
    before: libc::sigset_t,
    only: libc::sigset_t,
    /// Whether one was pending already: that one is the program's.
    pending: bool,
}

impl Masked {
    fn new() -> Masked {
        let mut only = MaybeUninit::<libc::sigset_t>::zeroed();
        let (mut before, mut pending) = (only, only);
        // SAFETY: every set is memory of its own, initialized by the calls (zero is a valid set to begin with), and the signal is one
        // that there is.
        unsafe {
            libc::sigemptyset(only.as_mut_ptr());
            libc::sigaddset(only.as_mut_ptr(), libc::SIGXFSZ);
            libc::pthread_sigmask(libc::SIG_BLOCK, only.as_ptr(), before.as_mut_ptr());
            libc::sigpending(pending.as_mut_ptr());
            let pending = libc::sigismember(pending.as_ptr(), libc::SIGXFSZ) == 1;
            Masked { before: before.assume_init(), only: only.assume_init(), pending }
        }
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: sets that were initialized by `new`; no information is asked for, and the time is no wait.
        unsafe {
            // Once more only where another signal interrupted it.
            while !self.pending
                && libc::sigtimedwait(&raw const self.only, ptr::null_mut(), &raw const now) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
        }
    }
}
