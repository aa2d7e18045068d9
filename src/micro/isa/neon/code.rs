//! Pairs, permutations and tables of aarch64: what packing and unpacking at a dense side gain from NEON.
//!
//! A store may alias the next load, so the compiler keeps block after block apart: one load, one store. Here a group of blocks
//! is loaded before any of it is stored, and neighbours become `ldp` and `stp`; where blocks are so near that a vector holds
//! several, they are loaded together and put in place by `uzp1` or `tbl`. Chosen by the instructions of the inner loop for one
//! block, as the compiler writes it; no machine has timed them:
//!
//! | Blocks | portable | here |
//! |---|---|---|
//! | pack or unpack 4, 8 or 16 B | 2.6 | 2.1 |
//! | the same from or to a list | 3.6 | 2.6 |
//! | pack 1, 2, 4, 8 B by twice the length | 2.6 | 0.25, 0.5, 1, 2 |
//! | pack 1 B by 3 or 4, 2 B by 6 or 8, 3 B by 4 | 2.6, 2.6, 5.5 | 0.6, 1.1, 1.6 |
//! | pack 3 to 15 B but powers of two, 17 to 31 B, at strides below 64 | 5.5, 6.8 | 2.5, 4.4 |
//! | any copy of 32 or 64 B (pieces of 32) | 6.8, 13 | 4.8, 9 |
//!
//! What stays portable: unpacking other short lengths, because NEON stores no vector under a mask, and lanes stored one by one
//! are as many stores as blocks. `ld2` to `ld4` are one instruction, but not less work than `ldp` and `uzp1`.

use std::arch::aarch64::{
    uint8x16_t, uint8x16x2_t, uint8x16x3_t, uint8x16x4_t, vld1q_u8, vqtbl1q_u8, vqtbl2q_u8, vqtbl3q_u8,
    vqtbl4q_u8, vreinterpretq_u8_u16, vreinterpretq_u8_u32, vreinterpretq_u8_u64, vreinterpretq_u16_u8,
    vreinterpretq_u32_u8, vreinterpretq_u64_u8, vst1q_u8, vuzp1q_u8, vuzp1q_u16, vuzp1q_u32, vuzp1q_u64,
};

use super::{Neon, permute, transpose};
use crate::micro::Direction;
use crate::micro::cursor::{Cursor, Dense, Strided};
use crate::micro::isa::Code;
use crate::micro::permute::table::{Function, Granule};
use crate::micro::piece::piece;
use crate::micro::transpose::pieces::in_pieces;
use crate::micro::units::{Reverse, places};

impl Code for Neon {
    #[inline(always)]
    unsafe fn gather<const LEN: usize>(dst: *mut u8, src: &impl Cursor) {
        // SAFETY: eight blocks remain, of the size of the type.
        unsafe {
            let at = |i: usize| src.at(i).cast_const();
            let all = [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)];
            match LEN {
                4 => gather::<u32>(dst, all),
                8 => gather::<u64>(dst, all),
                16 => gather::<Of16>(dst, all),
                _ => unreachable!(),
            }
        }
    }

    #[inline(always)]
    unsafe fn scatter<const LEN: usize>(dst: &impl Cursor, src: *const u8) {
        // SAFETY: eight blocks of the size of the type remain on either side.
        unsafe {
            let at = |i: usize| dst.at(i);
            let all = [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)];
            match LEN {
                4 => scatter::<u32>(all, src),
                8 => scatter::<u64>(all, src),
                16 => scatter::<Of16>(all, src),
                _ => unreachable!(),
            }
        }
    }

    #[inline(always)]
    unsafe fn copy_near<const LEN: usize>(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        (ds, ss): (isize, isize),
    ) -> usize {
        if LEN > 31 || ds != LEN as isize || !(ds..64).contains(&ss) {
            return 0;
        }
        // SAFETY: as promised by the caller.
        unsafe { pack_near::<LEN>(dst, src, n, ss as usize) }
    }

    #[inline(always)]
    unsafe fn transpose<const LEN: usize>(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        // SAFETY: as promised by the caller.
        unsafe {
            match LEN {
                4 => transpose::of_4(dst, src, dst_row, src_row),
                8 => transpose::of_8(dst, src, dst_row, src_row),
                16 => transpose::of_16(dst, src, dst_row, src_row),
                _ => in_pieces::<Neon, LEN>(dst, src, dst_row, src_row),
            }
        }
    }

    /// Pairs of registers, marked as not soon used again. The mark is a hint: cores that see whole lines stored in a row may not need it.
    #[inline(always)]
    unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
        for i in 0..lines {
            // SAFETY: one line, which the instructions store and nothing else.
            unsafe {
                let s = src.add(64 * i);
                std::arch::asm!(
                    "stnp {0:q}, {1:q}, [{d}]",
                    "stnp {2:q}, {3:q}, [{d}, #32]",
                    in(vreg) vld1q_u8(s),
                    in(vreg) vld1q_u8(s.add(16)),
                    in(vreg) vld1q_u8(s.add(32)),
                    in(vreg) vld1q_u8(s.add(48)),
                    d = in(reg) dst.add(64 * i),
                    options(nostack, preserves_flags)
                );
            }
        }
    }

    /// Nothing: such stores are ordered as others are.
    fn fence() {}

    fn permute(granule: Granule, _swaps: bool, direction: Direction) -> Option<Function> {
        (granule == Granule::Byte && direction == Direction::Pack).then_some(permute::pack)
    }
}

