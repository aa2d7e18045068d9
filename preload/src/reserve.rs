//! Memory for work that this library has begun, for the case that the system gives it none. A
//! program that runs short of memory must end by a failed allocation of its own, or of its MPI
//! library, or not at all.
//!
//! Rust ends a process whose allocation fails. So allocations of this library that fail are served
//! from a piece of address space that was set aside when the MPI library was found, and that takes
//! no memory until it is used. After the first such allocation nothing more is begun: no type is
//! decoded, compiled or timed, and nothing is staged. So all later calls are bypassed, and work
//! that is under way needs little memory. The piece is not filled up again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Bytes of the piece. Decoding and compiling a type of 10^5 blocks takes less.
const BYTES: usize = 16 << 20;

/// Returns true if memory has run out, so that nothing new is begun.
#[inline]
pub(crate) fn is_short() -> bool {
    RESERVE.short.load(Ordering::Relaxed)
}

struct Reserve {
    /// Beginning of the piece; null if none is set aside.
    base: AtomicPtr<u8>,
    /// Bytes of the piece that are given away.
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

/// Sets the piece aside, once. If even that fails, a failed allocation ends the process, as it does
/// in any Rust program.
pub(crate) fn set_aside() {
    if !RESERVE.base.load(Ordering::Acquire).is_null() {
        return;
    }
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: the mapping is new, at an address that the system chooses, so it replaces no other
    // memory.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), BYTES, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return;
    }
    let null = std::ptr::null_mut();
    if RESERVE.base.compare_exchange(null, at.cast(), Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: these pages were mapped above and are used by nobody, because another thread's
        // are kept.
        unsafe { libc::munmap(at, BYTES) };
    }
}

impl Reserve {
    /// Returns a part of the piece that was not given away before; null if there is no room for it,
    /// no piece, or if the alignment is larger than a page. Notes that memory has run out.
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

    /// Returns true if an address lies in the piece.
    #[inline]
    fn has(&self, pointer: *mut u8) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        !base.is_null() && (pointer as usize).wrapping_sub(base as usize) < BYTES
    }
}

// SAFETY: memory is the system's, or a part of the piece. A part is given away once and never
// reused. It is aligned, because its offset is a multiple of the alignment, which is at most a
// page, and the piece begins with a page. Each call finds out by the address which of the two a
// block is.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises: this method has the same contract.
        let own = unsafe { System.alloc(layout) };
        if own.is_null() { self.take(layout) } else { own }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises: this method has the same contract.
        let own = unsafe { System.alloc_zeroed(layout) };
        // The pages of the piece were zero when they were mapped, and no part of them is given away
        // twice.
        if own.is_null() { self.take(layout) } else { own }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !self.has(pointer) {
            // SAFETY: as the caller promises; the block is not in the piece, so it came from the
            // system.
            unsafe { System.dealloc(pointer, layout) };
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let of_system = !self.has(pointer);
        if of_system {
            // SAFETY: as the caller promises; the block is not in the piece, so it came from the
            // system.
            let own = unsafe { System.realloc(pointer, layout, size) };
            if !own.is_null() {
                return own;
            }
        }
        // SAFETY: the alignment is that of a valid layout, and the caller promises that `size`,
        // rounded up to it, does not overflow `isize`.
        let new = self.take(unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
        if !new.is_null() {
            // SAFETY: both blocks have at least as many bytes as are copied. Nobody else has the
            // new one, so they do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(pointer, new, size.min(layout.size())) };
            if of_system {
                // SAFETY: the block came from the system, whose `realloc` has failed and left it as
                // it was.
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
        // Nothing is written, so any address will do.
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
