//! Code for short blocks at short strides: one load or store of 64 bytes covers many blocks, and
//! one permutation of bytes moves them to their places.
//!
//! This needs AVX-512 VBMI (`vpermb`), which a machine of level AVX-512 may lack; [`pack`] and
//! [`unpack`] test for it. Packing reads whole vectors of 64 bytes, gaps included, but nothing
//! before the first block or after the last one. Unpacking writes through a mask that leaves gaps
//! as they are. Strides are so short that a gap never reaches 4096 bytes. If blocks consist of
//! units whose bytes are to be reversed, the same permutation reverses the bytes; units of 1 byte
//! stay as they are.
//!
//! Sapphire Rapids, L1, in GB/s, compared with the loop over blocks: packing 4 B at a stride of 8:
//! 90 and 33, at 16: 44 and 33; 8 B at 16: 93 and 53; 12 B at 16: 86 and 50; 3 B at 4: 70 and 9;
//! unpacking 4 B at 8: 54 and 26. If a vector holds only three blocks, the loops over blocks are at
//! least as good.

use std::arch::x86_64::{
    __m512i, _bzhi_u64, _mm_storeu_si128, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_add_epi8,
    _mm512_and_si512, _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_cmplt_epu8_mask,
    _mm512_extracti32x4_epi32, _mm512_loadu_si512, _mm512_mask_permutexvar_epi8, _mm512_mask_storeu_epi8,
    _mm512_mullo_epi16, _mm512_or_si512, _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi16,
    _mm512_slli_epi16, _mm512_srli_epi16, _mm512_storeu_si512, _mm512_sub_epi8, _mm512_xor_si512,
};

use super::permutes_bytes;
use crate::micro::units;

/// Blocks of at least this many bytes are not moved by this module.
pub(super) const LONGEST: usize = 16;

/// Table of the quotients of small integers: `QUOTIENTS[d][i] = i / d`.
static QUOTIENTS: [[u8; 64]; LONGEST] = {
    let mut table = [[0; 64]; LONGEST];
    let mut d = 1;
    while d < LONGEST {
        let mut i = 0;
        while i < 64 {
            table[d][i] = (i / d) as u8;
            i += 1;
        }
        d += 1;
    }
    table
};

/// Returns the number of blocks of `len` bytes at this stride that a vector of 64 bytes holds, or 0
/// if permutations cannot move such blocks.
const fn per_vector(len: usize, stride: isize) -> usize {
    if len == 0 || len >= LONGEST || stride <= len as isize || stride >= 64 {
        return 0;
    }
    (64 - len) / stride as usize + 1
}

/// Strides below this number of bytes are worth a call of [`pack`] or [`unpack`]. At longer strides
/// no vector holds four blocks.
pub(super) const SHORT: isize = 64 / 3 + 1;

/// Packs some of `n` blocks, from the first block on, and returns the number of packed blocks. This
/// number is 0 if permutations of bytes do not pay or the machine does not have them. The caller
/// packs the remaining blocks.
///
/// # Safety
/// `n` blocks of `len` bytes, which must be whole units, must be readable from `src` on, `stride`
/// bytes apart, and `n * len` bytes writable at `dst`. The source must not overlap the destination.
/// The gaps between two blocks are read too, so each gap must be shorter than a page.
#[inline(never)]
pub(super) unsafe fn pack(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (len, unit): (usize, usize),
    stride: isize,
) -> usize {
    if n < 32 || per_vector(len, stride) < 4 || !permutes_bytes() {
        return 0;
    }
    // SAFETY: the caller promises the blocks. The tests above ensure VBMI, at least 32 blocks and
    // at least four in a vector.
    unsafe { pack_permuted(dst, src, n, (len, unit), stride as usize) }
}

