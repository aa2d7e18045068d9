//! Turns: the loops over blocks of a constant length, for every kind of side and every level.
//!
//! Three of them, because the best moves differ: to a dense destination (pack) several blocks make full vectors to store, from
//! a dense source (unpack) only the blocks themselves may be written, and in general each block goes by itself.

use super::block;
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::side::{Dense, Side, opaque};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// Levels as const arguments: what the body may use.
pub(super) const BASELINE: u8 = 0;
/// x86-64-v3.
#[cfg(target_arch = "x86_64")]
pub(super) const AVX2: u8 = 1;
/// x86-64-v4.
#[cfg(target_arch = "x86_64")]
pub(super) const AVX512: u8 = 2;
/// aarch64.
#[cfg(target_arch = "aarch64")]
pub(super) const NEON: u8 = 3;

/// Width in bytes of the widest piece that a level moves.
///
/// 64 at AVX-512: 65 blocks of 64 B by 128 pack at 199 instead of 165 GB/s (Sapphire Rapids, L1). 32 at NEON: `ldp` and `stp` of two
/// registers, which the compiler makes of one copy of 32 bytes but not of two of 16, whose stores might be what is loaded next.
pub(super) const fn wide(level: u8) -> usize {
    match level {
        BASELINE => 16,
        1 | 3 => 32,
        _ => 64,
    }
}

/// Blocks per turn of the plain loops: enough to hide the loop, few enough for the cache of decoded instructions.
const fn plain_turn(len: usize) -> usize {
    match len {
        0..=16 => 8,
        17..=63 => 4,
        _ => 1,
    }
}

/// Copies `n` blocks, each by itself.
///
/// # Safety
/// `n` blocks of `LEN` bytes remain on either side, readable in `src`, writable in `dst`, without overlap between the sides;
/// the machine runs `LEVEL`.
#[inline(always)]
pub(super) unsafe fn each<const LEN: usize, const LEVEL: u8, D: Side, S: Side>(
    mut dst: D,
    mut src: S,
    n: usize,
) {
    const { assert!(LEN > 0) };
    let turn = plain_turn(LEN);
    if turn == 1 {
        // SAFETY: the same blocks.
        return unsafe { rolled::<LEN, LEVEL, D, S>(dst, src, n) };
    }
    let mut left = n;
    while left >= turn {
        for u in 0..turn {
            // SAFETY: block `u` of the `left` blocks that remain.
            unsafe { one::<LEN, LEVEL>(dst.at(u), src.at(u)) };
        }
        dst.advance(turn);
        src.advance(turn);
        left -= turn;
    }
    // SAFETY: the blocks that remain.
    unsafe { last::<LEN, LEVEL, D, S>(dst, src, left) }
}

/// Copies `n` blocks in a loop of one block a turn, which the compiler does not unroll.
///
/// # Safety
/// As [`each`].
#[inline(always)]
pub(super) unsafe fn rolled<const LEN: usize, const LEVEL: u8, D: Side, S: Side>(
    mut dst: D,
    mut src: S,
    n: usize,
) {
    let mut left = n as isize;
    while left > 0 {
        // SAFETY: the first of the blocks that remain.
        unsafe { one::<LEN, LEVEL>(dst.at(0), src.at(0)) };
        dst.advance(1);
        src.advance(1);
        left = opaque(left - 1);
    }
}

/// Copies the few blocks that no turn took.
///
/// # Safety
/// As [`each`].
#[inline(always)]
unsafe fn last<const LEN: usize, const LEVEL: u8, D: Side, S: Side>(mut dst: D, mut src: S, n: usize) {
    for _ in 0..n {
        // SAFETY: the first of the blocks that remain.
        unsafe { one::<LEN, LEVEL>(dst.at(0), src.at(0)) };
        dst.advance(1);
        src.advance(1);
    }
}

/// # Safety
/// `LEN` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
unsafe fn one<const LEN: usize, const LEVEL: u8>(dst: *mut u8, src: *const u8) {
    // SAFETY: as promised by the caller.
    unsafe {
        match const { wide(LEVEL) } {
            64 => block::constant::<LEN, 64>(dst, src),
            32 => block::constant::<LEN, 32>(dst, src),
            _ => block::constant::<LEN, 16>(dst, src),
        }
    }
}

