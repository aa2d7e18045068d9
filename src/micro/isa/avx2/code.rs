//! AVX2 code that combines scattered blocks into full vectors and, when packing, stores these
//! vectors to a dense destination.
//!
//! Apart from `pack_halves`, which also reads the gaps between blocks, every function reads exactly
//! the blocks. All functions write exactly the bytes of the blocks, in order. The gain comes from
//! stores that are wider, and fewer, than the pieces of the blocks (24 B blocks: 78 instead of 59
//! GB/s, 40 B: 103 instead of 68; Sapphire Rapids, L1).

use std::arch::x86_64::{
    __m128i, __m256i, _mm_castpd_si128, _mm_castsi128_pd, _mm_cvtsi32_si128, _mm_insert_epi32, _mm_loadh_pd,
    _mm_loadl_epi64, _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeh_pd, _mm_storel_epi64, _mm_storeu_si128,
    _mm256_and_si256, _mm256_blend_epi32, _mm256_broadcastsi128_si256, _mm256_castps_si256,
    _mm256_castsi128_si256, _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmpeq_epi32,
    _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_maskload_epi32, _mm256_maskstore_epi32,
    _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_set_m128i, _mm256_set1_epi32,
    _mm256_setr_epi32, _mm256_shuffle_epi8, _mm256_shuffle_ps, _mm256_storeu_si256,
};

use super::{Avx2, Baseline, transpose};
use crate::micro::Direction;
use crate::micro::cursor::Cursor;
use crate::micro::isa::Code;
use crate::micro::permute::masked::{self, masked_permute};
use crate::micro::permute::table::{Function, Granule};
use crate::micro::transpose::pieces::in_pieces;
use crate::micro::units::{Reverse, places};

impl Code for Avx2 {
    #[inline(always)]
    unsafe fn gather<const LEN: usize>(dst: *mut u8, src: &impl Cursor) {
        // SAFETY: the caller promises as many blocks as `GATHERED` lists for `LEN`. The functions
        // called here take exactly these blocks and write exactly their bytes.
        unsafe {
            // The arrays of addresses are written out element by element, because `map` of an array
            // is not reliably inlined, and a call for each group of blocks would cost ten times as
            // much as the group itself.
            let at = |i: usize| src.address(i).cast_const();
            let four = |from: usize| [at(from), at(from + 1), at(from + 2), at(from + 3)];
            match LEN {
                4 => {
                    gather_4x4::<1>(dst, four(0));
                    gather_4x4::<1>(dst.add(16), four(4));
                }
                8 => {
                    gather_4x8::<1>(dst, four(0));
                    gather_4x8::<1>(dst.add(32), four(4));
                }
                12 => gather_4x12(dst, four(0)),
                16 => gather_4x16::<1>(dst, four(0)),
                24 => gather_4x24(dst, four(0)),
                40 => gather_4x40(dst, four(0)),
                48 => gather_2x48(dst, [at(0), at(1)]),
                _ => unreachable!(),
            }
        }
    }

    #[inline(always)]
    unsafe fn scatter<const LEN: usize>(dst: &impl Cursor, src: *const u8) {
        // SAFETY: the caller promises four blocks of `LEN` bytes on both sides, as `SCATTERED`
        // lists for both lengths.
        unsafe {
            let a = [dst.address(0), dst.address(1), dst.address(2), dst.address(3)];
            match LEN {
                8 => scatter_4x8::<1>(a, src),
                16 => {
                    scatter_2x16::<1>([a[0], a[1]], src);
                    scatter_2x16::<1>([a[2], a[3]], src.add(32));
                }
                _ => unreachable!(),
            }
        }
    }

