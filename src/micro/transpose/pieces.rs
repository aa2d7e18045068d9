//! One block of a matrix, and its transpose element by element: what serves where an instruction set has no square.

use crate::micro::block;
use crate::micro::registers::{Registers, by_length};

/// Rows and columns of the blocks that elements of `len` bytes are moved in: a square in registers where the instruction set has one,
/// else 4 columns and as many rows as make whole lines.
pub(in crate::micro) const fn shape<I: Registers>(len: usize) -> (usize, usize) {
    match (by_length(I::SQUARES, len), len) {
        (0, 12) => (16, 4),
        (0, 24) => (8, 4),
        (0, _) => (4, 4),
        (side, _) => (side, side),
    }
}

/// Transposes one block, one element after the other.
///
/// # Safety
/// The elements of `LEN` bytes are valid at `dst` by rows of `dst_row` bytes and at `src` by rows of `src_row`, without overlap.
#[inline(always)]
pub(in crate::micro) unsafe fn in_pieces<I: Registers, const LEN: usize>(
    dst: *mut u8,
    src: *const u8,
    dst_row: isize,
    src_row: isize,
) {
    let (rows, cols) = const { shape::<I>(LEN) };
    for c in 0..cols {
        for r in 0..rows {
            let d = dst.wrapping_offset(c as isize * dst_row).wrapping_add(r * LEN);
            let s = src.wrapping_offset(r as isize * src_row).wrapping_add(c * LEN);
            // SAFETY: element `(r, c)` of the block.
            unsafe { block::constant::<I, LEN>(d, s) };
        }
    }
}
