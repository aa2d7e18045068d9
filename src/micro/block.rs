//! Copies of one block: straight-line code for a constant length, and loops for a length known only
//! at run time.
//!
//! A piece is what one load and one store move. `WIDE` is the number of bytes of the widest piece
//! of the calling function's instruction set: 16, 32 or 64. Pieces may overlap inside the block; no
//! byte outside the block is read or written.

use super::piece::{aligned, four, piece};
use super::registers::Registers;
use super::run;

/// Copies a block of the constant length `LEN` in pieces that are as wide as the loads and stores
/// of the instruction set `I`.
///
/// # Safety
/// `LEN` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
pub(super) unsafe fn constant<I: Registers, const LEN: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: the conditions of `in_line` are those of this function.
    unsafe {
        match const { I::WIDE } {
            64 => in_line::<LEN, 64>(dst, src),
            32 => in_line::<LEN, 32>(dst, src),
            _ => in_line::<LEN, 16>(dst, src),
        }
    }
}

/// Copies a block whose length is known only at run time, in pieces that are as wide as the loads
/// and stores of the instruction set `I`.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
pub(super) unsafe fn run_time_by<I: Registers>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the conditions of `run_time` are those of this function.
    unsafe {
        match const { I::WIDE } {
            64 => run_time::<64>(dst, src, len),
            32 => run_time::<32>(dst, src, len),
            _ => run_time::<16>(dst, src, len),
        }
    }
}

/// List of the pieces in which a block of `LEN` bytes is copied. A piece is what one load and one
/// store move. The entry of a piece has its offset in the block and its size in bytes, which is a
/// power of two up to `WIDE`. Unused entries of the list are zeros.
struct Pieces<const LEN: usize, const WIDE: usize>;

impl<const LEN: usize, const WIDE: usize> Pieces<LEN, WIDE> {
    const LIST: [(usize, usize); 12] = pieces(LEN, WIDE);
}

/// Returns the offsets and sizes of the pieces in which a block of `len` bytes is copied. A piece
/// is what one load and one store move. Pieces of `wide` bytes come first. The remainder of the
/// block is covered by one piece of exactly the size of the remainder, or by one that overlaps the
/// pieces before it, or else by smaller pieces. The list is empty for blocks of more than `8 *
/// wide` bytes.
const fn pieces(len: usize, wide: usize) -> [(usize, usize); 12] {
    let mut list = [(0, 0); 12];
    if len > 8 * wide {
        // A block of more than eight pieces of `wide` bytes needs no list of pieces: it is copied
        // by a loop, or by a call if it is very long.
        return list;
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

/// Copies a block of the constant length `LEN`: by straight-line code if the block has at most `8 *
/// WIDE` bytes, or else by [`run_time`].
///
/// # Safety
/// `LEN` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
unsafe fn in_line<const LEN: usize, const WIDE: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: the caller promises `LEN` bytes on both sides. `run_time` gets this whole block, and
    // every piece of the list lies within `0..LEN`.
    unsafe {
        if const { LEN > 8 * WIDE } {
            return run_time::<WIDE>(dst, src, LEN);
        }
        // The twelve steps, one for each entry of the list of pieces, are written out instead of
        // looped over. The size of each piece is a constant, so that steps without a piece are not
        // compiled.
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

/// Copies a block whose length is known only at run time, in pieces of up to `WIDE` bytes or, if it
/// is long, by a call.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
pub(crate) unsafe fn run_time<const WIDE: usize>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller promises `len` bytes on both sides, and the functions get this whole
    // block. Where pieces are copied here, `len` is at least two of them, so the pairs of pieces at
    // 0 and at `len - 2 * WIDE` lie within the block; as it is less than four pieces, they cover
    // it.
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

/// Returns the maximum length in bytes of a block that is copied in line, in pieces of `wide`
/// bytes. Longer blocks are copied by a call.
pub(super) const fn max_inline(wide: usize) -> usize {
    if wide == 64 { 2048 } else { 16 * wide }
}

/// Copies a block of at least four pieces of `WIDE` bytes. All whole pieces are copied in order
/// from the start of the block, so that the pieces are aligned if the block is aligned. The
/// remainder is copied as one piece that ends with the block.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap. `len`
/// must be at least `4 * WIDE`.
#[inline(always)]
unsafe fn long<const WIDE: usize>(dst: *mut u8, src: *const u8, len: usize) {
    let mut at = 0;
    // SAFETY: the caller promises `len` bytes on both sides. The pieces of the loops begin at `at`
    // and end at or before `len`. The last piece ends at `len`, which is larger than any piece.
    // `should_align` is true only for more than 192 bytes, which `aligned` needs.
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

/// Returns true if a block of `len` bytes is copied faster with aligned stores.
///
/// Every other misaligned store of 32 bytes, and every misaligned store of 64 bytes, crosses a
/// boundary between cache lines.
///
/// Stores of 32 bytes: 8 MiB of blocks of 512 B at a stride of 1024 B, which lie in L3 and are
/// misaligned by 16 B, take 500 us with misaligned stores, 440 us with aligned stores and 448 us by
/// `memcpy`. Blocks of 384 B take the same time with misaligned and with aligned stores (Zen 3).
///
/// Stores of 64 bytes: blocks of 320 B to 2 KiB, misaligned by 8 B, pack in L1 at 71 to 79 GB/s
/// with misaligned stores, at 87 to 131 GB/s with aligned stores and at 48 to 125 GB/s by `memcpy`.
/// In L2 the three figures are 24 to 28, 28 to 39 and 23 to 36 GB/s (Emerald Rapids).
#[inline(always)]
pub(super) fn should_align<const WIDE: usize>(dst: *mut u8, len: usize) -> bool {
    let shortest = if WIDE == 64 { 320 } else { 448 };
    WIDE >= 32 && len >= shortest && !dst.addr().is_multiple_of(WIDE)
}

/// Copies a long block by a call, mostly of the C library's `memcpy`. `memcpy` aligns its stores
/// and, for very long blocks, uses what the machine has for such blocks. Blocks of 1 KiB in L1 are
/// copied by the call at 186 GB/s, and in pieces of 32 bytes at 150 GB/s (Sapphire Rapids).
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
unsafe fn call(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the conditions of `run::copy` are those of this function.
    unsafe { run::copy(dst, src, len) }
}

/// Copies a block of less than `2 * WIDE` bytes in at most two pieces, which may overlap.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap. `len`
/// must be less than `2 * WIDE`.
#[inline(always)]
unsafe fn small<const WIDE: usize>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller promises `len` bytes on both sides. Pieces of N bytes at 0 and at
    // `len - N` are used only if N <= `len`, so they lie within the block; as `len` is at most 2 N,
    // they cover it.
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