    #[inline(always)]
    unsafe fn copy_near<const LEN: usize>(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        strides: (isize, isize),
    ) -> usize {
        match LEN {
            // SAFETY: the caller promises `n` blocks at these strides, which are those that
            // `pack_halves` needs, without overlap between the sides.
            4 | 8 if strides == (LEN as isize, 2 * LEN as isize) => unsafe {
                pack_halves::<LEN, 1>(dst, src, n)
            },
            _ => 0,
        }
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
                _ => in_pieces::<Avx2, LEN>(dst, src, dst_row, src_row),
            }
        }
    }

    #[inline(always)]
    unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
        use std::arch::x86_64::_mm256_stream_si256;
        for i in 0..lines {
            // SAFETY: the 64 bytes at `64 * i` are one of the lines that the caller promises on
            // both sides; in `dst` they are aligned.
            unsafe {
                let low = _mm256_loadu_si256(src.add(64 * i).cast());
                let high = _mm256_loadu_si256(src.add(64 * i + 32).cast());
                _mm256_stream_si256(dst.add(64 * i).cast(), low);
                _mm256_stream_si256(dst.add(64 * i + 32).cast(), high);
            }
        }
    }

    #[inline(always)]
    unsafe fn gather_reversed<const UNIT: usize>(dst: *mut u8, src: &impl Cursor) {
        // SAFETY: the caller promises eight blocks. The functions called here take four each and
        // write exactly their bytes; the function of the baseline takes all eight.
        unsafe {
            // The arrays of addresses are written out element by element, because `map` of an array
            // is not reliably inlined.
            let at = |i: usize| src.address(i).cast_const();
            let four = |from: usize| [at(from), at(from + 1), at(from + 2), at(from + 3)];
            match UNIT {
                4 => {
                    gather_4x4::<4>(dst, four(0));
                    gather_4x4::<4>(dst.add(16), four(4));
                }
                8 => {
                    gather_4x8::<8>(dst, four(0));
                    gather_4x8::<8>(dst.add(32), four(4));
                }
                16 => {
                    gather_4x16::<16>(dst, four(0));
                    gather_4x16::<16>(dst.add(64), four(4));
                }
                _ => Baseline::gather_reversed::<UNIT>(dst, src),
            }
        }
    }

    #[inline(always)]
    unsafe fn scatter_reversed<const UNIT: usize>(dst: &impl Cursor, src: *const u8) {
        // SAFETY: the caller promises eight blocks on both sides. The functions called here take
        // each of them once.
        unsafe {
            let four = |from: usize| {
                [dst.address(from), dst.address(from + 1), dst.address(from + 2), dst.address(from + 3)]
            };
            match UNIT {
                8 => {
                    scatter_4x8::<8>(four(0), src);
                    scatter_4x8::<8>(four(4), src.add(32));
                }
                16 => {
                    for pair in 0..4 {
                        scatter_2x16::<16>(
                            [dst.address(2 * pair), dst.address(2 * pair + 1)],
                            src.add(32 * pair),
                        );
                    }
                }
                _ => Baseline::scatter_reversed::<UNIT>(dst, src),
            }
        }
    }

    #[inline(always)]
    unsafe fn reverse_near<const UNIT: usize>(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        len: usize,
        strides: (isize, isize),
    ) -> usize {
        if strides != (len as isize, 2 * len as isize) {
            return 0;
        }
        // SAFETY: the caller promises `n` blocks of `len` bytes at these strides, which are those
        // that `pack_halves` needs, without overlap between the sides.
        unsafe {
            match len {
                4 if UNIT <= 4 => pack_halves::<4, UNIT>(dst, src, n),
                8 if UNIT <= 8 => pack_halves::<8, UNIT>(dst, src, n),
                _ => 0,
            }
        }
    }

    fn permute(granule: Granule, swaps: bool, direction: Direction) -> Option<Function> {
        match (granule, swaps, direction) {
            (Granule::Byte, ..) => None,
            (Granule::Word, false, Direction::Pack) => Some(words::<true>),
            (Granule::Word, false, Direction::Unpack) => Some(words::<false>),
            (Granule::Word, true, Direction::Pack) => Some(swapped_words::<true>),
            (Granule::Word, true, Direction::Unpack) => Some(swapped_words::<false>),
        }
    }
}

impl Reverse for Avx2 {
    #[inline(always)]
    unsafe fn reverse<const UNIT: usize, const LEN: usize>(dst: *mut u8, src: *const u8) {
        let places = const { places::<UNIT>() };
        // SAFETY: the rows of 32 bytes and the last one of 16 lie within the `LEN` bytes that the
        // caller promises on both sides. `places` has 16 bytes.
        unsafe {
            let places = _mm_loadu_si128(places.as_ptr().cast());
            for at in (0..LEN / 32 * 32).step_by(32) {
                store_32(dst.add(at), reversed::<UNIT>(load_32(src.add(at))));
            }
            if LEN % 32 == 16 {
                let row = _mm_shuffle_epi8(_mm_loadu_si128(src.add(LEN - 16).cast()), places);
                _mm_storeu_si128(dst.add(LEN - 16).cast(), row);
            }
        }
    }
}

masked_permute!(words, Words<false>, "avx2,bmi1,bmi2");
masked_permute!(swapped_words, Words<true>, "avx2,bmi1,bmi2");