impl Reverse for Neon {
    #[inline(always)]
    unsafe fn reverse<const UNIT: usize, const LEN: usize>(dst: *mut u8, src: *const u8) {
        let places = const { places::<UNIT>() };
        // SAFETY: rows of 16 bytes inside `LEN`; the places are 16.
        unsafe {
            let places = vld1q_u8(places.as_ptr());
            for at in (0..LEN).step_by(16) {
                vst1q_u8(dst.add(at), vqtbl1q_u8(vld1q_u8(src.add(at)), places));
            }
        }
    }
}

/// A block of 16 bytes as one register: `u128` would be two, which no address with an index serves.
type Of16 = uint8x16_t;

/// Eight blocks of the size of `T`: all loaded, then stored in pairs.
///
/// # Safety
/// Each block of `a` is readable, eight are writable at `dst`, without overlap.
#[inline(always)]
unsafe fn gather<T: Copy>(dst: *mut u8, a: [*const u8; 8]) {
    // SAFETY: as promised by the caller.
    unsafe {
        // Written out: `map` of an array is not reliably inlined.
        let at = |i: usize| a[i].cast::<T>().read_unaligned();
        let all = [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)];
        dst.cast::<[T; 8]>().write_unaligned(all);
    }
}

/// Eight blocks of the size of `T`: loaded in pairs, then stored in order.
///
/// # Safety
/// Eight blocks are readable at `src`, each block of `a` is writable, without overlap with them.
#[inline(always)]
unsafe fn scatter<T: Copy>(a: [*mut u8; 8], src: *const u8) {
    // SAFETY: as promised by the caller.
    unsafe {
        let all = src.cast::<[T; 8]>().read_unaligned();
        for (to, block) in a.into_iter().zip(all) {
            to.cast::<T>().write_unaligned(block);
        }
    }
}

/// Packs the first of `n` short blocks that are near each other, in whole vectors where that is better than block by block.
/// Returns how many; the rest is the caller's.
///
/// # Safety
/// `n` blocks of `LEN` bytes, less than 32, readable at `src` by `stride`, which is at least `LEN`, `n * LEN` bytes writable at
/// `dst`, without overlap.
#[inline(always)]
unsafe fn pack_near<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, stride: usize) -> usize {
    // SAFETY: as promised by the caller; lengths and strides are those that each function asks for.
    unsafe {
        match LEN {
            1 | 2 | 4 | 8 if stride == 2 * LEN => pack_halves::<LEN>(dst, src, n),
            1 | 2 if stride > LEN => pack_table::<LEN>(dst, src, n, stride),
            3 if (4..=20).contains(&stride) => pack_table::<LEN>(dst, src, n, stride),
            3 | 5..=7 | 9..=15 | 17..=31 => pack_beyond::<LEN>(dst, src, n, stride),
            _ => 0,
        }
    }
}

/// Every other element of `LEN` bytes, 1, 2, 4 or 8, of two vectors, in order.
#[inline(always)]
fn evens<const LEN: usize>(low: uint8x16_t, high: uint8x16_t) -> uint8x16_t {
    // SAFETY: every aarch64 has the instructions.
    unsafe {
        match LEN {
            1 => vuzp1q_u8(low, high),
            2 => {
                let (low, high) = (vreinterpretq_u16_u8(low), vreinterpretq_u16_u8(high));
                vreinterpretq_u8_u16(vuzp1q_u16(low, high))
            }
            4 => {
                let (low, high) = (vreinterpretq_u32_u8(low), vreinterpretq_u32_u8(high));
                vreinterpretq_u8_u32(vuzp1q_u32(low, high))
            }
            _ => {
                let (low, high) = (vreinterpretq_u64_u8(low), vreinterpretq_u64_u8(high));
                vreinterpretq_u8_u64(vuzp1q_u64(low, high))
            }
        }
    }
}

