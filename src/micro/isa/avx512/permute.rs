//! Short blocks at short strides, many of them in one 64-byte load or store, put in place by one byte permutation.
//!
//! Needs AVX-512 VBMI (`vpermb`), which a machine of level AVX-512 may lack; [`pack`] and [`unpack`] ask. Packing reads whole
//! vectors of 64 bytes, gaps included, never before the first or past the last block. Unpacking writes through a mask that leaves gaps
//! alone. The strides are so short that a gap is never 4096 bytes. Where the units of a block are swapped (of one byte: are not), it is by the
//! same permutation.
//!
//! Sapphire Rapids, L1, GB/s against the loop over blocks: pack 4 B by 8: 90 : 33, by 16: 44 : 33, 8 B by 16: 93 : 53, 12 B by
//! 16: 86 : 50, 3 B by 4: 70 : 9; unpack 4 B by 8: 54 : 26. At three blocks a vector the loops are as good or better.

use std::arch::x86_64::{
    __m512i, _bzhi_u64, _mm_storeu_si128, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_add_epi8,
    _mm512_and_si512, _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_cmplt_epu8_mask,
    _mm512_extracti32x4_epi32, _mm512_loadu_si512, _mm512_mask_permutexvar_epi8, _mm512_mask_storeu_epi8,
    _mm512_mullo_epi16, _mm512_or_si512, _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi16,
    _mm512_slli_epi16, _mm512_srli_epi16, _mm512_storeu_si512, _mm512_sub_epi8, _mm512_xor_si512,
};

use super::permutes_bytes;
use crate::micro::units;

/// Blocks of this many bytes or more are left to the other loops.
pub(super) const LONGEST: usize = 16;

/// `QUOTIENTS[d][i] = i / d`.
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

/// Blocks in a vector; none where permutations do not serve at all.
const fn per_vector(len: usize, stride: isize) -> usize {
    if len == 0 || len >= LONGEST || stride <= len as isize || stride >= 64 {
        return 0;
    }
    (64 - len) / stride as usize + 1
}

/// Strides below this, in bytes, are worth a call of [`pack`] or [`unpack`]: no vector has four blocks at longer ones.
pub(super) const SHORT: isize = 64 / 3 + 1;

/// Packs the first blocks of `n`, where permutations pay and the machine has them, and returns how many; the rest is the caller's.
///
/// # Safety
/// `n` blocks of `len` bytes, whole units, readable from `src` on by `stride`, `n * len` bytes writable at `dst`, without overlap.
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
    // SAFETY: as promised by the caller; the machine has the instructions.
    unsafe { pack_permuted(dst, src, n, (len, unit), stride as usize) }
}

/// Unpacks the first blocks of `n`, where permutations pay and the machine has them, and returns how many; the rest is the caller's.
///
/// # Safety
/// `n` blocks of `len` bytes, whole units, writable from `dst` on by `stride`, `n * len` bytes readable at `src`, without overlap.
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
    // SAFETY: as promised by the caller; the machine has the instructions.
    unsafe { unpack_permuted(dst, src, n, (len, unit), stride as usize) }
}

/// The bytes of `x` times `by`, each modulo 256.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn times(x: __m512i, by: usize) -> __m512i {
    let by = _mm512_set1_epi16(by as i16);
    let even = _mm512_and_si512(_mm512_mullo_epi16(x, by), _mm512_set1_epi16(0xff));
    let odd = _mm512_slli_epi16::<8>(_mm512_mullo_epi16(_mm512_srli_epi16::<8>(x), by));
    _mm512_or_si512(even, odd)
}

/// Lane `i` is `i / by`, and lane `i` is `i % by`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn divide(by: usize) -> (__m512i, __m512i) {
    // SAFETY: the tables have 64 bytes each.
    let (lanes, quotients) = unsafe {
        (_mm512_loadu_si512(QUOTIENTS[1].as_ptr().cast()), _mm512_loadu_si512(QUOTIENTS[by].as_ptr().cast()))
    };
    (quotients, _mm512_sub_epi8(lanes, times(quotients, by)))
}

/// For places in a block those that their bytes come from.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn mirrored(places: __m512i, unit: usize) -> __m512i {
    _mm512_xor_si512(places, _mm512_set1_epi8((unit - 1) as i8))
}

