//! Loops over blocks of a constant length, for all kinds of cursors and all instruction sets.
//!
//! There are three loops, because different code is fastest for each case. For a dense destination
//! (pack), several blocks are combined into full vectors, which are stored at once. For a dense
//! source (unpack), only the bytes of the blocks may be written. In the general case each block is
//! copied separately.
//!
//! Invariant: blocks are written in order, and no byte outside them is written.

use super::block;
use super::cursor::{Cursor, Dense, opaque};
use super::isa::{Code, Isa};
use super::registers::{by_length, has};

/// Returns the number of blocks per iteration of the plain loops: enough to hide the cost of the
/// loop, and few enough for the cache of decoded instructions. With one block of 64 B per
/// iteration, 64 blocks take 27 or 46 ns, depending on the address of the loop (Emerald Rapids).
const fn unrolled(len: usize) -> usize {
    match len {
        0..=16 => 8,
        17..=63 => 4,
        64..=127 => 2,
        _ => 1,
    }
}

/// Copies `n` blocks, each separately.
///
/// # Safety
/// `n` blocks of `LEN` bytes must remain on both sides, readable in `src` and writable in `dst`,
/// without overlap between the sides. The machine must have the instructions of `I`.
#[inline(always)]
pub(super) unsafe fn each<I: Isa, const LEN: usize>(
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
            unsafe { block::constant::<I, LEN>(dst.at(u), src.at(u)) };
        }
        dst.advance(unrolled);
        src.advance(unrolled);
        n -= unrolled;
    }
    // SAFETY: these are the `n` promised blocks that remain.
    unsafe { few::<I, LEN>(dst, src, n) }
}

/// Copies `n` blocks in a loop of one block per iteration, which the compiler does not unroll.
///
/// # Safety
/// The conditions of [`each`].
#[inline(always)]
pub(super) unsafe fn rolled<I: Isa, const LEN: usize>(mut dst: impl Cursor, mut src: impl Cursor, n: usize) {
    let mut left = n as isize;
    while left > 0 {
        // SAFETY: `left` of the promised blocks remain, at least one; this is the next one.
        unsafe { block::constant::<I, LEN>(dst.at(0), src.at(0)) };
        dst.advance(1);
        src.advance(1);
        left = opaque(left - 1);
    }
}

/// Copies `n` blocks one by one. It serves the few blocks before the first and after the last whole
/// group.
///
/// # Safety
/// The conditions of [`each`].
#[inline(always)]
unsafe fn few<I: Isa, const LEN: usize>(mut dst: impl Cursor, mut src: impl Cursor, n: usize) {
    for _ in 0..n {
        // SAFETY: at least one of the promised blocks remains; this is the next one.
        unsafe { block::constant::<I, LEN>(dst.at(0), src.at(0)) };
        dst.advance(1);
        src.advance(1);
    }
}

/// Returns true if [`pack`] is faster than [`each`] with arbitrary cursors.
///
/// Up to 16 bytes, a dense side is worth a loop of its own (8 B unpacked: 52 against 44 GB/s;
/// Sapphire Rapids). For longer blocks this is true only if blocks are combined into groups.
pub(super) const fn has_pack<I: Isa>(len: usize) -> bool {
    len <= 16 || by_length(I::GATHERED, len) > 0
}

/// Returns true if [`unpack`] is faster than [`each`] with arbitrary cursors.
pub(super) const fn has_unpack<I: Isa>(len: usize) -> bool {
    len <= 16 || has(I::MASKED, len) || by_length(I::SCATTERED, len) > 0
}

/// Copies `n` blocks to a dense destination.
///
/// # Safety
/// The conditions of [`each`], where block `i` of the destination lies at `dst + i * LEN`.
#[inline(always)]
pub(super) unsafe fn pack<I: Code, const LEN: usize>(dst: *mut u8, mut src: impl Cursor, mut n: usize) {
    let mut dst = Dense::<LEN>(dst);
    if const { by_length(I::GATHERED, LEN) == 0 } {
        // SAFETY: the conditions of `each` are those of this function, for the same blocks.
        return unsafe { each::<I, LEN>(dst, src, n) };
    }
    // The blocks before the first aligned store are copied separately, then whole groups, then the
    // blocks that are left.
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

/// Returns the number of blocks, 0 to 3, after which the stores of groups are aligned. It is 0 if
/// no such number exists, or if alignment does not pay for this length.
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

/// Copies `n` blocks from a dense source. `masked` is true if one masked store per block pays. It
/// matters only for the lengths in [`Isa::MASKED`].
///
/// # Safety
/// The conditions of [`each`], where block `i` of the source lies at `src + i * LEN`.
#[inline(always)]
pub(super) unsafe fn unpack<I: Code, const LEN: usize>(
    mut dst: impl Cursor,
    src: *mut u8,
    mut n: usize,
    masked: bool,
) {
    let mut src = Dense::<LEN>(src);
    if const { has(I::MASKED, LEN) } && masked {
        // The last block is copied separately: a vector loaded from it would reach past the last
        // packed byte.
        while n > 4 {
            for u in 0..4 {
                // SAFETY: more than four of the promised blocks remain, and `u` is less than four.
                // `store_masked` reads `LEN` rounded up to a power of two; the bytes past the block
                // belong to the block after it, which is at least that long.
                unsafe { I::store_masked::<LEN>(dst.at(u), src.at(u)) };
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
        // SAFETY: the conditions of `each` are those of this function, for the same blocks.
        return unsafe { each::<I, LEN>(dst, src, n) };
    }
    // SAFETY: these are the `n` promised blocks that remain.
    unsafe { few::<I, LEN>(dst, src, n) }
}
