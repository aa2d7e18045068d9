//! Full vectors from scattered blocks, and stores under a mask, with AVX-512.
//!
//! Masked loads read exactly the block and masked stores write exactly the block, each in one access: one look into the
//! page tables and one cache line where plain pieces would take two (24 B blocks 4160 B apart: 52 instead of 33 GB/s packed, 69
//! instead of 38 unpacked; Sapphire Rapids).

use std::arch::x86_64::{
    __m256i, __m512i, _bzhi_u64, _mm_loadu_si128, _mm_mask_storeu_epi8, _mm_storeu_si128,
    _mm256_castsi128_si256, _mm256_castsi256_si128, _mm256_inserti128_si256, _mm256_loadu_si256,
    _mm256_mask_storeu_epi8, _mm256_maskz_loadu_epi32, _mm256_permutex2var_epi32, _mm256_storeu_si256,
    _mm512_castsi256_si512, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_mask_storeu_epi32, _mm512_maskz_loadu_epi8, _mm512_maskz_loadu_epi32, _mm512_permutexvar_epi8,
    _mm512_permutexvar_epi32, _mm512_shuffle_epi8, _mm512_storeu_si512,
};

#[cfg(feature = "operations")]
use super::combine;
use super::{Avx2, Avx512, lines, permute, transpose, words};
use crate::micro::Direction;
use crate::micro::cursor::Cursor;
use crate::micro::isa::Code;
use crate::micro::permute::masked::{self, masked_permute};
use crate::micro::permute::table::{Function, Granule};
#[cfg(feature = "operations")]
use crate::micro::reduce::vector::Vector;
use crate::micro::transpose::pieces::in_pieces;
use crate::micro::units::Reverse;

impl Code for Avx512 {
    #[inline(always)]
    unsafe fn gather<const LEN: usize>(dst: *mut u8, src: &impl Cursor) {
        // SAFETY: four blocks remain, and each helper takes that many and writes their bytes.
        unsafe {
            let at = |i: usize| src.at(i).cast_const();
            let four = || [at(0), at(1), at(2), at(3)];
            match LEN {
                16 => gather_4x16(dst, four()),
                20 => gather_words::<5>(dst, four()),
                24 => gather_words::<6>(dst, four()),
                28 => gather_words::<7>(dst, four()),
                // Not by masked loads: 12 B by 24 in L2 20 instead of 24 GB/s (Sapphire Rapids).
                _ => Avx2::gather::<LEN>(dst, src),
            }
        }
    }

    #[inline(always)]
    unsafe fn scatter<const LEN: usize>(dst: &impl Cursor, src: *const u8) {
        // SAFETY: as promised by the caller.
        unsafe { Avx2::scatter::<LEN>(dst, src) }
    }

    #[inline(always)]
    unsafe fn store_masked<const LEN: usize>(dst: *mut u8, src: *const u8) {
        // SAFETY: as promised by the caller.
        unsafe { store_masked::<LEN>(dst, src) }
    }

    #[inline(always)]
    unsafe fn copy_masked(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: as promised by the caller.
        unsafe { copy_masked(dst, src, len) }
    }

    #[cfg(feature = "operations")]
    #[inline(always)]
    unsafe fn combine_near<V: Vector>(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        strides: (isize, isize),
        len: usize,
    ) -> usize {
        // SAFETY: as promised by the caller.
        unsafe { combine::near::<V>(dst, src, n, strides, len) }
    }

