//! Square blocks through AVX2 registers. The halves of a register are loaded apart, which transposes 2 by 2 on the way in.

use std::arch::x86_64::{
    __m256, __m256i, _mm_loadu_ps, _mm_loadu_si128, _mm256_castps128_ps256, _mm256_castsi128_si256,
    _mm256_insertf128_ps, _mm256_inserti128_si256, _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_storeu_si256,
    _mm256_unpackhi_epi64, _mm256_unpackhi_ps, _mm256_unpacklo_epi64, _mm256_unpacklo_ps,
};

use super::{Function, Square, Strides, all};

struct Of4;
struct Of8;
struct Of16;

/// 16 bytes at each of two addresses.
///
/// # Safety
/// Both are readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(low: *const u8, high: *const u8) -> __m256i {
    // SAFETY: as promised by the caller.
    unsafe {
        let low = _mm256_castsi128_si256(_mm_loadu_si128(low.cast()));
        _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(high.cast()))
    }
}

impl Square for Of16 {
    const SIDE: usize = 4;

    #[inline(always)]
    unsafe fn transpose(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        let at = |r: isize, c: isize| src.wrapping_offset(r * src_row + 16 * c);
        for c in 0..4 {
            let d = dst.wrapping_offset(c * dst_row);
            // SAFETY: four elements of column `c`, and the row of `dst` that they make.
            unsafe {
                _mm256_storeu_si256(d.cast(), load(at(0, c), at(1, c)));
                _mm256_storeu_si256(d.add(32).cast(), load(at(2, c), at(3, c)));
            }
        }
    }
}

impl Square for Of8 {
    const SIDE: usize = 8;

    #[inline(always)]
    unsafe fn transpose(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        // Four blocks of 4 by 4, so that whole lines are used up on both sides.
        for (r, c) in [(0, 0), (4, 0), (0, 4), (4, 4)] {
            let at = |i: isize, k: isize| src.wrapping_offset((r + i) * src_row + 8 * (c + k));
            let to = |k: isize| dst.wrapping_offset((c + k) * dst_row + 8 * r);
            for k in [0, 2] {
                // SAFETY: two columns of four elements, and the two rows of `dst` that they make.
                unsafe {
                    let (even, odd) = (load(at(0, k), at(2, k)), load(at(1, k), at(3, k)));
                    _mm256_storeu_si256(to(k).cast(), _mm256_unpacklo_epi64(even, odd));
                    _mm256_storeu_si256(to(k + 1).cast(), _mm256_unpackhi_epi64(even, odd));
                }
            }
        }
    }
}

impl Square for Of4 {
    const SIDE: usize = 8;

    #[inline(always)]
    unsafe fn transpose(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        let row = |r: isize, c: isize| src.wrapping_offset(r * src_row + 4 * c);
        for c in [0, 4] {
            let to = |k: isize| dst.wrapping_offset((c + k) * dst_row);
            // SAFETY: four columns of eight elements, and the four rows of `dst` that they make.
            unsafe {
                let load = |r: isize| -> __m256 {
                    let low = _mm256_castps128_ps256(_mm_loadu_ps(row(r, c).cast()));
                    _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(row(r + 4, c).cast()))
                };
                let (a, b, e, f) = (load(0), load(1), load(2), load(3));
                let (ab, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (ef, ef_high) = (_mm256_unpacklo_ps(e, f), _mm256_unpackhi_ps(e, f));
                _mm256_storeu_ps(to(0).cast(), _mm256_shuffle_ps::<0x44>(ab, ef));
                _mm256_storeu_ps(to(1).cast(), _mm256_shuffle_ps::<0xee>(ab, ef));
                _mm256_storeu_ps(to(2).cast(), _mm256_shuffle_ps::<0x44>(ab_high, ef_high));
                _mm256_storeu_ps(to(3).cast(), _mm256_shuffle_ps::<0xee>(ab_high, ef_high));
            }
        }
    }
}

function!(of_4<>, 4, Of4, #[target_feature(enable = "avx2,bmi1,bmi2,fma")]);
function!(of_8<>, 8, Of8, #[target_feature(enable = "avx2,bmi1,bmi2,fma")]);
function!(of_16<>, 16, Of16, #[target_feature(enable = "avx2,bmi1,bmi2,fma")]);

/// The function for elements of `len` bytes.
pub(super) fn get(len: u16) -> Option<Function> {
    match len {
        4 => Some(of_4),
        8 => Some(of_8),
        16 => Some(of_16),
        _ => None,
    }
}
