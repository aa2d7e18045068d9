//! NEON code for packing to a dense destination and unpacking from a dense source, where blocks
//! follow each other directly: pairs of registers, permutations and look-ups in tables.
//!
//! The portable code moves each block by one load and one store. The compiler keeps this order,
//! because a store may change what the next load reads. The code of this file loads a group of
//! blocks before it stores any block of the group, so the accesses to neighbouring blocks become
//! `ldp` and `stp`. If blocks are so near to
//! each other that a vector holds several, they are loaded together and moved to their places by
//! `uzp1` or `tbl`. The choices are based on the number of instructions per block in the inner
//! loop, as the compiler writes it; no machine has timed them:
//!
//! | Blocks | in portable code | in this file |
//! |---|---|---|
//! | pack or unpack 4, 8 or 16 B | 2.6 | 2.1 |
//! | pack or unpack 4, 8 or 16 B at offsets from a table | 3.6 | 2.6 |
//! | pack 1, 2, 4, 8 B at a stride of twice the length | 2.6 | 0.25, 0.5, 1, 2 |
//! | pack at a stride: 1 B at 3 or 4, 2 B at 6 or 8, 3 B at 4 | 2.6, 2.6, 5.5 | 0.6, 1.1, 1.6 |
//! | pack 3 to 15 B except powers of two, 17 to 31 B, at strides below 64 | 5.5, 6.8 | 2.5, 4.4 |
//! | any copy of 32 or 64 B, in pieces of 32 B | 6.8, 13 | 4.8, 9 |
//!
//! Blocks of other short lengths are unpacked by portable code: NEON has no masked stores, and
//! storing parts of a register one by one takes as many stores as there are blocks. `ld2` to `ld4`
//! are one instruction, but not less work than `ldp` and `uzp1`.

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
        // SAFETY: the caller promises eight blocks of `LEN` bytes, which is the size of the type.
        unsafe {
            let at = |i: usize| src.address(i).cast_const();
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
        // SAFETY: the caller promises eight blocks of `LEN` bytes on both sides, which is the size
        // of the type.
        unsafe {
            let at = |i: usize| dst.address(i);
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
        // SAFETY: the caller promises `n` blocks; the test above ensures a dense destination, fewer
        // than 32 bytes, and a stride of at least `LEN`.
        unsafe { pack_near::<LEN>(dst, src, n, ss as usize) }
    }

    #[inline(always)]
    unsafe fn transpose<const LEN: usize>(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        // SAFETY: the caller promises the elements of the block on both sides; each function moves
        // the square of elements of its length, and `in_pieces` moves a block of elements without
        // such a square.
        unsafe {
            match LEN {
                4 => transpose::of_4(dst, src, dst_row, src_row),
                8 => transpose::of_8(dst, src, dst_row, src_row),
                16 => transpose::of_16(dst, src, dst_row, src_row),
                _ => in_pieces::<Neon, LEN>(dst, src, dst_row, src_row),
            }
        }
    }

    /// Copies cache lines in pairs of registers, with a hint to the processor that the lines are
    /// not used again soon. Processors that recognize stores of whole consecutive lines may not
    /// need the hint.
    #[inline(always)]
    unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
        for i in 0..lines {
            // SAFETY: the 64 bytes at `64 * i` are one of the lines that the caller promises on
            // both sides. The instructions store these bytes and change nothing else.
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

    /// Does nothing, because the stores of `stream` are ordered like all other stores.
    fn fence() {}

    fn permute(granule: Granule, _swaps: bool, direction: Direction) -> Option<Function> {
        (granule == Granule::Byte && direction == Direction::Pack).then_some(permute::pack)
    }
}

impl Reverse for Neon {
    #[inline(always)]
    unsafe fn reverse<const UNIT: usize, const LEN: usize>(dst: *mut u8, src: *const u8) {
        let places = const { places::<UNIT>() };
        // SAFETY: the rows of 16 bytes lie within the `LEN` bytes that the caller promises on both
        // sides. `places` has 16 bytes.
        unsafe {
            let places = vld1q_u8(places.as_ptr());
            for at in (0..LEN).step_by(16) {
                vst1q_u8(dst.add(at), vqtbl1q_u8(vld1q_u8(src.add(at)), places));
            }
        }
    }
}

/// Type of a block of 16 bytes that is held in one register. A `u128` would be held in two
/// registers, for which no load with an indexed address exists.
type Of16 = uint8x16_t;

/// Packs eight blocks of the size of `T`. All eight blocks are loaded first, and then they are
/// stored in pairs.
///
/// # Safety
/// Each block whose address is in `a` must be readable, and eight blocks must be writable at `dst`.
/// The blocks in `a` must not overlap the bytes at `dst`.
#[inline(always)]
unsafe fn gather<T: Copy>(dst: *mut u8, a: [*const u8; 8]) {
    // SAFETY: the caller promises eight readable blocks of the size of `T`, whose values may be any
    // bytes, and room for eight at `dst`. No access needs alignment.
    unsafe {
        // The array is written out element by element, because `map` of an array is not reliably
        // inlined.
        let at = |i: usize| a[i].cast::<T>().read_unaligned();
        let all = [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)];
        dst.cast::<[T; 8]>().write_unaligned(all);
    }
}