    #[inline(always)]
    unsafe fn copy_near<const LEN: usize>(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        (ds, ss): (isize, isize),
    ) -> usize {
        let len = LEN as isize;
        // SAFETY: as promised by the caller; a dense side is what each function asks for.
        unsafe {
            let done = if ds == len { words::pack_near::<LEN>(dst, src, n, ss) } else { 0 };
            if done > 0 {
                return done;
            }
            match LEN {
                72 => lines::copy::<72>(dst, src, n, (ds, ss)),
                80 => lines::copy::<80>(dst, src, n, (ds, ss)),
                88 => lines::copy::<88>(dst, src, n, (ds, ss)),
                104 => lines::copy::<104>(dst, src, n, (ds, ss)),
                120 => lines::copy::<120>(dst, src, n, (ds, ss)),
                1..permute::LONGEST if ds == len && (len..permute::SHORT).contains(&ss) => {
                    permute::pack(dst, src, n, (LEN, 1), ss)
                }
                1..permute::LONGEST if ss == len && (len..permute::SHORT).contains(&ds) => {
                    permute::unpack(dst, src, n, (LEN, 1), ds)
                }
                _ => 0,
            }
        }
    }

    #[inline(always)]
    unsafe fn transpose<const LEN: usize>(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        // SAFETY: as promised by the caller.
        unsafe {
            match LEN {
                4 => transpose::of_4(dst, src, dst_row, src_row),
                8 => transpose::of_8(dst, src, dst_row, src_row),
                16 => transpose::of_16(dst, src, dst_row, src_row),
                _ => in_pieces::<Avx512, LEN>(dst, src, dst_row, src_row),
            }
        }
    }

    #[inline(always)]
    unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
        // SAFETY: as promised by the caller.
        unsafe { Avx2::stream(dst, src, lines) }
    }

    #[inline(always)]
    unsafe fn gather_reversed<const UNIT: usize>(dst: *mut u8, src: &impl Cursor) {
        // SAFETY: as promised by the caller.
        unsafe { Avx2::gather_reversed::<UNIT>(dst, src) }
    }

    #[inline(always)]
    unsafe fn scatter_reversed<const UNIT: usize>(dst: &impl Cursor, src: *const u8) {
        // SAFETY: as promised by the caller.
        unsafe { Avx2::scatter_reversed::<UNIT>(dst, src) }
    }

    #[inline(always)]
    unsafe fn reverse_near<const UNIT: usize>(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        len: usize,
        (ds, ss): (isize, isize),
    ) -> usize {
        let dense = len as isize;
        // SAFETY: as promised by the caller; a dense side is what each function asks for.
        unsafe {
            if ds == dense && ss == 2 * dense {
                match len {
                    4 if UNIT <= 4 => return words::pack::<4, 8, UNIT>(dst, src, n),
                    8 if UNIT <= 8 => return words::pack::<8, 16, UNIT>(dst, src, n),
                    16 => return words::pack::<16, 32, UNIT>(dst, src, n),
                    _ => {}
                }
            }
            if UNIT >= permute::LONGEST || len >= permute::LONGEST {
                0
            } else if ds == dense && (dense..permute::SHORT).contains(&ss) {
                permute::pack(dst, src, n, (len, UNIT), ss)
            } else if ss == dense && (dense..permute::SHORT).contains(&ds) {
                permute::unpack(dst, src, n, (len, UNIT), ds)
            } else {
                0
            }
        }
    }

    fn permute(granule: Granule, swaps: bool, direction: Direction) -> Option<Function> {
        Some(match (granule, swaps, direction) {
            (Granule::Byte, _, Direction::Pack) => bytes::<true>,
            (Granule::Byte, _, Direction::Unpack) => bytes::<false>,
            (Granule::Word, false, Direction::Pack) => words::<true>,
            (Granule::Word, false, Direction::Unpack) => words::<false>,
            (Granule::Word, true, Direction::Pack) => swapped_words::<true>,
            (Granule::Word, true, Direction::Unpack) => swapped_words::<false>,
        })
    }
}

impl Reverse for Avx512 {
    #[inline(always)]
    unsafe fn reverse<const UNIT: usize, const LEN: usize>(dst: *mut u8, src: *const u8) {
        if LEN != 64 {
            // SAFETY: as promised by the caller.
            return unsafe { Avx2::reverse::<UNIT, LEN>(dst, src) };
        }
        // SAFETY: a row of 64 bytes.
        unsafe { _mm512_storeu_si512(dst.cast(), words::reversed::<UNIT>(_mm512_loadu_si512(src.cast()))) }
    }
}

