//! Memory between two inaccessible pages, so that an access just beyond the memory ends the process
//! at once.
#![allow(unsafe_code)] // Maps and protects pages: calls of the C library.

use std::ops::{Deref, DerefMut};

/// A number of whole pages with an inaccessible page on each side.
#[derive(Debug)]
pub struct Fenced {
    /// Beginning of the mapping, which is the first inaccessible page.
    base: *mut u8,
    /// Size of each of the two inaccessible pages in bytes.
    page: usize,
    /// Size of the accessible pages in bytes.
    len: usize,
}

impl Fenced {
    /// Returns zeroed pages for at least `len` bytes, or `None` if the system has no memory for
    /// them.
    pub fn new(len: usize) -> Option<Fenced> {
        // SAFETY: `sysconf` with a constant of the system only returns a number.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
        let len = len.max(1).checked_next_multiple_of(page)?;
        let all = len.checked_add(2 * page)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a null address lets the system choose the place of the new anonymous mapping, so
        // no existing memory is replaced.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), all, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        let fenced = Fenced { base: base.cast(), page, len };
        // SAFETY: the `len` bytes after the first page lie in the mapping that was just made, which
        // has `len + 2 * page` bytes and is not used by anything else yet.
        let opened = unsafe {
            libc::mprotect(base.cast::<u8>().add(page).cast(), len, libc::PROT_READ | libc::PROT_WRITE)
        };
        (opened == 0).then_some(fenced)
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: `base` and this length are those of the mapping that `new` made. No borrow of it
        // can be alive, since `self` is dropped.
        unsafe { libc::munmap(self.base.cast(), self.len + 2 * self.page) };
    }
}

impl Deref for Fenced {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the `len` bytes after the first page are readable and were set to zero by the
        // system, and they stay mapped while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.base.add(self.page), self.len) }
    }
}

impl DerefMut for Fenced {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the `len` bytes after the first page are readable and writable, were set to zero
        // by the system, and stay mapped while `self` is borrowed. `self` is borrowed mutably, so
        // there is no other reference to them.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(self.page), self.len) }
    }
}
