//! Memory for areas: from the heap, or between inaccessible pages, so that a read or a write beyond it ends the process at once.

use std::ops::{Deref, DerefMut};

/// Bytes of the heap, or of pages between inaccessible ones.
#[derive(Debug)]
pub(super) enum Bytes {
    Heap(Vec<u8>),
    Fenced(Fenced),
}

/// Whole pages with an inaccessible one on each side.
#[derive(Debug)]
pub(super) struct Fenced {
    base: *mut u8,
    /// Bytes of each of the two.
    page: usize,
    len: usize,
}

impl Fenced {
    /// Zeroed pages for at least `len` bytes; none where the system gives none.
    pub(super) fn new(len: usize) -> Option<Fenced> {
        // SAFETY: asks the system for a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let len = len.max(1).next_multiple_of(page);
        let (protection, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new anonymous pages where the system puts them, which nobody else knows.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len + 2 * page, protection, flags, -1, 0) };
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

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Heap(bytes) => bytes,
            // SAFETY: `len` readable bytes between the two outer pages, which were zeroed by the system, for as long as `self` is borrowed.
            Bytes::Fenced(f) => unsafe { std::slice::from_raw_parts(f.base.add(f.page), f.len) },
        }
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Bytes::Heap(bytes) => bytes,
            // SAFETY: as above, and `self` is borrowed by nobody else.
            Bytes::Fenced(f) => unsafe { std::slice::from_raw_parts_mut(f.base.add(f.page), f.len) },
        }
    }
}