masked_permute!(bytes, Bytes, "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi");
masked_permute!(words, Words, "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl");
masked_permute!(swapped_words, SwappedWords, "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl");

/// 64 bytes; needs VBMI.
struct Bytes;

/// Sixteen words of 4 bytes.
struct Words;

/// Whole vectors of words, shuffled inside themselves.
struct SwappedWords;

macro_rules! lanes {
    ($lanes:ident, $unit:literal, $mask:ty, $load:ident, $store:ident, $permute:ident $(, $shuffle:ident)?) => {
        // SAFETY of the functions: the callers promise the instructions and the lanes, and masked accesses touch only lanes in the
        // mask.
        impl masked::Lanes for $lanes {
            const UNIT: u64 = $unit;
            const BYTES: u64 = 64;
            type Vector = __m512i;
            type Places = [__m512i; 2];

            #[inline(always)]
            unsafe fn load(p: *const u8, mask: u64) -> __m512i {
                // SAFETY: as above.
                unsafe { $load(mask as $mask, p.cast()) }
            }
            #[inline(always)]
            unsafe fn store(p: *mut u8, mask: u64, v: __m512i) {
                // SAFETY: as above.
                unsafe { $store(p.cast(), mask as $mask, v) }
            }
            #[inline(always)]
            unsafe fn load_all(p: *const u8) -> __m512i {
                // SAFETY: as above.
                unsafe { _mm512_loadu_si512(p.cast()) }
            }
            #[inline(always)]
            unsafe fn store_first<const BYTES: usize>(p: *mut u8, v: __m512i) {
                // SAFETY: as above.
                unsafe { permute::store_first::<BYTES>(p, v) }
            }
            #[inline(always)]
            unsafe fn places(lanes: &[u8; 64], within: &[u8; 64]) -> [__m512i; 2] {
                // SAFETY: as above, of 64 bytes each.
                unsafe { [lanes, within].map(|places| _mm512_loadu_si512(places.as_ptr().cast())) }
            }
            #[inline(always)]
            unsafe fn permute(v: __m512i, [lanes, _within]: [__m512i; 2]) -> __m512i {
                // SAFETY: as above.
                unsafe {
                    let v = $permute(lanes, v);
                    $(let v = $shuffle(v, _within);)?
                    v
                }
            }
        }
    };
}

lanes!(Bytes, 1, u64, _mm512_maskz_loadu_epi8, _mm512_mask_storeu_epi8, _mm512_permutexvar_epi8);
lanes!(Words, 4, u16, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32, _mm512_permutexvar_epi32);
lanes! {
    SwappedWords, 4, u16, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32, _mm512_permutexvar_epi32,
    _mm512_shuffle_epi8
}

/// Copies a block of up to 64 bytes.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw")]
unsafe fn copy_masked(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: bytes whose mask bit is 0 are neither read nor written; the others lie below `len`.
    unsafe {
        let mask = _bzhi_u64(u64::MAX, len as u32);
        _mm512_mask_storeu_epi8(dst.cast(), mask, _mm512_maskz_loadu_epi8(mask, src.cast()));
    }
}

/// Four blocks of 16 bytes in one store (96 against 90 GB/s in two; Sapphire Rapids).
///
/// # Safety
/// Each block of `a` is readable, 64 bytes are writable at `dst`, without overlap.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn gather_4x16(dst: *mut u8, a: [*const u8; 4]) {
    // SAFETY: as promised by the caller.
    unsafe {
        let pair = |i: usize| {
            let low = _mm256_castsi128_si256(_mm_loadu_si128(a[i].cast()));
            _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(a[i + 1].cast()))
        };
        let all = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(pair(0)), pair(2));
        _mm512_storeu_si512(dst.cast(), all);
    }
}