/// Unpacks some of `n` blocks, from the first block on, and returns the number of unpacked blocks.
/// This number is 0 if permutations of bytes do not pay or the machine does not have them. The
/// caller unpacks the remaining blocks.
///
/// # Safety
/// `n` blocks of `len` bytes, which must be whole units, must be writable from `dst` on, `stride`
/// bytes apart, and `n * len` bytes readable at `src`. The source must not overlap the destination.
#[inline(never)]
pub(super) unsafe fn unpack(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (len, unit): (usize, usize),
    stride: isize,
) -> usize {
    if n < 32 || len >= 8 || per_vector(len, stride) < 8 || !permutes_bytes() {
        return 0;
    }
    // SAFETY: the caller promises the blocks. The tests above ensure VBMI, at least 32 blocks and
    // at least eight in a vector.
    unsafe { unpack_permuted(dst, src, n, (len, unit), stride as usize) }
}

/// Multiplies each byte of the vector `x` by `by`, modulo 256.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn times(x: __m512i, by: usize) -> __m512i {
    let by = _mm512_set1_epi16(by as i16);
    let even = _mm512_and_si512(_mm512_mullo_epi16(x, by), _mm512_set1_epi16(0xff));
    let odd = _mm512_slli_epi16::<8>(_mm512_mullo_epi16(_mm512_srli_epi16::<8>(x), by));
    _mm512_or_si512(even, odd)
}

/// Returns two vectors of 64 bytes. Byte `i` of the first vector is `i / by`, and byte `i` of the
/// second vector is `i % by`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn divide(by: usize) -> (__m512i, __m512i) {
    // SAFETY: each row of the table has 64 bytes.
    let (lanes, quotients) = unsafe {
        (_mm512_loadu_si512(QUOTIENTS[1].as_ptr().cast()), _mm512_loadu_si512(QUOTIENTS[by].as_ptr().cast()))
    };
    (quotients, _mm512_sub_epi8(lanes, times(quotients, by)))
}

/// Changes a table of byte indices so that the bytes of each unit of `unit` bytes are reversed. Each
/// byte of `places` is the index of a byte in a block. It is replaced by the index of the byte that
/// has the mirrored position in the same unit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn mirrored(places: __m512i, unit: usize) -> __m512i {
    _mm512_xor_si512(places, _mm512_set1_epi8((unit - 1) as i8))
}

/// Copies blocks one by one until the next block is the first block in a cache line of the user's
/// buffer. Returns the number of copied blocks, and the distance in bytes from the start of this
/// line to the next block. Copies nothing and returns zeros if 64 is not a multiple of the stride,
/// if a block crosses a multiple of the stride, or if there are fewer than 128 blocks.
///
/// # Safety
/// `n` blocks of `len` bytes must be valid at `user`, `stride` bytes apart, and at `packed`, `len`
/// bytes apart: readable on the source side and writable on the destination side of the direction.
#[inline(always)]
unsafe fn to_line<const PACK: bool>(
    user: *mut u8,
    packed: *mut u8,
    n: usize,
    (len, unit): (usize, usize),
    stride: usize,
) -> (usize, usize) {
    let phase = user as usize % stride;
    if !64usize.is_multiple_of(stride) || phase + len > stride || n < 128 {
        return (0, 0);
    }
    let per_line = 64 / stride;
    let within = user as usize % 64 / stride;
    // Packing reads whole cache lines, so the start of the cache line must not lie before the first
    // block.
    let whole = within == 0 && (phase == 0 || !PACK);
    let first = if whole { 0 } else { per_line - within };
    for i in 0..first {
        let (u, p) = (user.wrapping_add(i * stride), packed.wrapping_add(i * len));
        // SAFETY: `i` is less than `n`: at most `per_line` blocks are copied, which are fewer than
        // 128. The caller promises block `i` on both sides.
        unsafe { if PACK { units::swapped(p, u, len, unit) } else { units::swapped(u, p, len, unit) } };
    }
    (first, phase)
}

