//! Memory for what this library has begun when the system gives it none: a program that runs short of memory ends by a failed allocation of its own, or of its
//! host's, or not at all.
//!
//! Rust ends a process whose allocation fails. So this library's allocations that fail are served from a piece of address space that was set aside when the
//! host was found, which has no memory until then. From the first of them on nothing more is begun: no type is decoded, compiled or timed, and nothing is
//! staged, so all later calls are the host's, and what is under way needs little. The piece is not filled up again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Bytes of the piece: a type of 10^5 blocks is decoded and compiled in less.
const BYTES: usize = 16 << 20;

/// Says whether memory has run out: nothing new is begun.
#[inline]
pub(crate) fn is_short() -> bool {
    RESERVE.short.load(Ordering::Relaxed)
}

struct Reserve {
    /// Null while none is set aside.
    base: AtomicPtr<u8>,
    /// Bytes that are given away.
    used: AtomicUsize,
    /// Whether an allocation has failed.
    short: AtomicBool,
}

impl Reserve {
    const fn new() -> Reserve {
        let base = AtomicPtr::new(std::ptr::null_mut());
        Reserve { base, used: AtomicUsize::new(0), short: AtomicBool::new(false) }
    }
}

#[global_allocator]
static RESERVE: Reserve = Reserve::new();

/// Sets the piece aside, once. Where even that fails, a failed allocation ends the process as everywhere in Rust.
pub(crate) fn set_aside() {
    if !RESERVE.base.load(Ordering::Acquire).is_null() {
        return;
    }
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: new pages, wherever the system has room.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return;
    }
    let null = std::ptr::null_mut();
    if RESERVE.base.compare_exchange(null, at.cast(), Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: mapped above, and another thread's is kept.
        unsafe { libc::munmap(at, BYTES) };
    }
}

impl Reserve {
    /// A part of the piece that nobody had; null if it has no room.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        self.short.store(true, Ordering::Relaxed);
        let base = self.base.load(Ordering::Acquire);
        if base.is_null() || layout.align() > 4096 {
            return std::ptr::null_mut();
        }
        let start = |used: usize| used.next_multiple_of(layout.align());
        let end = |used: usize| start(used).checked_add(layout.size()).filter(|&end| end <= BYTES);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end) {
            Ok(used) => base.wrapping_add(start(used)),
            Err(_) => std::ptr::null_mut(),
        }
    }

    /// Whether memory is of the piece.
    #[inline]
    fn has(&self, pointer: *mut u8) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        !base.is_null() && (pointer as usize).wrapping_sub(base as usize) < BYTES
    }
}

// SAFETY: memory is the system's, or a part of the piece that is given away once, aligned by the base of a page and never given back; each call finds out whose
// it is.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let own = unsafe { System.alloc(layout) };
        if own.is_null() { self.take(layout) } else { own }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let own = unsafe { System.alloc_zeroed(layout) };
        // New pages are zero, and no part of them is given away twice.
        if own.is_null() { self.take(layout) } else { own }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !self.has(pointer) {
            // SAFETY: as the caller promises; it came from the system.
            unsafe { System.dealloc(pointer, layout) };
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let of_system = !self.has(pointer);
        if of_system {
            // SAFETY: as the caller promises; it came from the system.
            let own = unsafe { System.realloc(pointer, layout, size) };
            if !own.is_null() {
                return own;
            }
        }
        // SAFETY: the alignment is that of a layout, and the size one that the caller may ask for.
        let new = self.take(unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
        if !new.is_null() {
            // SAFETY: both are as large as what is copied, and nobody else has the new one.
            unsafe { std::ptr::copy_nonoverlapping(pointer, new, size.min(layout.size())) };
            if of_system {
                // SAFETY: as above; the system has left it as it was.
                unsafe { System.dealloc(pointer, layout) };
            }
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_aligned_apart_and_end_with_the_piece() {
        let piece = Reserve::new();
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        assert!(piece.take(layout(8, 8)).is_null(), "none is set aside");
        // Nothing is written: any address will do.
        let base = 0x7000_0000_0000 as *mut u8;
        piece.base.store(base, Ordering::Relaxed);
        let places = [(3, 1), (8, 8), (1, 1), (100, 4096)]
            .map(|(size, align)| piece.take(layout(size, align)) as usize - base as usize);
        assert_eq!(places, [0, 8, 16, 4096]);
        assert!(
            piece.has(base.wrapping_add(BYTES - 1))
                && !piece.has(base.wrapping_add(BYTES))
                && !piece.has(base.wrapping_sub(1))
        );
        assert!(piece.take(layout(BYTES, 1)).is_null() && !piece.take(layout(8, 8)).is_null());
    }
}