/// Copies `n` blocks to a dense destination.
///
/// # Safety
/// As [`each`].
#[inline(always)]
pub(super) unsafe fn pack<const LEN: usize, const LEVEL: u8, S: Side>(dst: *mut u8, mut src: S, n: usize) {
    let mut dst = Dense::<LEN>(dst);
    if const { pack_turn(LEN, LEVEL) == 0 } {
        // SAFETY: the same blocks.
        return unsafe { each::<LEN, LEVEL, _, _>(dst, src, n) };
    }
    let turn = const { pack_turn(LEN, LEVEL) };
    let mut left = n;
    let first = if left > turn { skew::<LEN>(dst.0) } else { 0 };
    // SAFETY: fewer blocks than remain.
    unsafe { last::<LEN, LEVEL, _, _>(dst, src, first) };
    for _ in 0..first {
        dst.advance(1);
        src.advance(1);
    }
    left -= first;
    while left >= turn {
        // SAFETY: `turn` blocks remain.
        unsafe { pack_group::<LEN, LEVEL, S>(dst.0, &src) };
        dst.advance(turn);
        src.advance(turn);
        left -= turn;
    }
    // SAFETY: the blocks that remain.
    unsafe { last::<LEN, LEVEL, _, _>(dst, src, left) }
}

/// Whether [`pack`] has something better than [`each`] on any two sides.
///
/// Up to 16 bytes a dense side is worth a loop of its own (8 B unpacked: 52 against 44 GB/s; Sapphire Rapids), beyond only groups are.
pub(super) const fn has_pack(len: usize, level: u8) -> bool {
    len <= 16 || pack_turn(len, level) > 0
}

/// Whether [`unpack`] has something better than [`each`] on any two sides.
pub(super) const fn has_unpack(len: usize, level: u8) -> bool {
    len <= 16 || masks(len, level)
}

const fn masks(len: usize, level: u8) -> bool {
    level == 2 && maskable(len)
}

/// Blocks that [`pack_group`] takes at once; 0 where it has nothing better than block by block.
const fn pack_turn(len: usize, level: u8) -> usize {
    match (len, level) {
        (_, BASELINE) => 0,
        (4 | 8 | 16, 3) => 8,
        (_, 3) => 0,
        (4 | 8, _) => 8,
        (12 | 16 | 24 | 40, _) => 4,
        (20 | 28, 2) => 4,
        (48, _) => 2,
        _ => 0,
    }
}

/// Blocks before the one from which on the stores of groups are aligned: 0 to 3, and 0 where none is.
///
/// A store that crosses lines goes to both, and where the destination is misaligned every store of 64 bytes does and every other
/// one of 32: 2000 blocks of 24 B in L2 8 B off 3250 instead of 1620 ns (Sapphire Rapids).
#[inline(always)]
fn skew<const LEN: usize>(dst: *mut u8) -> usize {
    let store = const {
        match LEN {
            4 => 16,
            8 | 24 | 40 | 48 => 32,
            16 => 64,
            _ => 1,
        }
    };
    if (dst as usize).is_multiple_of(store) {
        return 0;
    }
    (1..4).find(|blocks| (dst as usize + blocks * LEN).is_multiple_of(store)).unwrap_or(0)
}