/// Permutation whose lanes (the parts that it moves) are the eight words of 4 bytes of a vector. If
/// `SWAPPED` is true, the bytes inside each word are shuffled too.
struct Words<const SWAPPED: bool>;

/// Returns a vector of eight words. The sign bit of word `i`, which masked loads and stores test,
/// is bit `i` of `mask`.
#[inline]
#[target_feature(enable = "avx2")]
fn spread(mask: u64) -> __m256i {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask as i32), bits), bits)
}

// SAFETY of the functions: callers promise the instructions and the lanes or vectors, and masked
// accesses do not touch lanes that are not in the mask.
impl<const SWAPPED: bool> masked::Lanes for Words<SWAPPED> {
    const UNIT: u64 = 4;
    const BYTES: u64 = 32;
    type Vector = __m256i;
    type Places = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn load(p: *const u8, mask: u64) -> __m256i {
        // SAFETY: the caller promises that the lanes in `mask` are readable; no others are touched.
        unsafe { _mm256_maskload_epi32(p.cast(), spread(mask)) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut u8, mask: u64, v: __m256i) {
        // SAFETY: the caller promises that the lanes in `mask` are writable; no others are touched.
        unsafe { _mm256_maskstore_epi32(p.cast(), spread(mask), v) }
    }
    #[inline(always)]
    unsafe fn load_all(p: *const u8) -> __m256i {
        // SAFETY: the caller promises a readable vector of 32 bytes.
        unsafe { load_32(p) }
    }
    #[inline(always)]
    unsafe fn store_first<const BYTES: usize>(p: *mut u8, v: __m256i) {
        // SAFETY: the caller promises a writable vector of 32 bytes.
        unsafe { store_32(p, v) }
    }
    #[inline(always)]
    unsafe fn places(lanes: &[u8; 64], within: &[u8; 64]) -> (__m256i, __m256i) {
        // SAFETY: both tables have 64 bytes, of which 32 are read. The caller promises the
        // instructions.
        unsafe { (load_32(lanes.as_ptr()), load_32(within.as_ptr())) }
    }
    #[inline(always)]
    unsafe fn permute(v: __m256i, (lanes, within): (__m256i, __m256i)) -> __m256i {
        // SAFETY: the caller promises the instructions.
        unsafe {
            let v = _mm256_permutevar8x32_epi32(v, lanes);
            if SWAPPED { _mm256_shuffle_epi8(v, within) } else { v }
        }
    }
}

/// Loads 16 bytes.
///
/// # Safety
/// 16 bytes must be readable at `p`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_16(p: *const u8) -> __m128i {
    // SAFETY: the caller promises 16 readable bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(p.cast()) }
}

/// Loads 8 bytes from each of two addresses into one register.
///
/// # Safety
/// 8 bytes must be readable at `low` and at `high`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_8_8(low: *const u8, high: *const u8) -> __m128i {
    // SAFETY: the caller promises 8 readable bytes at both places; the loads need no alignment.
    unsafe {
        let low = _mm_castsi128_pd(_mm_loadl_epi64(low.cast()));
        _mm_castpd_si128(_mm_loadh_pd(low, high.cast()))
    }
}

/// Loads 32 bytes.
///
/// # Safety
/// 32 bytes must be readable at `p`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_32(p: *const u8) -> __m256i {
    // SAFETY: the caller promises 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(p.cast()) }
}

/// Stores 32 bytes.
///
/// # Safety
/// 32 bytes must be writable at `p`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_32(p: *mut u8, v: __m256i) {
    // SAFETY: the caller promises 32 writable bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(p.cast(), v) }
}

/// Packs four blocks of 4 bytes and reverses the bytes of each of their units of `UNIT` bytes.
///
/// # Safety
/// Each block whose address is in `a` must be readable, and 16 bytes must be writable at `dst`. The
/// source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather_4x4<const UNIT: usize>(dst: *mut u8, a: [*const u8; 4]) {
    // SAFETY: the caller promises four readable blocks of 4 bytes and 16 writable bytes; no access
    // needs alignment.
    unsafe {
        let word = |i: usize| a[i].cast::<i32>().read_unaligned();
        let v = _mm_cvtsi32_si128(word(0));
        let v = _mm_insert_epi32::<1>(v, word(1));
        let v = _mm_insert_epi32::<2>(v, word(2));
        let v = _mm_insert_epi32::<3>(v, word(3));
        _mm_storeu_si128(dst.cast(), _mm256_castsi256_si128(reversed::<UNIT>(_mm256_castsi128_si256(v))));
    }
}

