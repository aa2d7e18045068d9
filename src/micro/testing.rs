//! Helpers of the tests of micro-kernels: memory between two pages that must not be touched, and a
//! comparison that places blocks at both edges of this memory.

use std::ptr;

/// Accessible memory with an inaccessible page directly before it and another one directly after
/// it.
pub(super) struct Guarded {
    start: *mut u8,
    len: usize,
}

// The largest page of any supported machine.
const PAGE: usize = 64 << 10;

impl Guarded {
    /// Returns new accessible memory of at least `len` bytes.
    pub(super) fn new(len: usize) -> Guarded {
        let len = len.next_multiple_of(PAGE);
        // SAFETY: this is a new mapping, which nobody else uses. Its middle, from `PAGE` on, is
        // made accessible.
        let start = unsafe {
            let all = libc::mmap(
                ptr::null_mut(),
                len + 2 * PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(all, libc::MAP_FAILED);
            let start = all.cast::<u8>().add(PAGE);
            assert_eq!(libc::mprotect(start.cast(), len, libc::PROT_READ | libc::PROT_WRITE), 0);
            start
        };
        Guarded { start, len }
    }

    /// Returns the first `len` bytes of the accessible memory. An inaccessible page lies directly
    /// before these bytes.
    pub(super) fn front(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= self.len);
        // SAFETY: `len` bytes from `start` are accessible, and `self` is borrowed mutably as long
        // as the slice is.
        unsafe { std::slice::from_raw_parts_mut(self.start, len) }
    }

    /// Returns the last `len` bytes of the accessible memory. An inaccessible page lies directly
    /// after these bytes.
    pub(super) fn back(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= self.len);
        // SAFETY: the last `len` of the accessible bytes; `self` is borrowed mutably as long as the
        // slice is.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(self.len - len), len) }
    }

    /// Returns the last `len` bytes of the accessible memory if `back` is true, or else its first
    /// `len` bytes.
    pub(super) fn edge(&mut self, back: bool, len: usize) -> &mut [u8] {
        if back { self.back(len) } else { self.front(len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: this is exactly the mapping that `new` made, and no slice of it is left.
        unsafe { libc::munmap(self.start.sub(PAGE).cast(), self.len + 2 * PAGE) };
    }
}

/// Fills `bytes` with a pattern that depends on the offset and on `seed`.
pub(super) fn fill(bytes: &mut [u8], seed: u8) {
    for (i, b) in bytes.iter_mut().enumerate() {
        *b = (i as u8).wrapping_mul(31).wrapping_add((i >> 8) as u8).wrapping_add(seed);
    }
}

/// Returns the number of bytes from the start of the lowest to the end of the highest of `n` blocks
/// of `len` bytes, and the offset of block 0 in these bytes.
pub(super) fn span(n: u64, stride: i64, len: u64) -> (usize, usize) {
    let reach = (n.max(1) - 1) as usize * stride.unsigned_abs() as usize;
    (if n == 0 { 0 } else { reach + len as usize }, if stride < 0 { reach } else { 0 })
}

/// Checks that `run` leaves the same bytes in the destination as `model` does, and that it leaves
/// the source unchanged. Source and destination lie next to a page that must not be touched, first
/// directly after it and then directly before it. `run` and `model` get the addresses of the
/// destination and of the source.
pub(super) fn check(
    areas: &mut (Guarded, Guarded),
    (dst_len, src_len): (usize, usize),
    run: impl Fn(*mut u8, *mut u8),
    model: impl Fn(*mut u8, *mut u8),
    what: impl Fn() -> String,
) {
    let mut expected = vec![0; dst_len];
    fill(&mut expected, 200);
    let mut source = vec![0; src_len];
    fill(&mut source, 3);
    model(expected.as_mut_ptr(), source.as_mut_ptr());
    for back in [false, true] {
        let src = areas.1.edge(back, src_len);
        fill(src, 3);
        let dst = areas.0.edge(back, dst_len);
        fill(dst, 200);
        run(dst.as_mut_ptr(), src.as_mut_ptr());
        assert!(dst == expected, "{} at the {} edge", what(), if back { "back" } else { "front" });
        assert!(src == source, "{} wrote to its source", what());
    }
}
