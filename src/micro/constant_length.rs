//! Loops over blocks of a constant length, for all instruction sets and for all kinds of cursors. A
//! cursor yields the addresses of the blocks of one side, the source or the destination.
//!
//! There are three loops, because different code is fastest for each case. A side is dense if its
//! blocks follow each other directly. For a dense destination (pack), several blocks are combined
//! into full vectors, which are stored at once. For a dense source (unpack), only the bytes of the
//! blocks may be written. In the general case each block is copied separately.
//!
//! Invariant: blocks are written in order, and no byte outside them is written.

use super::block;
use super::cursor::{Cursor, Dense, opaque};
use super::isa::{Code, Isa};
use super::registers::{by_length, has};

/// Returns the number of blocks of `len` bytes that the plain loops copy in one iteration. This
/// number is large enough to hide the cost of the loop, and small enough for the code to fit into
/// the cache of decoded instructions. With one block of 64 B per iteration, 64 blocks take 27 or 46
/// ns, depending on the address of the loop (Emerald Rapids).
const fn unrolled(len: usize) -> usize {
    match len {
        0..=16 => 8,
        17..=63 => 4,
        64..=127 => 2,
        _ => 1,
    }
}

/// Copies `n` blocks of `LEN` bytes. Each block is copied separately.
///
/// # Safety
/// At least `n` blocks of `LEN` bytes must remain in both cursors, readable in `src` and writable
/// in `dst`. No source block may overlap a destination block. The machine must have the
/// instructions of `I`.
#[inline(always)]
pub(super) unsafe fn copy_blocks<I: Isa, const LEN: usize>(
    mut dst: impl Cursor,
    mut src: impl Cursor,
    mut n: usize,
) {
    const { assert!(LEN > 0) };
    if const { unrolled(LEN) == 1 } {
        // SAFETY: the conditions of `rolled` are those of this function, for the same blocks.
        return unsafe { rolled::<I, LEN>(dst, src, n) };
    }
    let unrolled = const { unrolled(LEN) };
    while n >= unrolled {
        for u in 0..unrolled {
            // SAFETY: at least `unrolled` of the promised blocks remain, and `u` is less than that.
            unsafe { block::constant::<I, LEN>(dst.address(u), src.address(u)) };
        }
        dst.advance(unrolled);
        src.advance(unrolled);
        n -= unrolled;
    }
    // SAFETY: these are the `n` promised blocks that remain.
    unsafe { few::<I, LEN>(dst, src, n) }
}

/// Copies `n` blocks of `LEN` bytes in a loop of one block per iteration, which the compiler does
/// not unroll.
///
/// # Safety
/// At least `n` blocks of `LEN` bytes must remain in both cursors, readable in `src` and writable
/// in `dst`. No source block may overlap a destination block. The machine must have the
/// instructions of `I`.
#[inline(always)]
pub(super) unsafe fn rolled<I: Isa, const LEN: usize>(mut dst: impl Cursor, mut src: impl Cursor, n: usize) {
    let mut left = n as isize;
    while left > 0 {
        // SAFETY: `left` of the promised blocks remain, at least one; this is the next one.
        unsafe { block::constant::<I, LEN>(dst.address(0), src.address(0)) };
        dst.advance(1);
        src.advance(1);
        left = opaque(left - 1);
    }
}

/// Copies `n` blocks of `LEN` bytes one by one. Loops that copy groups of several blocks at once
/// call this function for the few blocks before the first group and after the last one.
///
/// # Safety
/// At least `n` blocks of `LEN` bytes must remain in both cursors, readable in `src` and writable
/// in `dst`. No source block may overlap a destination block. The machine must have the
/// instructions of `I`.
#[inline(always)]
unsafe fn few<I: Isa, const LEN: usize>(mut dst: impl Cursor, mut src: impl Cursor, n: usize) {
    for _ in 0..n {
        // SAFETY: at least one of the promised blocks remains; this is the next one.
        unsafe { block::constant::<I, LEN>(dst.address(0), src.address(0)) };
        dst.advance(1);
        src.advance(1);
    }
}

/// Returns true if blocks of `len` bytes are packed faster by [`pack`], the loop for a dense
/// destination, than by [`copy_blocks`], the loop for arbitrary cursors.
///
/// For blocks of up to 16 bytes, a side whose blocks follow each other directly is worth a loop of
/// its own (blocks of 8 B are unpacked at 52 instead of 44 GB/s; Sapphire Rapids). For longer
/// blocks such a loop pays only if it combines blocks into groups.
pub(super) const fn has_pack<I: Isa>(len: usize) -> bool {
    len <= 16 || by_length(I::GATHERED, len) > 0
}

/// Returns true if blocks of `len` bytes are unpacked faster by [`unpack`], the loop for a dense
/// source, than by [`copy_blocks`], the loop for arbitrary cursors.
pub(super) const fn has_unpack<I: Isa>(len: usize) -> bool {
    len <= 16 || has(I::MASKED, len) || by_length(I::SCATTERED, len) > 0
}