/// Packs four blocks of 8 bytes and reverses the bytes of each of their units of `UNIT` bytes.
///
/// # Safety
/// Each block whose address is in `a` must be readable, and 32 bytes must be writable at `dst`. The
/// source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather_4x8<const UNIT: usize>(dst: *mut u8, a: [*const u8; 4]) {
    // SAFETY: the caller promises four readable blocks of 8 bytes and 32 writable bytes.
    unsafe { store_32(dst, reversed::<UNIT>(_mm256_set_m128i(load_8_8(a[2], a[3]), load_8_8(a[0], a[1])))) }
}

/// Packs four blocks of 16 bytes and reverses the bytes of each of their units of `UNIT` bytes.
///
/// # Safety
/// Each block whose address is in `a` must be readable, and 64 bytes must be writable at `dst`. The
/// source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather_4x16<const UNIT: usize>(dst: *mut u8, a: [*const u8; 4]) {
    // SAFETY: the caller promises four readable blocks of 16 bytes and 64 writable bytes.
    unsafe {
        store_32(dst, reversed::<UNIT>(_mm256_set_m128i(load_16(a[1]), load_16(a[0]))));
        store_32(dst.add(32), reversed::<UNIT>(_mm256_set_m128i(load_16(a[3]), load_16(a[2]))));
    }
}

/// Unpacks four blocks of 8 bytes, which are loaded at once, and reverses the bytes of each of
/// their units of `UNIT` bytes.
///
/// # Safety
/// 32 bytes must be readable at `src`, and each block whose address is in `a` must be writable.
/// These blocks must not overlap the 32 bytes at `src`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn scatter_4x8<const UNIT: usize>(a: [*mut u8; 4], src: *const u8) {
    // SAFETY: the caller promises 32 readable bytes and four writable blocks of 8 bytes; no access
    // needs alignment.
    unsafe {
        let v = reversed::<UNIT>(load_32(src));
        let (low, high) = (_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
        _mm_storel_epi64(a[0].cast(), low);
        _mm_storeh_pd(a[1].cast(), _mm_castsi128_pd(low));
        _mm_storel_epi64(a[2].cast(), high);
        _mm_storeh_pd(a[3].cast(), _mm_castsi128_pd(high));
    }
}

/// Unpacks two blocks of 16 bytes, which are loaded at once, and reverses the bytes of each of
/// their units of `UNIT` bytes.
///
/// # Safety
/// 32 bytes must be readable at `src`, and each block whose address is in `a` must be writable.
/// These blocks must not overlap the 32 bytes at `src`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn scatter_2x16<const UNIT: usize>(a: [*mut u8; 2], src: *const u8) {
    // SAFETY: the caller promises 32 readable bytes and two writable blocks of 16 bytes; no access
    // needs alignment.
    unsafe {
        let v = reversed::<UNIT>(load_32(src));
        _mm_storeu_si128(a[0].cast(), _mm256_castsi256_si128(v));
        _mm_storeu_si128(a[1].cast(), _mm256_extracti128_si256::<1>(v));
    }
}

/// Reverses the bytes of every unit of `UNIT` bytes in the register `v`. If `UNIT` is 1, the
/// function returns `v`.
#[inline]
#[target_feature(enable = "avx2")]
fn reversed<const UNIT: usize>(v: __m256i) -> __m256i {
    let places = const { places::<UNIT>() };
    // SAFETY: `places` has 16 bytes.
    let places = unsafe { load_16(places.as_ptr()) };
    if UNIT == 1 { v } else { _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(places)) }
}

