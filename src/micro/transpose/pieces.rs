//! The shape of the blocks in which a matrix is transposed, and code that transposes such a block
//! element by element. This code serves instruction sets that cannot transpose a square of elements
//! of this length in registers.

use crate::micro::block;
use crate::micro::registers::{Registers, by_length};

/// Returns the numbers of rows and columns of the blocks in which elements of `len` bytes are
/// moved. If the instruction set can transpose a square of elements of this length in registers,
/// the block is this square. Otherwise the block has 4 columns, and 16 rows for elements of 12
/// bytes, 8 rows for elements of 24 bytes, so that the elements make whole cache lines, and 4 rows
/// for elements of other lengths.
pub(in crate::micro) const fn shape<I: Registers>(len: usize) -> (usize, usize) {
    match (by_length(I::SQUARES, len), len) {
        (0, 12) => (16, 4),
        (0, 24) => (8, 4),
        (0, _) => (4, 4),
        (side, _) => (side, side),
    }
}

/// Transposes one block of a matrix of elements of `LEN` bytes, element by element.
///
/// # Safety
/// The elements of `LEN` bytes in a block of the shape `shape::<I>(LEN)` must be readable at `src`,
/// in rows that begin `src_row` bytes apart, and writable at `dst`, in rows that begin `dst_row`
/// bytes apart. The two sides must not overlap.
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
            // SAFETY: `s` and `d` are element `(r, c)` of the block on both sides, which the caller
            // promises.
            unsafe { block::constant::<I, LEN>(d, s) };
        }
    }
}
