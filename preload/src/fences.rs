//! Staging buffers of tests: each ends where inaccessible memory begins, and is inaccessible itself
//! when it is dropped.
//!
//! Only in debug builds, and there only under `DDTC_FENCES=1`, which the tests set for the programs
//! that they run. An MPI library that writes more than it was given room for, or touches a buffer
//! that was freed, ends the program at once. The addresses of freed buffers stay inaccessible while
//! [`GONE`] has room for them, so that nothing else is mapped there.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;

use ddtc::process::{Awaited, Mutex, to_stderr};

/// Bytes of inaccessible memory on either side, a multiple of every page.
const FENCE: usize = 64 << 10;
/// Value of the bytes between the first fence and the buffer.
const BEFORE: u8 = 0xc5;

/// Maximum number of freed buffers whose addresses stay inaccessible, and maximum number of their
/// bytes.
const MAX_GONE: usize = 4096;
const MAX_GONE_BYTES: usize = 16 << 30;

/// Freed buffers, the oldest first, and the sum of their bytes.
static GONE: Mutex<(VecDeque<Region>, usize)> = Mutex::new((VecDeque::new(), 0));

/// Address and bytes of a mapping.
struct Region(*mut c_void, usize);

// SAFETY: addresses that nobody may use.
unsafe impl Send for Region {}

/// Memory between two fences.
pub(crate) struct Fenced {
    region: *mut c_void,
    all: usize,
    bytes: usize,
}

// SAFETY: plain memory that nobody else knows.
unsafe impl Send for Fenced {}

/// Says whether the process has a limit on its address space, which inaccessible memory counts for: the
/// MPI library needs what there is.
fn is_limited() -> bool {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a limit to write to.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    limit.rlim_cur != libc::RLIM_INFINITY
}

/// Says whether buffers stand between fences.
pub(crate) fn wanted() -> bool {
    static WANTED: Awaited<bool> = Awaited::new();
    *WANTED.get_or_init(|| std::env::var_os("DDTC_FENCES").is_some_and(|value| value == "1"))
}

impl Fenced {
    /// `None`: out of memory.
    pub(crate) fn new(bytes: usize) -> Option<Fenced> {
        let inside = bytes.checked_next_multiple_of(FENCE)?;
        let all = inside.checked_add(2 * FENCE)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new memory.
        let region = unsafe { libc::mmap(std::ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0) };
        if region == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: inside of the memory that was just mapped.
        let open =
            unsafe { libc::mprotect(region.byte_add(FENCE), inside, libc::PROT_READ | libc::PROT_WRITE) };
        if open != 0 {
            // SAFETY: the same memory, which nobody has. There is no `Fenced` yet, whose end looks at bytes.
            unsafe { libc::munmap(region, all) };
            return None;
        }
        let fenced = Fenced { region, all, bytes };
        // SAFETY: the bytes of the last page before the buffer; they may be written.
        unsafe { fenced.before().write_bytes(BEFORE, fenced.slack()) };
        Some(fenced)
    }

    /// Returns the buffer.
    pub(crate) fn at(&self) -> NonNull<u8> {
        let at = self.region.wrapping_byte_add(self.all - FENCE - self.bytes);
        NonNull::new(at.cast()).unwrap_or(NonNull::dangling())
    }

    /// Bytes before the buffer that are looked at.
    fn slack(&self) -> usize {
        (self.all - 2 * FENCE - self.bytes).min(4096)
    }

    fn before(&self) -> *mut u8 {
        self.at().as_ptr().wrapping_sub(self.slack())
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: bytes that `new` wrote.
        let before = unsafe { std::slice::from_raw_parts(self.before(), self.slack()) };
        if before.iter().any(|&byte| byte != BEFORE) {
            let _ = to_stderr(b"ddtc: bytes before a staging buffer were written\n");
            std::process::abort();
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: what `new` mapped, and nobody uses it any more. The new mapping gives its memory
        // back.
        unsafe { libc::mmap(self.region, self.all, libc::PROT_NONE, flags, -1, 0) };
        let mut gone = GONE.lock();
        let (regions, bytes) = &mut *gone;
        regions.push_back(Region(self.region, self.all));
        *bytes += self.all;
        let (max, max_bytes) = if is_limited() { (0, 0) } else { (MAX_GONE, MAX_GONE_BYTES) };
        while regions.len() > max || *bytes > max_bytes {
            let Some(Region(at, all)) = regions.pop_front() else { break };
            *bytes -= all;
            // SAFETY: the region of a buffer that was dropped.
            unsafe { libc::munmap(at, all) };
        }
    }
}