/// Copies `n` blocks of `LEN` bytes to a dense destination, where the blocks follow each other
/// directly.
///
/// # Safety
/// At least `n` blocks of `LEN` bytes must remain in `src` and be readable. Block `i` goes to `dst
/// + i * LEN`, and all of these bytes must be writable. No source block may overlap a destination
/// block. The machine must have the instructions of `I`.
#[inline(always)]
pub(super) unsafe fn pack<I: Code, const LEN: usize>(dst: *mut u8, mut src: impl Cursor, mut n: usize) {
    let mut dst = Dense::<LEN>(dst);
    if const { by_length(I::GATHERED, LEN) == 0 } {
        // SAFETY: the conditions of `copy_blocks` are those of this function, for the same blocks.
        return unsafe { copy_blocks::<I, LEN>(dst, src, n) };
    }
    // First the blocks before the first aligned store are copied separately. Then the loop copies
    // whole groups of `group` blocks. The blocks that are left after the last group are again
    // copied separately.
    let group = const { by_length(I::GATHERED, LEN) };
    let first = if n > group { misaligned::<I, LEN>(dst.0) } else { 0 };
    // SAFETY: `first` is not greater than `n`. It is at most 3, and 0 unless more than a group of
    // the promised blocks remains. Groups with an alignment have at least four blocks, except those
    // of 48 bytes, which have two. For these `first` is at most 1, because two blocks are a
    // multiple of the alignment.
    unsafe { few::<I, LEN>(dst, src, first) };
    for _ in 0..first {
        dst.advance(1);
        src.advance(1);
    }
    n -= first;
    while n >= group {
        // SAFETY: at least `group` of the promised blocks remain, which is the number that `gather`
        // copies.
        unsafe { I::gather::<LEN>(dst.0, &src) };
        dst.advance(group);
        src.advance(group);
        n -= group;
    }
    // SAFETY: these are the `n` promised blocks that remain.
    unsafe { few::<I, LEN>(dst, src, n) }
}

/// Returns the number of blocks of `LEN` bytes, 0 to 3, that have to be copied separately so that
/// the stores of full vectors after them are aligned. The result is 0 if no such number exists, or
/// if alignment does not pay for this length.
///
/// A store that crosses the boundary between two cache lines writes to both. If the destination is
/// misaligned, this happens to every store of 64 bytes and to every other store of 32 bytes. 2000
/// blocks of 24 B in L2, misaligned by 8 B, take 3250 instead of 1620 ns (Sapphire Rapids).
#[inline(always)]
pub(super) fn misaligned<I: Isa, const LEN: usize>(dst: *mut u8) -> usize {
    let align = const { by_length(I::ALIGNED, LEN) };
    if align == 0 || (dst as usize).is_multiple_of(align) {
        return 0;
    }
    (1..4).find(|blocks| (dst as usize + blocks * LEN).is_multiple_of(align)).unwrap_or(0)
}

/// Copies `n` blocks of `LEN` bytes from a dense source, where the blocks follow each other
/// directly. `masked` is true if one masked store per block pays. `masked` matters only for the
/// lengths in [`Isa::MASKED`].
///
/// # Safety
/// At least `n` blocks of `LEN` bytes must remain in `dst` and be writable. Block `i` comes from
/// `src + i * LEN`, and all of these bytes must be readable. No source block may overlap a
/// destination block. The machine must have the instructions of `I`.
#[inline(always)]
pub(super) unsafe fn unpack<I: Code, const LEN: usize>(
    mut dst: impl Cursor,
    src: *mut u8,
    mut n: usize,
    masked: bool,
) {
    let mut src = Dense::<LEN>(src);
    if const { has(I::MASKED, LEN) } && masked {
        // This loop never copies the last block, because the vector that is loaded from a block
        // would there reach past the last packed byte. The last block is copied separately.
        while n > 4 {
            for u in 0..4 {
                // SAFETY: more than four of the promised blocks remain, and `u` is less than four.
                // `store_masked` reads `LEN` rounded up to a power of two; the bytes past the block
                // belong to the block after it, which is at least that long.
                unsafe { I::store_masked::<LEN>(dst.address(u), src.address(u)) };
            }
            dst.advance(4);
            src.advance(4);
            n -= 4;
        }
    } else if const { by_length(I::SCATTERED, LEN) > 0 } {
        let group = const { by_length(I::SCATTERED, LEN) };
        while n >= group {
            // SAFETY: at least `group` of the promised blocks remain on both sides, which is the
            // number that `scatter` copies.
            unsafe { I::scatter::<LEN>(&dst, src.0) };
            dst.advance(group);
            src.advance(group);
            n -= group;
        }
    } else {
        // SAFETY: the conditions of `copy_blocks` are those of this function, for the same blocks.
        return unsafe { copy_blocks::<I, LEN>(dst, src, n) };
    }
    // SAFETY: these are the `n` promised blocks that remain.
    unsafe { few::<I, LEN>(dst, src, n) }
}
