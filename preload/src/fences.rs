//! Staging buffers for tests. Each buffer ends where inaccessible memory begins, and becomes
//! inaccessible itself when it is dropped.
//!
//! These buffers exist only in debug builds, and are used only if `DDTC_FENCES` is 1, which the
//! tests set for the programs that they run. If an MPI library writes past the end of a buffer, or
//! touches a buffer that was freed, the program ends at once. The addresses of freed buffers stay
//! inaccessible while [`GONE`] has room for them, so that nothing else is mapped there.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;

use ddtc::internal::process::{Awaited, Mutex, to_stderr};

/// Bytes of inaccessible memory at each end of a buffer's mapping. The number is a multiple of
/// the usual page sizes of 4, 16 and 64 KiB.
const FENCE: usize = 64 << 10;
/// Value of up to 4096 accessible bytes before a buffer. There are such bytes because the end of a
/// buffer, not its beginning, is at the end of a page. If their value has changed when the buffer
/// is dropped, somebody has written before the buffer.
const BEFORE: u8 = 0xc5;

/// Maximum number of freed buffers whose addresses stay inaccessible.
const MAX_GONE: usize = 4096;
/// Maximum sum of the bytes of the freed buffers whose addresses stay inaccessible.
const MAX_GONE_BYTES: usize = 16 << 30;

/// Mappings of the freed buffers whose addresses stay inaccessible, the oldest first, and the sum
/// of their bytes.
static GONE: Mutex<(VecDeque<Region>, usize)> = Mutex::new((VecDeque::new(), 0));

/// Address and length in bytes of a mapping.
struct Region(*mut c_void, usize);

// SAFETY: the address is only passed to `munmap`; nobody reads or writes the memory, which is
// inaccessible.
unsafe impl Send for Region {}

/// A buffer between two pieces of inaccessible memory.
pub(crate) struct Fenced {
    region: *mut c_void,
    all: usize,
    bytes: usize,
}

// SAFETY: the value owns its mapping, whose address no other value has and which is not tied to a
// thread.
unsafe impl Send for Fenced {}

/// Returns true if the process has a limit on its address space. Then freed buffers are unmapped at
/// once, because inaccessible memory counts towards the limit and would be missing for the MPI
/// library.
fn is_limited() -> bool {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` may be written.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    limit.rlim_cur != libc::RLIM_INFINITY
}

/// Returns true if staging buffers are to be fenced: `DDTC_FENCES` is 1.
pub(crate) fn wanted() -> bool {
    static WANTED: Awaited<bool> = Awaited::new();
    *WANTED.get_or_init(|| std::env::var_os("DDTC_FENCES").is_some_and(|value| value == "1"))
}

impl Fenced {
    /// Returns a buffer of `bytes` bytes, or `None` if there is no memory for it.
    pub(crate) fn new(bytes: usize) -> Option<Fenced> {
        let inside = bytes.checked_next_multiple_of(FENCE)?;
        let all = inside.checked_add(2 * FENCE)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without `MAP_FIXED` and with a null address the call maps new pages and touches
        // no others.
        let region = unsafe { libc::mmap(std::ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0) };
        if region == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the range lies inside the memory that was just mapped, which nobody else knows.
        let open =
            unsafe { libc::mprotect(region.byte_add(FENCE), inside, libc::PROT_READ | libc::PROT_WRITE) };
        if open != 0 {
            // SAFETY: this is the memory that was just mapped, and nobody else knows it. No
            // `Fenced` owns it, because the `drop` of a `Fenced` would read bytes that are not
            // accessible here.
            unsafe { libc::munmap(region, all) };
            return None;
        }
        let fenced = Fenced { region, all, bytes };
        // SAFETY: these `slack` bytes before the buffer lie in the part of the mapping that was
        // just made writable.
        unsafe { fenced.before().write_bytes(BEFORE, fenced.slack()) };
        Some(fenced)
    }

    /// Returns the address of the buffer.
    pub(crate) fn address(&self) -> NonNull<u8> {
        let at = self.region.wrapping_byte_add(self.all - FENCE - self.bytes);
        NonNull::new(at.cast()).unwrap_or(NonNull::dangling())
    }

    /// Returns the number of bytes before the buffer whose value is checked when the buffer is
    /// dropped: all accessible bytes before the buffer, but at most 4096.
    fn slack(&self) -> usize {
        (self.all - 2 * FENCE - self.bytes).min(4096)
    }

    /// Returns the address of the first byte before the buffer whose value is checked on drop.
    fn before(&self) -> *mut u8 {
        self.address().as_ptr().wrapping_sub(self.slack())
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: `new` has initialized these `slack` bytes, and they are accessible until the
        // mapping is replaced below.
        let before = unsafe { std::slice::from_raw_parts(self.before(), self.slack()) };
        if before.iter().any(|&byte| byte != BEFORE) {
            let _ = to_stderr(b"ddtc: bytes before a staging buffer were written\n");
            std::process::abort();
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: `new` made this mapping, this value owns it, and nobody uses the buffer any more.
        // The new inaccessible mapping takes its place, which gives the memory back to the system.
        unsafe { libc::mmap(self.region, self.all, libc::PROT_NONE, flags, -1, 0) };
        let mut gone = GONE.lock();
        let (regions, bytes) = &mut *gone;
        regions.push_back(Region(self.region, self.all));
        *bytes += self.all;
        let (max, max_bytes) = if is_limited() { (0, 0) } else { (MAX_GONE, MAX_GONE_BYTES) };
        while regions.len() > max || *bytes > max_bytes {
            let Some(Region(at, all)) = regions.pop_front() else { break };
            *bytes -= all;
            // SAFETY: the mapping is that of a buffer that was dropped, and it was just removed
            // from the list, so it is unmapped once.
            unsafe { libc::munmap(at, all) };
        }
    }
}
