//! Loops over blocks of one length that is known only at run time.
//!
//! A piece is what one load and one store move. A block of medium length is copied as a few pieces
//! of the widest size at fixed offsets, and a last piece that ends with the block and may overlap
//! the piece before it. The number of pieces is determined once, before the loop over the blocks.
//! This loop is therefore as free of branches as a loop that is compiled for one length.

use std::ptr;

use super::cursor::Cursor;
use super::isa::Isa;
use super::{block, piece, run};

/// Copies `n` blocks of `len` bytes, in order, by a loop that is chosen by the length.
///
/// # Safety
/// At least `n` blocks of `len` bytes must remain in both cursors, readable in `src` and writable
/// in `dst`. No source block may overlap a destination block. The machine must have the
/// instructions of `I`.
#[inline(always)]
pub(super) unsafe fn any<I: Isa>(dst: impl Cursor, src: impl Cursor, n: usize, len: usize) {
    // Runs the loop that is made for the number of pieces of `$wide` bytes in a block and returns,
    // if this number is in the list `$count`.
    macro_rules! pieces {
        ($wide:literal: $($count:literal)*) => {
            match len.div_ceil($wide) {
                $($count => return pieced::<$count, $wide>(dst, src, n, len),)*
                _ => {}
            }
        };
    }
    // SAFETY: all loops get the blocks that the caller promises. If a loop with `count` pieces of W
    // bytes is chosen, `len` is at least W, greater than `count - 1` pieces and at most `count`
    // pieces. `fours` is chosen only for multiples of four pieces.
    unsafe {
        match const { I::WIDE } {
            64 if len.is_multiple_of(64) => {
                // Whether the destination is aligned is tested for the first two blocks. If the
                // blocks lie at a constant stride and the first two are aligned, all of them are.
                // If the offsets of the blocks are read from a table, the first two are only a
                // sample. The result decides nothing but the speed.
                if (0..n.min(2)).any(|i| block::should_align::<64>(dst.address(i), len)) {
                    return copy_blocks::<I>(dst, src, n, len);
                }
                pieces! { 64: 1 2 3 4 5 6 7 8 }
                if len.is_multiple_of(256) && len <= const { block::max_inline(64) } {
                    return fours::<64>(dst, src, n, len);
                }
            }
            64 | 32 if len > 32 => {
                // If the last piece of 64 bytes of a block overlaps the piece before it, pieces of
                // 64 bytes are used only if there are half as many of them as of pieces of 32
                // bytes. Under this condition, blocks of 100, 120, 168, 184 and 248 B take 0.75 to
                // 0.92 of the time that pieces of 32 bytes take (24 blocks), or 0.91 to 1.07 of
                // that time (512 blocks). Without this condition, blocks of 92 B would take 1.25 to
                // 1.44 of the time that pieces of 32 bytes take, and blocks of 152 B would take 1.1
                // to 1.4 of it (Emerald Rapids).
                if I::WIDE == 64 && len % 64 > 32 {
                    pieces! { 64: 2 3 4 }
                }
                pieces! { 32: 2 3 4 5 6 7 8 }
                if n == 1 {
                    // A single block is copied in pieces of 32 bytes up to a length of 320 bytes.
                    // Above that length, aligned stores of 64 bytes are faster (`should_align`). If
                    // there are several blocks of more than 256 bytes, they are not copied in pieces
                    // of 32 bytes, because that is slower than `copy_blocks`: many blocks of 264 B
                    // in L2 would take 1.13 times as long.
                    pieces! { 32: 9 10 }
                }
                if I::WIDE == 32 && len.is_multiple_of(128) && len <= const { block::max_inline(32) } {
                    return fours::<32>(dst, src, n, len);
                }
            }
            _ if len >= 16 => pieces! { 16: 1 2 3 4 5 6 7 8 },
            _ => {}
        }
        if len > const { block::max_inline(I::WIDE) } {
            return runs(dst, src, n, len);
        }
        copy_blocks::<I>(dst, src, n, len);
    }
}