/// Copies the next [`pack_turn`] blocks to exactly that many times `LEN` bytes at `dst`.
///
/// # Safety
/// As [`each`] with that many blocks.
#[inline(always)]
unsafe fn pack_group<const LEN: usize, const LEVEL: u8, S: Side>(dst: *mut u8, src: &S) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `pack_turn` blocks remain, and each helper takes that many and writes their bytes; the level is the machine's.
    unsafe {
        // Written out: `map` of an array is not reliably inlined, and a call per group costs ten times the group.
        let at = |i: usize| src.at(i).cast_const();
        let four = |from: usize| [at(from), at(from + 1), at(from + 2), at(from + 3)];
        // Level and length in one number, a constant, so that only one arm is compiled.
        match const { 1000 * LEVEL as usize + LEN } {
            1004 | 2004 => {
                avx2::gather_4x4(dst, four(0));
                avx2::gather_4x4(dst.add(16), four(4));
            }
            1008 | 2008 => {
                avx2::gather_4x8(dst, four(0));
                avx2::gather_4x8(dst.add(32), four(4));
            }
            2016 => avx512::gather_4x16(dst, four(0)),
            1016 => avx2::gather_4x16(dst, four(0)),
            2020 => avx512::gather_words::<5>(dst, four(0)),
            2024 => avx512::gather_words::<6>(dst, four(0)),
            2028 => avx512::gather_words::<7>(dst, four(0)),
            // Not by masked loads: 12 B by 24 in L2 20 instead of 24 GB/s (Sapphire Rapids).
            1012 | 2012 => avx2::gather_4x12(dst, four(0)),
            1024 => avx2::gather_4x24(dst, four(0)),
            1040 | 2040 => avx2::gather_4x40(dst, four(0)),
            1048 | 2048 => avx2::gather_2x48(dst, [at(0), at(1)]),
            _ => {}
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: eight blocks remain, of the size of the type.
    unsafe {
        let at = |i: usize| src.at(i).cast_const();
        let all = [at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)];
        match LEN {
            4 => neon::gather::<u32>(dst, all),
            8 => neon::gather::<u64>(dst, all),
            16 => neon::gather::<neon::Of16>(dst, all),
            _ => {}
        }
    }
    let _ = (dst, src);
}

/// Copies `n` blocks from a dense source. `masked`: whether single stores under a mask pay, where there is a choice.
///
/// # Safety
/// As [`each`].
#[inline(always)]
pub(super) unsafe fn unpack<const LEN: usize, const LEVEL: u8, D: Side>(
    mut dst: D,
    src: *mut u8,
    n: usize,
    masked: bool,
) {
    let mut src = Dense::<LEN>(src);
    let mut left = n;
    #[cfg(target_arch = "x86_64")]
    if const { masks(LEN, LEVEL) } && masked {
        // The last block goes by itself: its register would be read past the last packed byte.
        while left > 4 {
            for u in 0..4 {
                // SAFETY: block `u` of more than four that remain; reading on ends within the block after it, which is
                // not shorter than what is read on.
                unsafe { avx512::store_masked::<LEN>(dst.at(u), src.at(u)) };
            }
            dst.advance(4);
            src.advance(4);
            left -= 4;
        }
        // SAFETY: the blocks that remain.
        return unsafe { last::<LEN, LEVEL, _, _>(dst, src, left) };
    }
    #[cfg(target_arch = "x86_64")]
    if const { LEVEL > BASELINE && (LEN == 8 || LEN == 16) } {
        while left >= 4 {
            // SAFETY: four blocks remain on either side.
            unsafe {
                let (a, s) = ([dst.at(0), dst.at(1), dst.at(2), dst.at(3)], src.at(0).cast_const());
                if LEN == 8 {
                    avx2::scatter_4x8(a, s);
                } else {
                    avx2::scatter_2x16([a[0], a[1]], s);
                    avx2::scatter_2x16([a[2], a[3]], s.add(32));
                }
            }
            dst.advance(4);
            src.advance(4);
            left -= 4;
        }
        // SAFETY: the blocks that remain.
        return unsafe { last::<LEN, LEVEL, _, _>(dst, src, left) };
    }
    #[cfg(target_arch = "aarch64")]
    if const { LEVEL == NEON && (LEN == 4 || LEN == 8 || LEN == 16) } {
        while left >= 8 {
            // SAFETY: eight blocks of the size of the type remain on either side.
            unsafe {
                let at = |i: usize| dst.at(i);
                let (a, s) =
                    ([at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)], src.at(0).cast_const());
                match LEN {
                    4 => neon::scatter::<u32>(a, s),
                    8 => neon::scatter::<u64>(a, s),
                    _ => neon::scatter::<neon::Of16>(a, s),
                }
            }
            dst.advance(8);
            src.advance(8);
            left -= 8;
        }
        // SAFETY: the blocks that remain.
        return unsafe { last::<LEN, LEVEL, _, _>(dst, src, left) };
    }
    let _ = (masked, maskable(LEN), &mut left, &mut dst, &mut src);
    // SAFETY: the same blocks.
    unsafe { each::<LEN, LEVEL, _, _>(dst, src, n) }
}

/// Whether a block of `len` bytes takes two plain stores but one under a mask.
const fn maskable(len: usize) -> bool {
    matches!(len, 9..=15 | 17..=31)
}
