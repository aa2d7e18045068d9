//! One block: straight-line copies of a constant length, and loops for a length known at run time.
//!
//! `WIDE` is the widest piece in bytes that the calling function's instruction set moves at once: 16, 32 or 64. Pieces may
//! overlap inside the block, which reads and writes no byte outside it.

use super::piece::{aligned, four, piece};
use super::registers::Registers;
use super::run;

/// Copies a block of the constant length `LEN` with the widest pieces of `I`.
///
/// # Safety
/// `LEN` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
pub(super) unsafe fn constant<I: Registers, const LEN: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: as promised by the caller.
    unsafe {
        match const { I::WIDE } {
            64 => in_line::<LEN, 64>(dst, src),
            32 => in_line::<LEN, 32>(dst, src),
            _ => in_line::<LEN, 16>(dst, src),
        }
    }
}

/// Copies a block whose length is known at run time with the widest pieces of `I`.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
pub(super) unsafe fn run_time_by<I: Registers>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        match const { I::WIDE } {
            64 => run_time::<64>(dst, src, len),
            32 => run_time::<32>(dst, src, len),
            _ => run_time::<16>(dst, src, len),
        }
    }
}

/// The pieces of a block of `LEN` bytes, in order: offset and size, a power of two up to `WIDE`; then zeros.
struct Pieces<const LEN: usize, const WIDE: usize>;

impl<const LEN: usize, const WIDE: usize> Pieces<LEN, WIDE> {
    const LIST: [(usize, usize); 12] = pieces(LEN, WIDE);
}

/// The widest pieces first; what is left is one exact piece, or one that overlaps, or the next smaller and so on.
const fn pieces(len: usize, wide: usize) -> [(usize, usize); 12] {
    let mut list = [(0, 0); 12];
    if len > 8 * wide {
        return list; // Such a block is copied by a loop.
    }
    let (mut count, mut done, mut size) = (0, 0, wide);
    while done < len {
        let rest = len - done;
        let cover = rest.next_power_of_two();
        if rest >= size {
            list[count] = (done, size);
            done += size;
        } else if cover != rest && cover <= size && cover <= len {
            list[count] = (len - cover, cover);
            done = len;
        } else {
            size /= 2;
            continue;
        }
        count += 1;
    }
    list
}

/// Copies a block of the constant length `LEN`, straight-line up to eight of the widest pieces.
///
/// # Safety
/// `LEN` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
unsafe fn in_line<const LEN: usize, const WIDE: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: every piece lies inside [0, LEN) of both sides.
    unsafe {
        if const { LEN > 8 * WIDE } {
            return run_time::<WIDE>(dst, src, LEN);
        }
        // Written out rather than looped over, and each choice a constant: what is not taken is never compiled.
        macro_rules! steps {
            ($($i:literal)*) => {$(
                let at = const { Pieces::<LEN, WIDE>::LIST[$i].0 };
                match const { Pieces::<LEN, WIDE>::LIST[$i].1 } {
                    64 => piece::<64>(dst.add(at), src.add(at)),
                    32 => piece::<32>(dst.add(at), src.add(at)),
                    16 => piece::<16>(dst.add(at), src.add(at)),
                    8 => piece::<8>(dst.add(at), src.add(at)),
                    4 => piece::<4>(dst.add(at), src.add(at)),
                    2 => piece::<2>(dst.add(at), src.add(at)),
                    1 => piece::<1>(dst.add(at), src.add(at)),
                    _ => {}
                }
            )*};
        }
        steps! { 0 1 2 3 4 5 6 7 8 9 10 11 }
    }
}

/// Copies a block whose length is known at run time.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
pub(crate) unsafe fn run_time<const WIDE: usize>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: two pieces at 0 and at `len - 2 * WIDE` cover a block of 2 to 4 pieces.
    unsafe {
        if len > max_inline(WIDE) {
            call(dst, src, len);
        } else if len >= 4 * WIDE {
            long::<WIDE>(dst, src, len);
        } else if len >= 2 * WIDE {
            piece::<WIDE>(dst, src);
            piece::<WIDE>(dst.add(WIDE), src.add(WIDE));
            let last = len - 2 * WIDE;
            piece::<WIDE>(dst.add(last), src.add(last));
            piece::<WIDE>(dst.add(last + WIDE), src.add(last + WIDE));
        } else {
            small::<WIDE>(dst, src, len);
        }
    }
}

