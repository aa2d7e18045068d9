//! Writes to files under a limit on their size (RLIMIT_FSIZE): makes an error of what would
//! otherwise end the process, without taking a lock.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::ptr;

/// Runs `grow`, in which this thread writes or enlarges files. If a system call would exceed the
/// limit on the size of files, it fails (EFBIG). The signal SIGXFSZ that comes with the error, and
/// would end the process, is masked and removed.
///
/// Asking for the limit beforehand would not suffice, since another thread or process may lower it
/// in between. The signal is sent to the thread that made the call, so it is enough to mask it in
/// this thread. The value of `errno` may change between the end of `grow` and the return of this
/// function.
pub fn without_sigxfsz<T>(grow: impl FnOnce() -> T) -> T {
    let _masked = Masked::new();
    grow()
}

/// The rule that an error states if an environment variable is not text, although its value must be
/// a word or a number.
pub const NO_TEXT: &str = "must be text in UTF-8";

/// Maximum number of characters that a message quotes of a value from outside, such as an
/// environment variable.
const MAX_QUOTED_CHARS: usize = 80;

/// Returns a value as messages quote it: on one line, with control characters escaped, and cut
/// after 80 characters. A value that was cut is followed by its length in bytes.
pub fn cut(value: &OsStr) -> String {
    let shown = |text: &str| -> String {
        text.chars()
            .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
            .collect()
    };
    let text = value.to_string_lossy();
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((at, _)) => format!("{}... ({} bytes)", shown(&text[..at]), value.len()),
        None => shown(&text),
    }
}

/// Returns the text of the error `wrong`. Where the text contains `value`, the result has the value
/// as [`cut`] returns it.
pub fn said(value: &str, wrong: &impl Display) -> String {
    let wrong = wrong.to_string();
    if value.is_empty() { wrong } else { wrong.replace(value, &cut(value.as_ref())) }
}

/// Writes to standard error without the lock of the standard library, which a child may have
/// inherited locked.
///
/// # Errors
/// The error of duplicating or writing the file that standard error is.
pub fn to_stderr(text: &[u8]) -> io::Result<()> {
    let mut file = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    without_sigxfsz(|| file.write_all(text))
}

/// Guard that masks SIGXFSZ in this thread.
struct Masked {
    /// Signal mask of the thread before SIGXFSZ was masked. It is restored at the end.
    before: libc::sigset_t,
    /// Set that contains only SIGXFSZ.
    only: libc::sigset_t,
    /// Whether SIGXFSZ was pending already. Then the signal belongs to the program and is not
    /// removed.
    pending: bool,
}

impl Masked {
    fn new() -> Masked {
        let mut only = MaybeUninit::<libc::sigset_t>::zeroed();
        let (mut before, mut pending) = (only, only);
        // SAFETY: every pointer is to one of the three local sets, which are valid for reads and
        // writes and initialized with zeros, a valid value of their integers. SIGXFSZ is a number
        // that `sigaddset` and `sigismember` accept. The sets are initialized when they are moved
        // to the result.
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
        // SAFETY: `only` and `before` were initialized by `new`, and `now` is initialized.
        // `sigtimedwait` accepts null, as no information about the signal is asked for, and does
        // not wait, as the time is 0. `pthread_sigmask` accepts null where the old mask is not
        // asked for.
        unsafe {
            // Remove the pending SIGXFSZ, if there is one. Try again only if another signal has
            // interrupted the call.
            while !self.pending
                && libc::sigtimedwait(&raw const self.only, ptr::null_mut(), &raw const now) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
        }
    }
}
