//! Pieces of a block: one that a load and a store move, four in order, and all of a long block with
//! aligned stores.

use std::ptr;

/// Copies one piece of `N` bytes; a load and a store where the instruction set has the width.
///
/// # Safety
/// `N` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
pub(super) unsafe fn piece<const N: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: as promised by the caller.
    unsafe { ptr::copy_nonoverlapping(src, dst, N) }
}

/// Copies four pieces of `WIDE` bytes in order.
///
/// # Safety
/// `4 * WIDE` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
pub(super) unsafe fn four<const WIDE: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: as promised by the caller.
    unsafe {
        piece::<WIDE>(dst, src);
        piece::<WIDE>(dst.add(WIDE), src.add(WIDE));
        piece::<WIDE>(dst.add(2 * WIDE), src.add(2 * WIDE));
        piece::<WIDE>(dst.add(3 * WIDE), src.add(3 * WIDE));
    }
}

/// Copies more than 192 bytes in pieces of `WIDE`, 32 or 64, stores aligned.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping; `len > 192`.
#[inline(always)]
pub(super) unsafe fn aligned<const WIDE: usize>(dst: *mut u8, src: *const u8, len: usize) {
    debug_assert!(len > 192 && WIDE <= 64);
    // SAFETY: all pieces begin at 0 or later and end at or before `len`: the first at 64, which is behind `at`, those of the loops where they look, the last ones at `len`.
    unsafe {
        let (mut at, off) = (0, dst.addr() % 64);
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