/// Packs every other element of `LEN` bytes, 1, 2, 4 or 8, from whole vectors; returns how many of `n`, the rest is the caller's.
///
/// # Safety
/// `n` blocks of `LEN` bytes readable at `src` by `2 * LEN`, `n * LEN` bytes writable at `dst`, without overlap.
#[inline(always)]
unsafe fn pack_halves<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize) -> usize {
    let group = 32 / LEN;
    // The gap after the last block may be beyond the end of everything.
    let steps = n.saturating_sub(1) / group;
    for i in 0..steps {
        // SAFETY: 64 bytes hold `group` blocks, and another block follows them; 32 bytes are theirs in `dst`.
        unsafe {
            let (s, d) = (src.add(64 * i), dst.add(32 * i));
            let [a, b, c, e] = [vld1q_u8(s), vld1q_u8(s.add(16)), vld1q_u8(s.add(32)), vld1q_u8(s.add(48))];
            let (low, high) = (evens::<LEN>(a, b), evens::<LEN>(c, e));
            vst1q_u8(d, low);
            vst1q_u8(d.add(16), high);
        }
    }
    steps * group
}

/// Packs the first of `n` blocks by loading and storing more than a block: what is stored beyond one is stored again by the
/// next. Returns how many; the rest, at least the last one, is the caller's.
///
/// # Safety
/// `n` blocks of `LEN` bytes, 3 to 31 and no power of two, readable at `src` by `stride`, which is at least `LEN`, `n * LEN` bytes
/// writable at `dst`, without overlap.
#[inline(always)]
unsafe fn pack_beyond<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, stride: usize) -> usize {
    let (mut d, mut s) = (Dense::<LEN>(dst), Strided::new(src.cast_mut(), stride as isize));
    let group = if LEN < 16 { 8 } else { 4 };
    let steps = n.saturating_sub(1) / group;
    for _ in 0..steps {
        for u in 0..group {
            // SAFETY: a piece is less than `2 * LEN` bytes, and another block of `LEN` bytes follows on either side.
            unsafe {
                let (d, s) = (d.at(u), s.at(u));
                match const { LEN.next_power_of_two() } {
                    4 => piece::<4>(d, s),
                    8 => piece::<8>(d, s),
                    16 => piece::<16>(d, s),
                    _ => piece::<32>(d, s),
                }
            }
        }
        d.advance(group);
        s.advance(group);
    }
    steps * group
}

/// Packs the first of `n` very short blocks, a vector of them at a time: whole vectors in which they lie are loaded and looked up
/// by `tbl`. Returns how many; none where a vector holds few. The rest is the caller's.
///
/// # Safety
/// `n` blocks of `LEN` bytes, 1 to 3, readable at `src` by `stride`, which is more than `LEN`, `n * LEN` bytes writable at `dst`,
/// without overlap.
#[inline(always)]
unsafe fn pack_table<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, stride: usize) -> usize {
    if stride > (64 - LEN) / 3 {
        return 0; // Less than four blocks in the longest table.
    }
    let held = (16 / LEN).min((64 - LEN) / stride + 1);
    let vectors = ((held - 1) * stride + LEN).div_ceil(16);
    // Tables end with the last block at the latest, and 16 bytes are stored at a time.
    let needed = ((16 * vectors).saturating_sub(LEN).div_ceil(stride) + 1).max(16usize.div_ceil(LEN));
    if n < needed {
        return 0;
    }
    let steps = (n - needed) / held + 1;
    let mut lanes = [0; 16];
    for (i, lane) in lanes.iter_mut().enumerate() {
        // Past the last block the lane may be out of the table, which gives 0; it is stored again.
        *lane = (i / LEN * stride + i % LEN) as u8;
    }
    let by = (held * LEN, held * stride);
    // SAFETY: before every step at least `needed` blocks remain: their bytes are more than the loads, and more than the store,
    // what it writes beyond `held` blocks being written again by what follows. At most four vectors hold `held` blocks.
    unsafe {
        let lanes = vld1q_u8(lanes.as_ptr());
        let at = |s: *const u8, i: usize| vld1q_u8(s.add(16 * i));
        match vectors {
            1 => run(dst, src, steps, by, |s| vqtbl1q_u8(at(s, 0), lanes)),
            2 => run(dst, src, steps, by, |s| vqtbl2q_u8(uint8x16x2_t(at(s, 0), at(s, 1)), lanes)),
            3 => run(dst, src, steps, by, |s| vqtbl3q_u8(uint8x16x3_t(at(s, 0), at(s, 1), at(s, 2)), lanes)),
            _ => run(dst, src, steps, by, |s| {
                vqtbl4q_u8(uint8x16x4_t(at(s, 0), at(s, 1), at(s, 2), at(s, 3)), lanes)
            }),
        }
    }
    steps * held
}

/// Stores what `step` makes of the source, `steps` times; after each, the sides move on by so many bytes.
///
/// # Safety
/// 16 bytes are writable at every destination.
#[inline(always)]
unsafe fn run(
    mut d: *mut u8,
    mut s: *const u8,
    steps: usize,
    by: (usize, usize),
    step: impl Fn(*const u8) -> uint8x16_t,
) {
    for _ in 0..steps {
        // SAFETY: as promised by the caller.
        unsafe { vst1q_u8(d, step(s)) };
        d = d.wrapping_add(by.0);
        s = s.wrapping_add(by.1);
    }
}