/// Calls `step(d, s)`, where `d` is an address in the destination and `s` one in the source,
/// `steps` times. After each call, `d` advances by `by.0` bytes and `s` by `by.1` bytes.
#[inline(always)]
fn run(
    mut d: *mut u8,
    mut s: *const u8,
    steps: usize,
    by: (usize, usize),
    step: impl Fn(*mut u8, *const u8),
) {
    for _ in 0..steps {
        step(d, s);
        d = d.wrapping_add(by.0);
        s = s.wrapping_add(by.1);
    }
}

/// Packs some of `n` blocks, from the first block on, by permutations of bytes, and returns the
/// number of packed blocks.
///
/// # Safety
/// `n` blocks of `len` bytes, which must be whole units, must be readable from `src` on, `stride`
/// bytes apart, and `n * len` bytes writable at `dst`. The source must not overlap the destination.
/// The gaps between two blocks are read too, so each gap must be shorter than a page. `n` must be
/// at least 32, and a vector must hold at least four blocks. The machine must have AVX-512 VBMI.
#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn pack_permuted(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (len, unit): (usize, usize),
    stride: usize,
) -> usize {
    // SAFETY: the caller promises the blocks on both sides.
    let (first, phase) = unsafe { to_line::<true>(src.cast_mut(), dst, n, (len, unit), stride) };
    // Two permutations fill one store if the packed bytes of two vectors fit into 64 bytes. For
    // each packed byte, the place in the vector from which it comes is computed from the length and
    // the stride. `phase` shifts all places, because the first block begins `phase` bytes after the
    // start of the vector.
    let left = n - first;
    let in_vector = per_vector(len, stride as isize);
    let bytes = in_vector * len;
    let double = 2 * bytes <= 64;
    let (quotients, remainders) = divide(len);
    let remainders = mirrored(remainders, unit);
    let place = |shift: usize| {
        _mm512_add_epi8(_mm512_add_epi8(times(quotients, stride), remainders), _mm512_set1_epi8(shift as i8))
    };
    let lanes = place(phase);
    // `second` has the indices of bytes in the second vector. Its byte `bytes + j` is equal to byte
    // `j` of `lanes`, which has the indices for the first vector, because the second vector begins
    // `in_vector` strides after the first one.
    let second = place(phase.wrapping_sub(in_vector * stride));
    let mask = !_bzhi_u64(u64::MAX, bytes as u32);
    let step = if double { 2 * in_vector } else { in_vector };
    // The last vector that is loaded must end with the last block at the latest, and each step
    // stores up to 64 bytes. From this follows `needed`, the number of blocks that must remain
    // before a step.
    let reach = 64 + if double { in_vector * stride } else { 0 };
    let needed = (reach.saturating_sub(len + phase).div_ceil(stride) + 1).max(64usize.div_ceil(len));
    let steps = if left >= needed { (left - needed) / step + 1 } else { 0 };
    let d = dst.wrapping_add(first * len);
    let s = src.wrapping_add(first * stride).wrapping_sub(phase);
    let (by, apart) = ((step * len, step * stride), in_vector * stride);
    let one = |s: *const u8| {
        // SAFETY: 64 bytes are readable at `s`, which the comment on the steps below shows.
        _mm512_permutexvar_epi8(lanes, unsafe { _mm512_loadu_si512(s.cast()) })
    };
    let two = |s: *const u8| {
        // SAFETY: 64 bytes are readable at `s` and at `s + apart`, which the comment on the steps
        // below shows.
        let next = unsafe { _mm512_loadu_si512(s.add(apart).cast()) };
        _mm512_mask_permutexvar_epi8(one(s), mask, second, next)
    };
    // SAFETY: before every step at least `needed` blocks remain. The loads begin at a block, or in
    // the gap after a block that has been copied, and end at or before the end of the last block,
    // so all bytes lie on the pages of blocks. The store ends at or before the end of the packed
    // bytes. The bytes that it writes after those of its `step` blocks are written again by later
    // steps or by the caller.
    unsafe {
        // Stores are as narrow as possible: in L2, a store that reaches into the next cache line
        // halves the speed.
        match (double, step * len) {
            (true, 0..=32) => run(d, s, steps, by, |d, s| store_first::<32>(d, two(s))),
            (true, 33..=48) => run(d, s, steps, by, |d, s| store_first::<48>(d, two(s))),
            (true, _) => run(d, s, steps, by, |d, s| store_first::<64>(d, two(s))),
            (false, 33..=48) => run(d, s, steps, by, |d, s| store_first::<48>(d, one(s))),
            (false, _) => run(d, s, steps, by, |d, s| store_first::<64>(d, one(s))),
        }
    }
    first + steps * step
}

