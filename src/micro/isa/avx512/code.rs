//! AVX-512 code that combines scattered blocks into full vectors, and code that loads and stores
//! single blocks under a mask.
//!
//! Masked loads read exactly the block, and masked stores write exactly the block, each in one
//! access. This needs one address translation and one cache line where plain pieces would need two
//! (24 B blocks 4160 B apart: packed at 52 instead of 33 GB/s, unpacked at 69 instead of 38;
//! Sapphire Rapids).

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
        // SAFETY: the caller promises as many blocks as `GATHERED` lists for `LEN`. The functions
        // called here take exactly these blocks and write exactly their bytes.
        unsafe {
            let at = |i: usize| src.address(i).cast_const();
            let four = || [at(0), at(1), at(2), at(3)];
            match LEN {
                16 => gather_4x16(dst, four()),
                20 => gather_words::<5>(dst, four()),
                24 => gather_words::<6>(dst, four()),
                28 => gather_words::<7>(dst, four()),
                // For other lengths the code of AVX2 is used. Masked loads would be slower: 12 B
                // blocks at a stride of 24 in L2 pack at 20 instead of 24 GB/s (Sapphire Rapids).
                _ => Avx2::gather::<LEN>(dst, src),
            }
        }
    }

    #[inline(always)]
    unsafe fn scatter<const LEN: usize>(dst: &impl Cursor, src: *const u8) {
        // SAFETY: the conditions of the function of AVX2 are those of this one.
        unsafe { Avx2::scatter::<LEN>(dst, src) }
    }

    #[inline(always)]
    unsafe fn store_masked<const LEN: usize>(dst: *mut u8, src: *const u8) {
        // SAFETY: the caller promises `LEN` bytes, rounded up to a power of two, at `src`, which
        // are the 16 or 32 bytes that are loaded, and `LEN` bytes at `dst`.
        unsafe { store_masked::<LEN>(dst, src) }
    }

    #[inline(always)]
    unsafe fn copy_masked(dst: *mut u8, src: *const u8, len: usize) {
        // SAFETY: the conditions of the function below are those of this one.
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
        // SAFETY: the conditions of `near` are those of this function.
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
        // SAFETY: the caller promises `n` blocks at these strides. Functions that need a dense side
        // are called only if the stride on that side is `LEN`.
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
        // SAFETY: the caller promises the elements of the block on both sides; each function moves
        // the square of elements of its length, and `in_pieces` moves a block of elements without
        // such a square.
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
        // SAFETY: the conditions of the function of AVX2 are those of this one.
        unsafe { Avx2::stream(dst, src, lines) }
    }

    #[inline(always)]
    unsafe fn gather_reversed<const UNIT: usize>(dst: *mut u8, src: &impl Cursor) {
        // SAFETY: the conditions of the function of AVX2 are those of this one.
        unsafe { Avx2::gather_reversed::<UNIT>(dst, src) }
    }

    #[inline(always)]
    unsafe fn scatter_reversed<const UNIT: usize>(dst: &impl Cursor, src: *const u8) {
        // SAFETY: the conditions of the function of AVX2 are those of this one.
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
        // SAFETY: the caller promises `n` blocks of `len` bytes, which are whole units, at these
        // strides. Functions that need a dense side are called only if the stride on that side is
        // `len`.
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
            // SAFETY: the conditions of the function of AVX2 are those of this one.
            return unsafe { Avx2::reverse::<UNIT, LEN>(dst, src) };
        }
        // SAFETY: the caller promises `LEN` bytes on both sides, which here are 64.
        unsafe { _mm512_storeu_si512(dst.cast(), words::reversed::<UNIT>(_mm512_loadu_si512(src.cast()))) }
    }
}

masked_permute!(bytes, Bytes, "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi");
masked_permute!(words, Words, "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl");
masked_permute!(swapped_words, SwappedWords, "avx2,bmi1,bmi2,avx512f,avx512bw,avx512dq,avx512vl");

/// Permutation whose lanes (the parts that it moves) are the 64 bytes of a vector, which needs
/// VBMI.
struct Bytes;

/// Permutation whose lanes (the parts that it moves) are the sixteen words of 4 bytes of a vector.
struct Words;

/// Permutation whose lanes (the parts that it moves) are the sixteen words of 4 bytes of a vector.
/// The bytes inside each word are then shuffled too.
struct SwappedWords;