/// Unpacks eight blocks of the size of `T`. The blocks are loaded in pairs, and then they are
/// stored in order.
///
/// # Safety
/// Eight blocks must be readable at `src`, and each block whose address is in `a` must be writable.
/// The blocks in `a` must not overlap the bytes at `src`.
#[inline(always)]
unsafe fn scatter<T: Copy>(a: [*mut u8; 8], src: *const u8) {
    // SAFETY: the caller promises eight readable blocks of the size of `T` at `src`, whose values
    // may be any bytes, and eight writable ones. No access needs alignment.
    unsafe {
        let all = src.cast::<[T; 8]>().read_unaligned();
        for (to, block) in a.into_iter().zip(all) {
            to.cast::<T>().write_unaligned(block);
        }
    }
}

/// Packs some of `n` short blocks that are near to each other, from the first block on, in whole
/// vectors if that is better than packing block by block. Returns the number of packed blocks; the
/// caller packs the other blocks.
///
/// # Safety
/// `n` blocks of `LEN` bytes, less than 32, must be readable at `src`, `stride` bytes apart, where
/// `stride` is at least `LEN`. `n * LEN` bytes must be writable at `dst`. The source must not
/// overlap the destination. The gaps between two blocks are read too, so each gap must be shorter
/// than a page.
#[inline(always)]
unsafe fn pack_near<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, stride: usize) -> usize {
    // SAFETY: the caller promises the blocks. Each function gets only lengths and strides for which
    // it is made.
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

/// Returns the elements with even indices of the vectors `low` and `high`, in order. Elements have
/// `LEN` bytes (1, 2, 4 or 8).
#[inline(always)]
fn evens<const LEN: usize>(low: uint8x16_t, high: uint8x16_t) -> uint8x16_t {
    // SAFETY: every aarch64 machine has the instructions.
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

/// Packs some of `n` blocks of `LEN` bytes (1, 2, 4 or 8), from the first block on. The gap between
/// two blocks is as long as a block, so whole vectors are loaded with the gaps. Returns the number
/// of packed blocks; the caller packs the other blocks.
///
/// # Safety
/// `n` blocks of `LEN` bytes must be readable at `src`, `2 * LEN` bytes apart, and `n * LEN` bytes
/// writable at `dst`. The source must not overlap the destination. The gaps between two blocks are
/// read too, so each gap must be shorter than a page.
#[inline(always)]
unsafe fn pack_halves<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize) -> usize {
    let group = 32 / LEN;
    // The gap after the last block may lie beyond readable memory, so the last block is never
    // packed here.
    let steps = n.saturating_sub(1) / group;
    for i in 0..steps {
        // SAFETY: step `i` reads the 64 bytes of `group` blocks with their gaps. As `group * steps`
        // is less than `n`, another block follows, so all gaps lie between two blocks, on the pages
        // of these. Their packed bytes are the 32 bytes at `32 * i`.
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

/// Packs some of `n` blocks, from the first block on, by loading and storing more than the bytes of
/// a block; the next block overwrites the bytes that are stored in excess. Returns the number of
/// packed blocks, which is less than `n` if `n` is not 0. The caller packs the other blocks.
///
/// # Safety
/// `n` blocks of `LEN` bytes, 3 to 31 and not a power of two, must be readable at `src`, `stride`
/// bytes apart, where `stride` is at least `LEN`. `n * LEN` bytes must be writable at `dst`. The
/// source must not overlap the destination. The gaps between two blocks are read too, so each gap
/// must be shorter than a page.
#[inline(always)]
unsafe fn pack_beyond<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, stride: usize) -> usize {
    let (mut d, mut s) = (Dense::<LEN>(dst), Strided::new(src.cast_mut(), stride as isize));
    let group = if LEN < 16 { 8 } else { 4 };
    let steps = n.saturating_sub(1) / group;
    for _ in 0..steps {
        for u in 0..group {
            // SAFETY: a piece has fewer than `2 * LEN` bytes, and another block of `LEN` bytes
            // follows on both sides, because `group * steps` is less than `n`. The gap that is read
            // lies between two blocks, on the pages of these.
            unsafe {
                let (d, s) = (d.address(u), s.address(u));
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

/// Packs some of `n` very short blocks, from the first block on, in steps of several blocks: the
/// whole vectors in which these blocks lie are loaded, and `tbl` looks up the bytes of the blocks.
/// Returns the number of packed blocks, which is 0 if a vector holds only few blocks. The caller
/// packs the other blocks.
///
/// # Safety
/// `n` blocks of `LEN` bytes, 1 to 3, must be readable at `src`, `stride` bytes apart, where
/// `stride` is greater than `LEN`. `n * LEN` bytes must be writable at `dst`. The source must not
/// overlap the destination. The gaps between two blocks are read too, so each gap must be shorter
/// than a page.
#[inline(always)]
unsafe fn pack_table<const LEN: usize>(dst: *mut u8, src: *const u8, n: usize, stride: usize) -> usize {
    if stride > (64 - LEN) / 3 {
        // `tbl` looks up bytes in a table of at most 64 bytes. At this stride, a table of 64 bytes
        // holds fewer than four blocks.
        return 0;
    }
    let held = (16 / LEN).min((64 - LEN) / stride + 1);
    let vectors = ((held - 1) * stride + LEN).div_ceil(16);
    // The loads must end with the last block at the latest, and each step stores 16 bytes. From
    // this follows `needed`, the number of blocks that must remain before a step.
    let needed = ((16 * vectors).saturating_sub(LEN).div_ceil(stride) + 1).max(16usize.div_ceil(LEN));
    if n < needed {
        return 0;
    }
    let steps = (n - needed) / held + 1;
    let mut lanes = [0; 16];
    for (i, lane) in lanes.iter_mut().enumerate() {
        // For bytes after the last block of a step, the index may lie outside of the table, for
        // which `tbl` gives 0. Later stores overwrite these bytes.
        *lane = (i / LEN * stride + i % LEN) as u8;
    }
    let by = (held * LEN, held * stride);
    // SAFETY: before every step at least `needed` blocks remain, whose bytes, with the gaps between
    // them, are at least those of the loads, and whose packed bytes at least those of the store.
    // The gaps lie on the pages of the blocks. The bytes that the store writes after those of its
    // `held` blocks are overwritten by later steps or by the caller. `held` blocks lie in at most
    // four vectors.
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

/// Calls `step` with an address in the source `steps` times and stores each result. After each
/// step, the destination advances by `by.0` bytes and the source by `by.1` bytes.
///
/// # Safety
/// 16 bytes must be writable at every destination.
#[inline(always)]
unsafe fn run(
    mut d: *mut u8,
    mut s: *const u8,
    steps: usize,
    by: (usize, usize),
    step: impl Fn(*const u8) -> uint8x16_t,
) {
    for _ in 0..steps {
        // SAFETY: the caller promises 16 writable bytes at each of the `steps` destinations.
        unsafe { vst1q_u8(d, step(s)) };
        d = d.wrapping_add(by.0);
        s = s.wrapping_add(by.1);
    }
}