/// Copies blocks one by one until those that follow start a cache line together, if the stride allows that; returns how many
/// there were and how far from the line the next block starts.
///
/// # Safety
/// `n` blocks of `len` bytes are valid at `user` by `stride` and at `packed` by `len`.
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
    // Packing reads from the start of the line, which must not be before the first block.
    let whole = within == 0 && (phase == 0 || !PACK);
    let first = if whole { 0 } else { per_line - within };
    for i in 0..first {
        let (u, p) = (user.wrapping_add(i * stride), packed.wrapping_add(i * len));
        // SAFETY: block `i` of `n`.
        unsafe { if PACK { units::swapped(p, u, len, unit) } else { units::swapped(u, p, len, unit) } };
    }
    (first, phase)
}

/// Runs `steps` steps; after each, the sides move on by so many bytes.
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

/// # Safety
/// As [`pack`], with AVX-512 VBMI, at least four blocks in a vector and 32 in all: `n` blocks of `len` bytes readable from `src` on by `stride`, `n * len` bytes writable at `dst`, without
/// overlap.
#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn pack_permuted(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (len, unit): (usize, usize),
    stride: usize,
) -> usize {
    // SAFETY: the blocks are the caller's.
    let (first, phase) = unsafe { to_line::<true>(src.cast_mut(), dst, n, (len, unit), stride) };
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
    // Lane `bytes + j` of the second half is lane `j` of the first: the vector starts `in_vector` strides later.
    let second = place(phase.wrapping_sub(in_vector * stride));
    let mask = !_bzhi_u64(u64::MAX, bytes as u32);
    let step = if double { 2 * in_vector } else { in_vector };
    // The last vector must end with the last block at the latest, and 64 bytes are stored at a time.
    let reach = 64 + if double { in_vector * stride } else { 0 };
    let needed = (reach.saturating_sub(len + phase).div_ceil(stride) + 1).max(64usize.div_ceil(len));
    let steps = if left >= needed { (left - needed) / step + 1 } else { 0 };
    let d = dst.wrapping_add(first * len);
    let s = src.wrapping_add(first * stride).wrapping_sub(phase);
    let (by, apart) = ((step * len, step * stride), in_vector * stride);
    let one = |s: *const u8| {
        // SAFETY: 64 bytes, see below.
        _mm512_permutexvar_epi8(lanes, unsafe { _mm512_loadu_si512(s.cast()) })
    };
    let two = |s: *const u8| {
        // SAFETY: twice 64 bytes, see below.
        let next = unsafe { _mm512_loadu_si512(s.add(apart).cast()) };
        _mm512_mask_permutexvar_epi8(one(s), mask, second, next)
    };
    // SAFETY: before every step at least `needed` blocks remain: the loads begin in the gap after a block that was copied (or
    // at a block) and end before the end of the last block; the store ends before the end of the packed bytes, and
    // what it writes beyond `step` blocks is written again by what follows.
    unsafe {
        // No more is stored than needs be: in L2 a store that reaches into the next line costs half the speed.
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

/// # Safety
/// As [`unpack`], with AVX-512 VBMI, at least eight blocks in a vector and 32 in all: `n` blocks of `len` bytes writable from `dst` on by `stride`, `n * len` bytes readable at `src`, without
/// overlap.
#[target_feature(enable = "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn unpack_permuted(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (len, unit): (usize, usize),
    stride: usize,
) -> usize {
    // SAFETY: the blocks are the caller's.
    let (first, phase) = unsafe { to_line::<false>(dst, src.cast_mut(), n, (len, unit), stride) };
    let left = n - first;
    let step = per_vector(len, stride as isize);
    let (block, within) = divide(stride);
    let byte = _mm512_sub_epi8(within, _mm512_set1_epi8(phase as i8));
    let lanes = _mm512_add_epi8(times(block, len), mirrored(byte, unit));
    // Before the phase `byte` wraps to more than any length.
    let mask = _mm512_cmplt_epu8_mask(byte, _mm512_set1_epi8(len as i8))
        & _mm512_cmplt_epu8_mask(block, _mm512_set1_epi8(step as i8));
    let load = if step * len <= 32 { 32usize } else { 64 };
    let needed = load.div_ceil(len);
    let steps = if left >= needed { (left - needed) / step + 1 } else { 0 };
    let d = dst.wrapping_add(first * stride).wrapping_sub(phase);
    let s = src.wrapping_add(first * len);
    let by = (step * stride, step * len);
    // SAFETY: before every step at least `needed` blocks remain, so that the load ends within the packed bytes; the mask has
    // the bytes of `step` blocks and no others, and `needed >= step` because a vector's blocks fit into the load.
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

/// Stores the first `BYTES` bytes of a register: 32, 48 or all.
///
/// # Safety
/// They are writable at `p`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store_first<const BYTES: usize>(p: *mut u8, v: __m512i) {
    // SAFETY: as promised by the caller.
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