macro_rules! lanes {
    ($lanes:ident, $unit:literal, $mask:ty, $load:ident, $store:ident, $permute:ident $(, $shuffle:ident)?) => {
        // SAFETY of the functions: callers promise the instructions and the lanes or vectors, and
        // masked accesses do not touch lanes that are not in the mask.
        impl masked::Lanes for $lanes {
            const UNIT: u64 = $unit;
            const BYTES: u64 = 64;
            type Vector = __m512i;
            type Places = [__m512i; 2];

            #[inline(always)]
            unsafe fn load(p: *const u8, mask: u64) -> __m512i {
                // SAFETY: the caller promises that the lanes in `mask` are readable; no others are
                // touched.
                unsafe { $load(mask as $mask, p.cast()) }
            }
            #[inline(always)]
            unsafe fn store(p: *mut u8, mask: u64, v: __m512i) {
                // SAFETY: the caller promises that the lanes in `mask` are writable; no others are
                // touched.
                unsafe { $store(p.cast(), mask as $mask, v) }
            }
            #[inline(always)]
            unsafe fn load_all(p: *const u8) -> __m512i {
                // SAFETY: the caller promises a readable vector of 64 bytes.
                unsafe { _mm512_loadu_si512(p.cast()) }
            }
            #[inline(always)]
            unsafe fn store_first<const BYTES: usize>(p: *mut u8, v: __m512i) {
                // SAFETY: the caller promises a writable vector of 64 bytes.
                unsafe { permute::store_first::<BYTES>(p, v) }
            }
            #[inline(always)]
            unsafe fn places(lanes: &[u8; 64], within: &[u8; 64]) -> [__m512i; 2] {
                // SAFETY: both tables have 64 bytes. The caller promises the instructions.
                unsafe { [lanes, within].map(|places| _mm512_loadu_si512(places.as_ptr().cast())) }
            }
            #[inline(always)]
            unsafe fn permute(v: __m512i, [lanes, _within]: [__m512i; 2]) -> __m512i {
                // SAFETY: the caller promises the instructions.
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

/// Copies a block of up to 64 bytes by one masked load and one masked store.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline]
#[target_feature(enable = "bmi2,avx512f,avx512bw")]
unsafe fn copy_masked(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: bytes whose mask bit is 0 are neither read nor written. The mask has a bit for each
    // byte below `len`, which the caller promises on both sides.
    unsafe {
        let mask = _bzhi_u64(u64::MAX, len as u32);
        _mm512_mask_storeu_epi8(dst.cast(), mask, _mm512_maskz_loadu_epi8(mask, src.cast()));
    }
}

/// Packs four blocks of 16 bytes with one store of 64 bytes (at 96 GB/s; two stores reach 90 GB/s;
/// Sapphire Rapids).
///
/// # Safety
/// Each block whose address is in `a` must be readable, and 64 bytes must be writable at `dst`. The
/// source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn gather_4x16(dst: *mut u8, a: [*const u8; 4]) {
    // SAFETY: the caller promises four readable blocks of 16 bytes and 64 writable bytes; no access
    // needs alignment.
    unsafe {
        let pair = |i: usize| {
            let low = _mm256_castsi128_si256(_mm_loadu_si128(a[i].cast()));
            _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(a[i + 1].cast()))
        };
        let all = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(pair(0)), pair(2));
        _mm512_storeu_si512(dst.cast(), all);
    }
}

/// Returns the word indices of a permutation of two registers. Four blocks of `k` words are packed
/// in stores of 8 words, and the permutation merges the words of block `with` into the register for
/// store number `store`. Entry `lane` of the result is for word `8 * store + lane` of the four
/// blocks. Words of block `with` come from the second operand (indices from 8 on), and all others
/// come from the first operand. `first` is the block that the first operand holds as it was loaded.
/// `first` is 4 if the first operand already holds merged words; these stay where they are.
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

/// Word indices of the permutations that merge four blocks of `K` words into the registers that are
/// stored. For each store there are three permutations: the first merges the first two blocks of
/// the store, and the next ones merge up to two more blocks.
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

/// Packs four blocks of `K` words of 4 bytes, with `K` from 3 to 7. Each block is loaded under a
/// mask, and the loaded blocks are merged to full vectors.
///
/// # Safety
/// Each block whose address is in `a` must be readable, and `16 * K` bytes must be writable at
/// `dst`. The source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn gather_words<const K: usize>(dst: *mut u8, a: [*const u8; 4]) {
    const { assert!(3 <= K && K <= 7) };
    // SAFETY: each load reads the `K` words of one block. Word `w` of the destination is word
    // `w % K` of block `w / K`. Stores of 8 words end at or before word `4 * K`. If `4 * K` is not
    // a multiple of 8, the last 4 words have a store of their own.
    unsafe {
        let mask = (1 << K) - 1;
        // The array is written out element by element, because `map` of an array is not reliably
        // inlined.
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
                    // Only the end of the last block is left. A permutation moves it to the lowest
                    // words of the register.
                    let lanes = _mm256_loadu_si256(Last::<K>::LANES.as_ptr().cast());
                    v = _mm256_permutex2var_epi32(v, lanes, v);
                }
                _mm_storeu_si128(dst.add(32 * store).cast(), _mm256_castsi256_si128(v));
            }
            store += 1;
        }
    }
}

/// Word indices of a permutation that moves the last four words of a block of `K` words to the
/// lowest words of a register.
struct Last<const K: usize>;

impl<const K: usize> Last<K> {
    const LANES: [i32; 8] = {
        let k = K as i32;
        [k - 4, k - 3, k - 2, k - 1, 0, 0, 0, 0]
    };
}

/// Copies one block of `LEN` bytes, 9 to 31, by one load of 16 or 32 bytes and one masked store.
/// For blocks of 32 bytes and more the function does nothing.
///
/// # Safety
/// 16 bytes, or 32 if `LEN` is greater than 16, must be readable at `src`, and `LEN` bytes writable
/// at `dst`. The source must not overlap the destination.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn store_masked<const LEN: usize>(dst: *mut u8, src: *const u8) {
    // SAFETY: the caller promises the bytes that are loaded. The mask has `LEN` bits, and bytes
    // whose mask bit is 0 are not written.
    unsafe {
        if LEN <= 16 {
            _mm_mask_storeu_epi8(dst.cast(), ((1u32 << LEN) - 1) as u16, _mm_loadu_si128(src.cast()));
        } else if LEN < 32 {
            _mm256_mask_storeu_epi8(dst.cast(), (1u32 << LEN) - 1, _mm256_loadu_si256(src.cast()));
        }
    }
}
