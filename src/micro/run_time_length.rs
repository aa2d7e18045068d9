//! Loops over blocks of one length that is known only at run time.
//!
//! Every length is a few of the widest pieces at fixed offsets and a last piece that ends with the block, overlapping the one
//! before it. How many is decided once, before the loop, so that the loop is as straight as one made for the length.

use std::ptr;

use super::cursor::Cursor;
use super::isa::Isa;
use super::{block, piece, run};

/// Copies `n` blocks of `len` bytes, in order.
///
/// # Safety
/// `n` blocks of `len` bytes remain on either side, readable in `src`, writable in `dst`, without overlap between the sides;
/// the machine has the instructions of `I`.
#[inline(always)]
pub(super) unsafe fn any<I: Isa>(dst: impl Cursor, src: impl Cursor, n: usize, len: usize) {
    // Called with the width as a constant and so many pieces of it.
    macro_rules! pieces {
        ($wide:literal: $($count:literal)*) => {
            match len.div_ceil($wide) {
                $($count => return pieced::<$count, $wide>(dst, src, n, len),)*
                _ => {}
            }
        };
    }
    // SAFETY: the same blocks. Where `count` pieces of W bytes are used, `len` is above `count - 1` and at most `count` of
    // them, and at least one.
    unsafe {
        match const { I::WIDE } {
            64 if len.is_multiple_of(64) => {
                // All lie as the first two do.
                if (0..n.min(2)).any(|i| block::should_align::<64>(dst.at(i), len)) {
                    return each::<I>(dst, src, n, len);
                }
                pieces! { 64: 1 2 3 4 5 6 7 8 }
                if len.is_multiple_of(256) && len <= const { block::max_inline(64) } {
                    return fours::<64>(dst, src, n, len);
                }
            }
            64 | 32 if len > 32 => {
                // With a last piece that overlaps only where there are half as many: 24 blocks of 100, 120, 168, 184 and 248 B take 0.75 to 0.92 of the time of pieces
                // of 32, 512 of them 0.91 to 1.07, but of 92 B 1.25 to 1.44, of 152 B 1.1 to 1.4 (Emerald Rapids).
                if I::WIDE == 64 && len % 64 > 32 {
                    pieces! { 64: 2 3 4 }
                }
                pieces! { 32: 2 3 4 5 6 7 8 }
                if n == 1 {
                    // A lone block up to where stores are worth aligning (`should_align`): many of 264 B in L2 take 1.13 of the time of `each`.
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
        each::<I>(dst, src, n, len);
    }
}

/// Blocks each of which is a call.
///
/// # Safety
/// As [`any`].
#[inline(always)]
unsafe fn runs(mut dst: impl Cursor, mut src: impl Cursor, n: usize, len: usize) {
    // SAFETY: the first of the blocks that remain; the loop is one whose instructions this machine has.
    unsafe {
        let first = if n > 0 { dst.at(0) } else { return };
        let by_loop = run::by_loop(first, len, n.saturating_mul(len));
        for _ in 0..n {
            let (d, s) = (dst.at(0), src.at(0).cast_const());
            match by_loop {
                Some(copy) => copy(d, s, len),
                None => ptr::copy_nonoverlapping(s, d, len),
            }
            dst.advance(1);
            src.advance(1);
        }
    }
}

/// Blocks of `COUNT` pieces of `WIDE` bytes each, the last of which may overlap the one before it.
///
/// # Safety
/// As [`any`]; `len` is at least `WIDE`, above `(COUNT - 1) * WIDE` and at most `COUNT * WIDE`.
#[inline(always)]
unsafe fn pieced<const COUNT: usize, const WIDE: usize>(
    mut dst: impl Cursor,
    mut src: impl Cursor,
    n: usize,
    len: usize,
) {
    let last = len - WIDE;
    for _ in 0..n {
        // SAFETY: the first of the blocks that remain; every piece ends at or before `len`.
        unsafe {
            let (d, s) = (dst.at(0), src.at(0).cast_const());
            // Written out, since it must be unrolled: what is past the count is never compiled.
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

/// Blocks of a multiple of four pieces, which leaves no rest to ask for: 16 blocks of 768 B in 0.89 of the time (Sapphire Rapids, L1).
///
/// # Safety
/// As [`any`]; `len` is a multiple of `4 * WIDE`.
#[inline(always)]
unsafe fn fours<const WIDE: usize>(mut dst: impl Cursor, mut src: impl Cursor, n: usize, len: usize) {
    for _ in 0..n {
        // SAFETY: the first of the blocks that remain; four pieces end at or before `len`.
        unsafe {
            let (d, s) = (dst.at(0), src.at(0).cast_const());
            // With 64 bytes `any` has looked at the first one.
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

/// Blocks that are very short, or so long that each is a loop of its own in line.
///
/// # Safety
/// As [`any`].
#[inline(always)]
unsafe fn each<I: Isa>(mut dst: impl Cursor, mut src: impl Cursor, n: usize, len: usize) {
    for _ in 0..n {
        // SAFETY: the first of the blocks that remain.
        unsafe { block::run_time_by::<I>(dst.at(0), src.at(0), len) };
        dst.advance(1);
        src.advance(1);
    }
}
