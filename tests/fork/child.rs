//! Forked processes.
//!
//! A child of a process with threads may find the standard library's own locks taken, so it prints nothing: it tells what it saw by its exit
//! status, and notes its step on a page that both processes see.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// A child that takes longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `child` in a forked process; its status is what `child` returns, or the signal that ends it when it hangs.
pub(crate) fn fork(child: impl FnOnce() -> u8) -> i32 {
    // SAFETY: the child calls only `child`, which prints nothing, and `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: no precondition.
            unsafe { libc::alarm(PATIENCE.as_secs() as u32) };
            let status = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(255);
            // SAFETY: no precondition.
            unsafe { libc::_exit(i32::from(status)) }
        }
        pid => {
            assert!(pid > 0, "fork failed");
            pid
        }
    }
}

/// Exit status of `pid`, or 1000 + the signal that ended it.
pub(crate) fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is valid for the result.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 1000 + libc::WTERMSIG(status) }
}

/// A number on a page that parent and child share.
pub(crate) struct Step(*mut AtomicU32);

// SAFETY: the page belongs to the process, and is used as an atomic number only.
unsafe impl Sync for Step {}

impl Step {
    pub(crate) fn new() -> Step {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: no address is asked for, so no mapping in use can be replaced.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        Step(page.cast())
    }

    pub(crate) fn number(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped as long as the process lives, and zero is a number.
        unsafe { &*self.0 }
    }

    /// Runs `child` in a forked process until it returns whether all was right.
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
