//! Loops over blocks of a constant length, for every kind of cursor and every instruction set.
//!
//! Three of them, because the best moves differ: to a dense destination (pack) several blocks make full vectors to store, from
//! a dense source (unpack) only the blocks themselves may be written, and in general each block goes by itself.
//!
//! Invariant: blocks are written in order, and nothing beside them.

use super::block;
use super::cursor::{Cursor, Dense, opaque};
use super::isa::{Code, Isa};
use super::registers::{by_length, has};

/// Blocks per iteration of the plain loops: enough to hide the loop, few enough for the cache of decoded instructions. One block of 64 B an iteration takes
/// 27 or 46 ns for 64 of them, by where the loop lies (Emerald Rapids).
const fn unrolled(len: usize) -> usize {
    match len {
        0..=16 => 8,
        17..=63 => 4,
        64..=127 => 2,
        _ => 1,
    }
}

/// Copies `n` blocks, each by itself.
///
/// # Safety
/// `n` blocks of `LEN` bytes remain on either side, readable in `src`, writable in `dst`, without overlap between the sides;
/// the machine has the instructions of `I`.
#[inline(always)]
pub(super) unsafe fn each<I: Isa, const LEN: usize>(
    mut dst: impl Cursor,
    mut src: impl Cursor,
    mut n: usize,
) {
    const { assert!(LEN > 0) };
    if const { unrolled(LEN) == 1 } {
        // SAFETY: the same blocks.
        return unsafe { rolled::<I, LEN>(dst, src, n) };
    }
    let unrolled = const { unrolled(LEN) };
    while n >= unrolled {
        for u in 0..unrolled {
            // SAFETY: block `u` of the `n` blocks that remain.
            unsafe { block::constant::<I, LEN>(dst.at(u), src.at(u)) };
        }
        dst.advance(unrolled);
        src.advance(unrolled);
        n -= unrolled;
    }
    // SAFETY: the blocks that remain.
    unsafe { few::<I, LEN>(dst, src, n) }
}

/// Copies `n` blocks in a loop of one block an iteration, which the compiler does not unroll.
///
/// # Safety
/// As [`each`].
#[inline(always)]
pub(super) unsafe fn rolled<I: Isa, const LEN: usize>(mut dst: impl Cursor, mut src: impl Cursor, n: usize) {
    let mut left = n as isize;
    while left > 0 {
        // SAFETY: the first of the blocks that remain.
        unsafe { block::constant::<I, LEN>(dst.at(0), src.at(0)) };
        dst.advance(1);
        src.advance(1);
        left = opaque(left - 1);
    }
}

/// Copies the few blocks that are no whole group.
///
/// # Safety
/// As [`each`].
#[inline(always)]
unsafe fn few<I: Isa, const LEN: usize>(mut dst: impl Cursor, mut src: impl Cursor, n: usize) {
    for _ in 0..n {
        // SAFETY: the first of the blocks that remain.
        unsafe { block::constant::<I, LEN>(dst.at(0), src.at(0)) };
        dst.advance(1);
        src.advance(1);
    }
}

/// Says whether [`pack`] has something better than [`each`] on any two sides.
///
/// Up to 16 bytes a dense side is worth a loop of its own (8 B unpacked: 52 against 44 GB/s; Sapphire Rapids), beyond only groups are.
pub(super) const fn has_pack<I: Isa>(len: usize) -> bool {
    len <= 16 || by_length(I::GATHERED, len) > 0
}

/// Says whether [`unpack`] has something better than [`each`] on any two sides.
pub(super) const fn has_unpack<I: Isa>(len: usize) -> bool {
    len <= 16 || has(I::MASKED, len) || by_length(I::SCATTERED, len) > 0
}

/// Copies `n` blocks to a dense destination.
///
/// # Safety
/// As [`each`].
#[inline(always)]
pub(super) unsafe fn pack<I: Code, const LEN: usize>(dst: *mut u8, mut src: impl Cursor, mut n: usize) {
    let mut dst = Dense::<LEN>(dst);
    if const { by_length(I::GATHERED, LEN) == 0 } {
        // SAFETY: the same blocks.
        return unsafe { each::<I, LEN>(dst, src, n) };
    }
    let group = const { by_length(I::GATHERED, LEN) };
    let first = if n > group { misaligned::<I, LEN>(dst.0) } else { 0 };
    // SAFETY: fewer blocks than remain.
    unsafe { few::<I, LEN>(dst, src, first) };
    for _ in 0..first {
        dst.advance(1);
        src.advance(1);
    }
    n -= first;
    while n >= group {
        // SAFETY: a group of blocks remains.
        unsafe { I::gather::<LEN>(dst.0, &src) };
        dst.advance(group);
        src.advance(group);
        n -= group;
    }
    // SAFETY: the blocks that remain.
    unsafe { few::<I, LEN>(dst, src, n) }
}

/// Blocks before the one from which on the stores of groups are aligned: 0 to 3, and 0 where none is.
///
/// A store that crosses lines goes to both, and where the destination is misaligned every store of 64 bytes does and every other
/// one of 32: 2000 blocks of 24 B in L2 8 B off 3250 instead of 1620 ns (Sapphire Rapids).
#[inline(always)]
pub(super) fn misaligned<I: Isa, const LEN: usize>(dst: *mut u8) -> usize {
    let align = const { by_length(I::ALIGNED, LEN) };
    if align == 0 || (dst as usize).is_multiple_of(align) {
        return 0;
    }
    (1..4).find(|blocks| (dst as usize + blocks * LEN).is_multiple_of(align)).unwrap_or(0)
}

/// Copies `n` blocks from a dense source. `masked`: whether single stores under a mask pay, where there is a choice.
///
/// # Safety
/// As [`each`].
#[inline(always)]
pub(super) unsafe fn unpack<I: Code, const LEN: usize>(
    mut dst: impl Cursor,
    src: *mut u8,
    mut n: usize,
    masked: bool,
) {
    let mut src = Dense::<LEN>(src);
    if const { has(I::MASKED, LEN) } && masked {
        // The last block goes by itself: its register would be read past the last packed byte.
        while n > 4 {
            for u in 0..4 {
                // SAFETY: block `u` of more than four that remain; reading on ends within the block after it, which is
                // not shorter than what is read on.
                unsafe { I::store_masked::<LEN>(dst.at(u), src.at(u)) };
            }
            dst.advance(4);
            src.advance(4);
            n -= 4;
        }
    } else if const { by_length(I::SCATTERED, LEN) > 0 } {
        let group = const { by_length(I::SCATTERED, LEN) };
        while n >= group {
            // SAFETY: a group of blocks remains on either side.
            unsafe { I::scatter::<LEN>(&dst, src.0) };
            dst.advance(group);
            src.advance(group);
            n -= group;
        }
    } else {
        // SAFETY: the same blocks.
        return unsafe { each::<I, LEN>(dst, src, n) };
    }
    // SAFETY: the blocks that remain.
    unsafe { few::<I, LEN>(dst, src, n) }
}
