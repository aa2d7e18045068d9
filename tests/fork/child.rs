//! Functions that run tests in forked child processes.
//!
//! If a process has threads, a child of it may find locks of the standard library taken, so the
//! child prints nothing. It reports by its exit status, and counts its steps in memory that parent
//! and child share.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Time after which a child process is taken to hang and is killed.
pub(crate) const HANG_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs `child` in a forked process and returns the process identifier. The exit status of the
/// process is what `child` returns, or 255 if it panics. If the process hangs, a signal ends it.
pub(crate) fn fork(child: impl FnOnce() -> u8) -> i32 {
    // SAFETY: the child process calls only `alarm`, `child` and `_exit`. Unless it panics, which
    // fails the test, `child` prints nothing.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: `alarm` has no precondition.
            unsafe { libc::alarm(HANG_TIMEOUT.as_secs() as u32) };
            let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(255);
            // SAFETY: `_exit` has no precondition.
            unsafe { libc::_exit(i32::from(status)) }
        }
        pid => {
            assert!(pid > 0, "fork failed");
            pid
        }
    }
}

/// Waits for the process `pid` to end, and returns its exit status, or 1000 + the number of the
/// signal that ended it.
pub(crate) fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is a local variable that is valid for writes during the call.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1000 + libc::WTERMSIG(status) }
}

/// A number in a page of memory that parent and child share. The child counts its steps in this
/// number.
pub(crate) struct Step(*mut AtomicU32);

// SAFETY: the page is never unmapped, and it is accessed only as an atomic number, through
// `number`.
unsafe impl Sync for Step {}

impl Step {
    pub(crate) fn new() -> Step {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a null address lets the system choose unused addresses, so no mapping in use is
        // replaced. An anonymous mapping needs no file descriptor.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        Step(page.cast())
    }

    pub(crate) fn number(&self) -> &AtomicU32 {
        // SAFETY: `new` checked that the page was mapped. It is aligned, is never unmapped, and
        // began as zeros, which are a valid atomic number.
        unsafe { &*self.0 }
    }

    /// Runs `child` in a forked process. Returns an error if `child` returns false, panics or
    /// hangs, or if a signal ends the process. The error contains the number of the step that the
    /// child had reached.
    pub(crate) fn run(&self, child: impl FnOnce(&AtomicU32) -> bool) -> Result<(), String> {
        self.number().store(0, Relaxed);
        let status = wait(fork(|| u8::from(!child(self.number()))));
        let step = self.number().load(Relaxed);
        match status {
            0 => Ok(()),
            _ if status == 1000 + libc::SIGALRM => Err(format!("the child hangs in step {step}")),
            1 => Err(format!("the child saw something wrong in step {step}")),
            _ if status > 1000 => Err(format!("signal {} ends the child in step {step}", status - 1000)),
            _ => Err(format!("the child panics in step {step}")),
        }
    }
}
