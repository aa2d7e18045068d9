//! Memory between inaccessible pages, so that an access beyond it ends the process at once.
#![allow(unsafe_code)] // Maps and protects pages: calls of the C library.

use std::ops::{Deref, DerefMut};

/// Whole pages with an inaccessible page on each side.
#[derive(Debug)]
pub struct Fenced {
    base: *mut u8,
    /// Bytes of each of the two inaccessible pages.
    page: usize,
    len: usize,
}

impl Fenced {
    /// Returns zeroed pages for at least `len` bytes, or `None` if the system has no memory for them.
    pub fn new(len: usize) -> Option<Fenced> {
        // SAFETY: asks the system for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let len = len.max(1).checked_next_multiple_of(page)?;
        let all = len.checked_add(2 * page)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new anonymous pages where the system puts them, which nobody else knows.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let fenced = Fenced { base: base.cast(), page, len };
        // SAFETY: the inner pages of the mapping that was just made.
        let opened = unsafe {
            libc::mprotect(base.cast::<u8>().add(page).cast(), len, libc::PROT_READ | libc::PROT_WRITE)
        };
        (opened == 0).then_some(fenced)
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, whole; nobody borrows it any more.
        unsafe { libc::munmap(self.base.cast(), self.len + 2 * self.page) };
    }
}

impl Deref for Fenced {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` readable bytes between the two outer pages, which were zeroed by the system, for
        // as long as `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.base.add(self.page), self.len) }
    }
}

impl DerefMut for Fenced {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(self.page), self.len) }
    }
}