/// Longest block in bytes that is copied in line.
pub(super) const fn max_inline(wide: usize) -> usize {
    if wide == 64 { 2048 } else { 16 * wide }
}

/// Copies a block of at least four pieces: all whole ones in order, so that they stay aligned if the block is, and what is left
/// as one piece that ends with the block.
///
/// # Safety
/// As [`run_time`], with `len >= 4 * WIDE`.
#[inline(always)]
unsafe fn long<const WIDE: usize>(dst: *mut u8, src: *const u8, len: usize) {
    let mut at = 0;
    // SAFETY: pieces begin at `at`, where they end at or before `len`, or end at `len`, which is larger than any piece.
    unsafe {
        if should_align::<WIDE>(dst, len) {
            return aligned::<WIDE>(dst, src, len);
        }
        while at + 4 * WIDE <= len {
            four::<WIDE>(dst.add(at), src.add(at));
            at += 4 * WIDE;
        }
        while at + WIDE <= len {
            piece::<WIDE>(dst.add(at), src.add(at));
            at += WIDE;
        }
        match len - at {
            0 => {}
            rest if WIDE > 32 && rest > 32 => piece::<64>(dst.add(len - 64), src.add(len - 64)),
            rest if WIDE > 16 && rest > 16 => piece::<32>(dst.add(len - 32), src.add(len - 32)),
            _ => piece::<16>(dst.add(len - 16), src.add(len - 16)),
        }
    }
}

/// Says whether a block of `len` bytes gains by stores that are aligned. Every other misaligned one of 32 bytes crosses lines: 8 MiB of blocks of 512 B by 1024 in
/// L3, 16 B off, take 500 us in order, 440 aligned, 448 by memcpy; blocks of 384 B take as long either way (Zen 3). Of 64 bytes every one does: blocks of
/// 320 B to 2 KiB in L1, 8 B off, pack at 71 to 79 GB/s in order, 87 to 131 aligned, 48 to 125 by memcpy, in L2 24 to 28, 28 to 39, 23 to 36 (Emerald Rapids).
#[inline(always)]
pub(super) fn should_align<const WIDE: usize>(dst: *mut u8, len: usize) -> bool {
    let shortest = if WIDE == 64 { 320 } else { 448 };
    WIDE >= 32 && len >= shortest && !dst.addr().is_multiple_of(WIDE)
}

/// Copies a long block by a call, mostly of the C library's `memcpy`, which aligns its stores and, for very long blocks, does what the
/// machine has for them (1 KiB in L1: 186 against 150 GB/s by pieces of 32 bytes; Sapphire Rapids).
///
/// # Safety
/// As [`run_time`].
#[inline(always)]
unsafe fn call(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe { run::copy(dst, src, len) }
}

/// Copies a block of less than `2 * WIDE` bytes.
///
/// # Safety
/// As [`run_time`].
#[inline(always)]
unsafe fn small<const WIDE: usize>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: a pair of pieces of N bytes, at 0 and at `len - N`, is used where N <= len <= 2 N.
    unsafe {
        if WIDE >= 64 && len >= 64 {
            piece::<64>(dst, src);
            piece::<64>(dst.add(len - 64), src.add(len - 64));
        } else if WIDE >= 32 && len >= 32 {
            piece::<32>(dst, src);
            piece::<32>(dst.add(len - 32), src.add(len - 32));
        } else if len >= 16 {
            piece::<16>(dst, src);
            piece::<16>(dst.add(len - 16), src.add(len - 16));
        } else if len >= 8 {
            piece::<8>(dst, src);
            piece::<8>(dst.add(len - 8), src.add(len - 8));
        } else if len >= 4 {
            piece::<4>(dst, src);
            piece::<4>(dst.add(len - 4), src.add(len - 4));
        } else if len >= 2 {
            piece::<2>(dst, src);
            piece::<2>(dst.add(len - 2), src.add(len - 2));
        } else if len == 1 {
            piece::<1>(dst, src);
        }
    }
}