/// Packs some of `n` blocks of `LEN` bytes (4 or 8), from the first block on, and reverses the
/// bytes of each of their units of `UNIT` bytes. The gap between two blocks is as long as a block,
/// so whole vectors are loaded with the gaps. Returns the number of packed blocks.
///
/// # Safety
/// `n` blocks of `LEN` bytes must be readable at `src` at a stride of `2 * LEN`, and `n * LEN`
/// bytes writable at `dst`. The source must not overlap the destination. The gaps between two
/// blocks are read too, so each gap must be shorter than a page.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pack_halves<const LEN: usize, const UNIT: usize>(dst: *mut u8, src: *const u8, n: usize) -> usize {
    let group = 32 / LEN;
    let steps = n.saturating_sub(1) / group;
    for i in 0..steps {
        // SAFETY: step `i` reads the 64 bytes of `group` blocks with their gaps. As `group * steps`
        // is less than `n`, another block follows, so all gaps lie between two blocks, on the pages
        // of these. Their packed bytes are the 32 bytes at `32 * i`.
        unsafe {
            let low = load_32(src.add(64 * i));
            let picked = if LEN == 8 {
                // If the second vector is loaded from an address 8 bytes lower, its two blocks are
                // at the places at which the first vector has its gaps, and a blend joins the two
                // vectors. A blend runs on any port; an unpack runs only on the port that the
                // permutation needs (70 against 53 GB/s; Sapphire Rapids, L1).
                _mm256_blend_epi32::<0b1100_1100>(low, load_32(src.add(64 * i + 24)))
            } else {
                let high = load_32(src.add(64 * i + 32));
                _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(
                    _mm256_castsi256_ps(low),
                    _mm256_castsi256_ps(high),
                ))
            };
            store_32(dst.add(32 * i), reversed::<UNIT>(_mm256_permute4x64_epi64::<0b11_01_10_00>(picked)));
        }
    }
    steps * group
}

/// Packs four blocks of 12 bytes. The first three blocks are stored as 16 bytes each, the last 4 of
/// which the next store overwrites. The last block is stored exactly.
///
/// # Safety
/// Each block whose address is in `a` must be readable, and 48 bytes must be writable at `dst`. The
/// source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather_4x12(dst: *mut u8, a: [*const u8; 4]) {
    // SAFETY: the caller promises four readable blocks of 12 bytes and 48 writable bytes. The third
    // store ends at byte 40, and the last ones at byte 48.
    unsafe {
        for (i, p) in a[..3].iter().enumerate() {
            let v = _mm_insert_epi32::<2>(_mm_loadl_epi64(p.cast()), p.add(8).cast::<i32>().read_unaligned());
            _mm_storeu_si128(dst.add(12 * i).cast(), v);
        }
        _mm_storel_epi64(dst.add(36).cast(), _mm_loadl_epi64(a[3].cast()));
        dst.add(44).cast::<i32>().write_unaligned(a[3].add(8).cast::<i32>().read_unaligned());
    }
}

/// Packs four blocks of 24 bytes with three stores of 32 bytes.
///
/// # Safety
/// Each block whose address is in `a` must be readable, and 96 bytes must be writable at `dst`. The
/// source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather_4x24(dst: *mut u8, a: [*const u8; 4]) {
    // SAFETY: the caller promises four readable blocks of 24 bytes and 96 writable bytes. All loads
    // end within their block.
    unsafe {
        store_32(dst, _mm256_set_m128i(load_8_8(a[0].add(16), a[1]), load_16(a[0])));
        store_32(dst.add(32), _mm256_set_m128i(load_16(a[2]), load_16(a[1].add(8))));
        store_32(dst.add(64), _mm256_set_m128i(load_16(a[3].add(8)), load_8_8(a[2].add(16), a[3])));
    }
}

/// Packs four blocks of 40 bytes with five stores of 32 bytes.
///
/// # Safety
/// Each block whose address is in `a` must be readable, and 160 bytes must be writable at `dst`.
/// The source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather_4x40(dst: *mut u8, a: [*const u8; 4]) {
    // SAFETY: the caller promises four readable blocks of 40 bytes and 160 writable bytes. All
    // loads end within their block.
    unsafe {
        store_32(dst, load_32(a[0]));
        store_32(dst.add(32), _mm256_set_m128i(load_16(a[1].add(8)), load_8_8(a[0].add(32), a[1])));
        store_32(dst.add(64), _mm256_set_m128i(load_16(a[2]), load_16(a[1].add(24))));
        store_32(dst.add(96), _mm256_set_m128i(load_8_8(a[2].add(32), a[3]), load_16(a[2].add(16))));
        store_32(dst.add(128), load_32(a[3].add(8)));
    }
}

/// Packs two blocks of 48 bytes with three stores of 32 bytes.
///
/// # Safety
/// Each block whose address is in `a` must be readable, and 96 bytes must be writable at `dst`. The
/// source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn gather_2x48(dst: *mut u8, a: [*const u8; 2]) {
    // SAFETY: the caller promises two readable blocks of 48 bytes and 96 writable bytes. All loads
    // end within their block.
    unsafe {
        store_32(dst, load_32(a[0]));
        store_32(dst.add(32), _mm256_set_m128i(load_16(a[1]), load_16(a[0].add(32))));
        store_32(dst.add(64), load_32(a[1].add(16)));
    }
}