/// Copies `n` blocks of `len` bytes that are so long that each is copied by a call: of `memcpy`, or
/// of a function that copies long runs in a loop.
///
/// # Safety
/// At least `n` blocks of `len` bytes must remain in both cursors, readable in `src` and writable
/// in `dst`. No source block may overlap a destination block.
#[inline(always)]
unsafe fn runs(mut dst: impl Cursor, mut src: impl Cursor, n: usize, len: usize) {
    // SAFETY: `dst.address(0)` and `src.address(0)` are the next of the blocks that remain, valid for `len`
    // bytes. `by_loop` returns only loops for this length whose instructions this machine has.
    unsafe {
        let first = if n > 0 { dst.address(0) } else { return };
        let by_loop = run::by_loop(first, len, n.saturating_mul(len));
        for _ in 0..n {
            let (d, s) = (dst.address(0), src.address(0).cast_const());
            match by_loop {
                Some(copy) => copy(d, s, len),
                None => ptr::copy_nonoverlapping(s, d, len),
            }
            dst.advance(1);
            src.advance(1);
        }
    }
}

/// Copies `n` blocks of `len` bytes, each as `COUNT` pieces of `WIDE` bytes. A piece is what one
/// load and one store move. The last piece of a block may overlap the piece before it.
///
/// # Safety
/// At least `n` blocks of `len` bytes must remain in both cursors, readable in `src` and writable
/// in `dst`. No source block may overlap a destination block. `len` must be at least `WIDE`,
/// greater than `(COUNT - 1) * WIDE` and at most `COUNT * WIDE`.
#[inline(always)]
unsafe fn pieced<const COUNT: usize, const WIDE: usize>(
    mut dst: impl Cursor,
    mut src: impl Cursor,
    n: usize,
    len: usize,
) {
    let last = len - WIDE;
    for _ in 0..n {
        // SAFETY: `d` and `s` are the next of the blocks that remain. Pieces at a multiple of
        // `WIDE` are the first `COUNT - 1`, which end before `len`, and the last piece ends at
        // `len`.
        unsafe {
            let (d, s) = (dst.address(0), src.address(0).cast_const());
            // The copies of the pieces are written out instead of looped over, because they must be
            // unrolled. Copies after the last of the `COUNT` pieces are not compiled.
            macro_rules! steps {
                ($($i:literal)*) => {$(
                    if const { $i + 1 < COUNT } {
                        piece::piece::<WIDE>(d.add($i * WIDE), s.add($i * WIDE));
                    }
                )*};
            }
            steps! { 0 1 2 3 4 5 6 7 8 }
            piece::piece::<WIDE>(d.add(last), s.add(last));
        }
        dst.advance(1);
        src.advance(1);
    }
}

/// Copies `n` blocks whose length is a multiple of four pieces of `WIDE` bytes. No remainder of a
/// block has to be tested for, so 16 blocks of 768 B take 0.89 of the time that they take with such
/// a test (Sapphire Rapids, L1).
///
/// # Safety
/// At least `n` blocks of `len` bytes must remain in both cursors, readable in `src` and writable
/// in `dst`. No source block may overlap a destination block. `len` must be a multiple of `4 *
/// WIDE`.
#[inline(always)]
unsafe fn fours<const WIDE: usize>(mut dst: impl Cursor, mut src: impl Cursor, n: usize, len: usize) {
    for _ in 0..n {
        // SAFETY: `d` and `s` are the next of the blocks that remain. `len` is a multiple of four
        // pieces, so four pieces from `at` end at or before `len`. `aligned` is used only if
        // `should_align` is true, which needs more than 192 bytes.
        unsafe {
            let (d, s) = (dst.address(0), src.address(0).cast_const());
            // For pieces of 64 bytes, the caller, `any`, has already tested the alignment of the
            // first two blocks.
            if const { WIDE == 32 } && block::should_align::<WIDE>(d, len) {
                piece::aligned::<WIDE>(d, s, len);
            } else {
                let mut at = 0;
                while at < len {
                    piece::four::<WIDE>(d.add(at), s.add(at));
                    at += 4 * WIDE;
                }
            }
        }
        dst.advance(1);
        src.advance(1);
    }
}

/// Copies `n` blocks of `len` bytes that are very short, or so long that each block needs an inner
/// loop over its pieces. That inner loop is inlined here.
///
/// # Safety
/// At least `n` blocks of `len` bytes must remain in both cursors, readable in `src` and writable
/// in `dst`. No source block may overlap a destination block. The machine must have the
/// instructions of `I`.
#[inline(always)]
unsafe fn copy_blocks<I: Isa>(mut dst: impl Cursor, mut src: impl Cursor, n: usize, len: usize) {
    for _ in 0..n {
        // SAFETY: `dst.address(0)` and `src.address(0)` are the next of the blocks that remain, valid for
        // `len` bytes. The caller promises a machine with the instructions of `I`.
        unsafe { block::run_time_by::<I>(dst.address(0), src.address(0), len) };
        dst.advance(1);
        src.advance(1);
    }
}