/// Unpacks some of `n` blocks, from the first block on, by permutations of bytes, and returns the
/// number of unpacked blocks.
///
/// # Safety
/// `n` blocks of `len` bytes, which must be whole units, must be writable from `dst` on, `stride`
/// bytes apart, and `n * len` bytes readable at `src`. The source must not overlap the destination.
/// `n` must be at least 32, and a vector must hold at least eight blocks. The machine must have
/// AVX-512 VBMI.
#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn unpack_permuted(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (len, unit): (usize, usize),
    stride: usize,
) -> usize {
    // SAFETY: the caller promises the blocks on both sides.
    let (first, phase) = unsafe { to_line::<false>(dst, src.cast_mut(), n, (len, unit), stride) };
    let left = n - first;
    // For each byte of a vector of the user's buffer, find its block and its place in the block.
    // This gives the index of the packed byte that goes there, and the mask of the bytes that
    // belong to a block.
    let step = per_vector(len, stride as isize);
    let (block, within) = divide(stride);
    let byte = _mm512_sub_epi8(within, _mm512_set1_epi8(phase as i8));
    let lanes = _mm512_add_epi8(times(block, len), mirrored(byte, unit));
    // For the `phase` bytes before the first block, `byte` wraps around and exceeds the length of
    // every block, so the mask excludes them.
    let mask = _mm512_cmplt_epu8_mask(byte, _mm512_set1_epi8(len as i8))
        & _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(step as i8));
    let load = if step * len <= 32 { 32usize } else { 64 };
    let needed = load.div_ceil(len);
    let steps = if left >= needed { (left - needed) / step + 1 } else { 0 };
    let d = dst.wrapping_add(first * stride).wrapping_sub(phase);
    let s = src.wrapping_add(first * len);
    let by = (step * stride, step * len);
    // SAFETY: before every step at least `needed` blocks remain, so the load ends within the packed
    // bytes. The mask has the bytes of `step` blocks and no others. `needed` is at least `step`,
    // because the packed bytes of a vector's blocks fit into the load.
    unsafe {
        let store =
            |d: *mut u8, v| _mm512_mask_storeu_epi8(d.cast(), mask, _mm512_permutexvar_epi8(lanes, v));
        if load == 32 {
            run(d, s, steps, by, |d, s| store(d, _mm512_castsi256_si512(_mm256_loadu_si256(s.cast()))));
        } else {
            run(d, s, steps, by, |d, s| store(d, _mm512_loadu_si512(s.cast())));
        }
    }
    first + steps * step
}

/// Stores the first `BYTES` bytes of a register: 32, 48 or 64.
///
/// # Safety
/// These bytes must be writable at `p`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store_first<const BYTES: usize>(p: *mut u8, v: __m512i) {
    // SAFETY: the caller promises `BYTES` writable bytes; the stores need no alignment.
    unsafe {
        match BYTES {
            32 => _mm256_storeu_si256(p.cast(), _mm512_castsi512_si256(v)),
            48 => {
                _mm256_storeu_si256(p.cast(), _mm512_castsi512_si256(v));
                _mm_storeu_si128(p.add(32).cast(), _mm512_extracti32x4_epi32::<2>(v));
            }
            _ => _mm512_storeu_si512(p.cast(), v),
        }
    }
}
