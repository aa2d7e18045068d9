//! Functions that copy pieces of a block. A piece is what one load and one store move. There is a
//! function for one piece, one for four pieces in order, and one for all pieces of a long block,
//! whose stores are aligned.

use std::ptr;

/// Copies `N` bytes. The compiler makes one load and one store of this if the instruction set has
/// registers of `N` bytes.
///
/// # Safety
/// `N` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
pub(super) unsafe fn piece<const N: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: the caller promises `N` readable and `N` writable bytes that do not overlap.
    unsafe { ptr::copy_nonoverlapping(src, dst, N) }
}

/// Copies four consecutive pieces of `WIDE` bytes each, in order.
///
/// # Safety
/// `4 * WIDE` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
pub(super) unsafe fn four<const WIDE: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: the four pieces lie within the `4 * WIDE` bytes that the caller promises.
    unsafe {
        piece::<WIDE>(dst, src);
        piece::<WIDE>(dst.add(WIDE), src.add(WIDE));
        piece::<WIDE>(dst.add(2 * WIDE), src.add(2 * WIDE));
        piece::<WIDE>(dst.add(3 * WIDE), src.add(3 * WIDE));
    }
}

/// Copies a block of more than 192 bytes in pieces of `WIDE` bytes, which is 32 or 64. The stores
/// are aligned, except those at the start and at the end of the block.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap. `len`
/// must be greater than 192.
#[inline(always)]
pub(super) unsafe fn aligned<const WIDE: usize>(dst: *mut u8, src: *const u8, len: usize) {
    debug_assert!(len > 192 && WIDE <= 64);
    // SAFETY: all pieces lie within the `len` bytes that the caller promises. The pieces at the
    // start end at 64. Each loop checks that its pieces end at or before `len`. The last pieces end
    // at `len` and have at most 128 bytes together, so they begin after the start of the block.
    unsafe {
        let (mut at, off) = (0, dst.addr() % 64);
        // If the destination does not begin at a multiple of 64, the first 64 bytes are stored
        // unaligned, and the loops begin at the first multiple of 64 after the start.
        if off != 0 {
            for first in (0..64).step_by(WIDE) {
                piece::<WIDE>(dst.add(first), src.add(first));
            }
            at = 64 - off;
        }
        while at + 4 * WIDE <= len {
            four::<WIDE>(dst.add(at), src.add(at));
            at += 4 * WIDE;
        }
        if at == len {
            return;
        }
        // What is left is less than four pieces. With pieces of 32 bytes, the last four pieces of
        // the block cover what is left. With pieces of 64 bytes, whole pieces are copied in order,
        // and then the last piece of the block. In both cases, the last pieces may overlap bytes
        // that are already copied.
        if const { WIDE == 32 } {
            return four::<WIDE>(dst.add(len - 128), src.add(len - 128));
        }
        while at + WIDE <= len {
            piece::<WIDE>(dst.add(at), src.add(at));
            at += WIDE;
        }
        piece::<WIDE>(dst.add(len - WIDE), src.add(len - WIDE));
    }
}