/// Where word `8 * store + lane` of four blocks of `k` words comes from when block `with` is merged in: lanes of that block
/// are taken from the second operand (8 and up), others stay. `first` is the block that the first operand still holds as
/// loaded, or none (4) once it holds merged words.
const fn merge(k: usize, store: usize, first: usize, with: usize) -> [i32; 8] {
    let mut lanes = [0; 8];
    let mut lane = 0;
    while lane < 8 {
        let word = 8 * store + lane;
        let (block, at) = (word / k, word % k);
        lanes[lane] = if block == with {
            8 + at as i32
        } else if block == first {
            at as i32
        } else {
            lane as i32
        };
        lane += 1;
    }
    lanes
}

/// The merges of every store of four blocks of `K` words: block pairs, then up to two more blocks.
struct Merges<const K: usize>;

impl<const K: usize> Merges<K> {
    const TABLE: [[[i32; 8]; 3]; 4] = {
        let mut table = [[[0; 8]; 3]; 4];
        let mut store = 0;
        while store < 4 {
            let first = 8 * store / K;
            table[store] = [
                merge(K, store, first, first + 1),
                merge(K, store, 4, first + 2),
                merge(K, store, 4, first + 3),
            ];
            store += 1;
        }
        table
    };
}

/// Four blocks of `K` 4-byte words, `K` from 3 to 7: one masked load each, merged to full vectors.
///
/// # Safety
/// Each block of `a` is readable, `16 * K` bytes are writable at `dst`, without overlap.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn gather_words<const K: usize>(dst: *mut u8, a: [*const u8; 4]) {
    const { assert!(3 <= K && K <= 7) };
    // SAFETY: the loads read `K` words of a block. Word `w` of the destination is word `w % K` of block `w / K`; stores of 8
    // words lie below `4 * K`, and the last 4 words, where `4 * K` is no multiple of 8, are stored alone.
    unsafe {
        let mask = (1 << K) - 1;
        // Written out: `map` of an array is not reliably inlined.
        let block = |i: usize| _mm256_maskz_loadu_epi32(mask, a[i].cast());
        let blocks = [block(0), block(1), block(2), block(3)];
        let mut store = 0;
        while 8 * store < 4 * K {
            let first = 8 * store / K;
            let last = if 8 * store + 7 < 4 * K { (8 * store + 7) / K } else { 3 };
            let mut v = blocks[first];
            let mut with = first + 1;
            while with <= last {
                let lanes: __m256i =
                    _mm256_loadu_si256(Merges::<K>::TABLE[store][with - first - 1].as_ptr().cast());
                v = _mm256_permutex2var_epi32(v, lanes, blocks[with]);
                with += 1;
            }
            if 8 * store + 8 <= 4 * K {
                _mm256_storeu_si256(dst.add(32 * store).cast(), v);
            } else {
                if first == 3 {
                    // Only the end of the last block is left: move it to the front.
                    let lanes = _mm256_loadu_si256(Last::<K>::LANES.as_ptr().cast());
                    v = _mm256_permutex2var_epi32(v, lanes, v);
                }
                _mm_storeu_si128(dst.add(32 * store).cast(), _mm256_castsi256_si128(v));
            }
            store += 1;
        }
    }
}

/// The last four words of a block of `K`.
struct Last<const K: usize>;

impl<const K: usize> Last<K> {
    const LANES: [i32; 8] = {
        let k = K as i32;
        [k - 4, k - 3, k - 2, k - 1, 0, 0, 0, 0]
    };
}

/// Copies one block of `LEN` bytes, 9 to 31, by one load of 16 or 32 bytes and one store under a mask.
///
/// # Safety
/// 16 bytes (32 from `LEN = 17` on) readable at `src`, `LEN` bytes writable at `dst`, without overlap.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn store_masked<const LEN: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: bytes whose mask bit is 0 are not written.
    unsafe {
        if LEN <= 16 {
            _mm_mask_storeu_epi8(dst.cast(), ((1u32 << LEN) - 1) as u16, _mm_loadu_si128(src.cast()));
        } else if LEN < 32 {
            _mm256_mask_storeu_epi8(dst.cast(), (1u32 << LEN) - 1, _mm256_loadu_si256(src.cast()));
        }
    }
}
