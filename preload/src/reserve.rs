//! Reserve of memory for ddtc's own allocations, for the case that the system has no memory left. A
//! program that runs short of memory must not end because an allocation of ddtc fails. Only a
//! failed allocation of the program itself or of its MPI library may end it.
//!
//! Rust ends a process whose allocation fails. So if an allocation of ddtc from the system fails,
//! it is served from the reserve: a piece of address space that is set aside when the MPI library
//! is found, and that takes no memory until it is used. After the first such allocation ddtc begins
//! nothing new: it decodes, compiles and times no type, and stages nothing. So all later calls are
//! bypassed, except packs and unpacks of types that are ready already, and work that is under way
//! needs little memory. Parts of the reserve are never taken back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Size of the reserve in bytes. It is meant to suffice for the work that is under way when an
/// allocation first fails, such as decoding and compiling one type.
const BYTES: usize = 16 << 20;

/// Returns true if an allocation of ddtc from the system has failed. Then ddtc begins nothing new.
#[inline]
pub(crate) fn is_short() -> bool {
    RESERVE.short.load(Ordering::Relaxed)
}

struct Reserve {
    /// Address of the first byte of the reserve; null if no reserve is set aside.
    base: AtomicPtr<u8>,
    /// Number of bytes at the beginning of the reserve that are given away.
    used: AtomicUsize,
    /// True if an allocation of ddtc from the system has failed.
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

/// Sets the reserve aside, once. If the system refuses the address space, there is no reserve, and
/// a failed allocation ends the process, as it does in any Rust program.
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
        // SAFETY: this call has mapped these pages, and nobody uses them, because another thread
        // has stored its own pages in `base` first.
        unsafe { libc::munmap(at, BYTES) };
    }
}

impl Reserve {
    /// Returns a part of the reserve that was not given away before. Returns null if no reserve is
    /// set aside, if it has no room, or if the alignment is larger than a page. Records that an
    /// allocation from the system has failed.
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

    /// Returns true if an address lies in the reserve.
    #[inline]
    fn has(&self, pointer: *mut u8) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        !base.is_null() && (pointer as usize).wrapping_sub(base as usize) < BYTES
    }
}

// SAFETY: each block comes from the system or is a part of the reserve. A part of the reserve is
// given away once and never reused. The part is aligned, because its offset is a multiple of the
// alignment, which is at most a page, and the reserve begins at the start of a page. Each method
// finds out by the address of a block whether the block comes from the system or from the reserve.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `System.alloc` has the same contract as this method, and the caller keeps it.
        let own = unsafe { System.alloc(layout) };
        if own.is_null() { self.take(layout) } else { own }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `System.alloc_zeroed` has the same contract as this method, and the caller keeps
        // it.
        let own = unsafe { System.alloc_zeroed(layout) };
        // The pages of the reserve were zero when they were mapped, and no part of them is given
        // away twice.
        if own.is_null() { self.take(layout) } else { own }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !self.has(pointer) {
            // SAFETY: `System.dealloc` has the same contract as this method, and the caller keeps
            // it. The block is not in the reserve, so it came from the system.
            unsafe { System.dealloc(pointer, layout) };
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let of_system = !self.has(pointer);
        if of_system {
            // SAFETY: `System.realloc` has the same contract as this method, and the caller keeps
            // it. The block is not in the reserve, so it came from the system.
            let own = unsafe { System.realloc(pointer, layout, size) };
            if !own.is_null() {
                return own;
            }
        }
        // SAFETY: the alignment is that of a valid layout, and the caller promises that `size`,
        // rounded up to a multiple of the alignment, does not overflow `isize`.
        let new = self.take(unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
        if !new.is_null() {
            // SAFETY: both blocks have at least as many bytes as are copied. The new block was just
            // allocated, so it does not overlap the old one.
            unsafe { std::ptr::copy_nonoverlapping(pointer, new, size.min(layout.size())) };
            if of_system {
                // SAFETY: the old block came from the system, whose `realloc` has failed and left
                // the block as it was.
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
        // The test writes nothing to the reserve, so any address will do.
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
