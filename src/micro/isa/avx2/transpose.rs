//! Code that transposes square blocks of a matrix in AVX2 registers. For elements of 4 and 8 bytes,
//! the two halves of a register are loaded from different rows, so that the loads do part of the
//! transpose.

use std::arch::x86_64::{
    __m256, __m256i, _mm_loadu_ps, _mm_loadu_si128, _mm256_castps128_ps256, _mm256_castsi128_si256,
    _mm256_insertf128_ps, _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_permute2x128_si256,
    _mm256_shuffle_ps, _mm256_storeu_ps, _mm256_storeu_si256, _mm256_unpackhi_epi64, _mm256_unpackhi_ps,
    _mm256_unpacklo_epi64, _mm256_unpacklo_ps,
};

/// Loads 16 bytes from each of two addresses.
///
/// # Safety
/// 16 bytes must be readable at `low` and at `high`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(low: *const u8, high: *const u8) -> __m256i {
    // SAFETY: the caller promises 16 readable bytes at both addresses; the loads need no alignment.
    unsafe {
        let low = _mm256_castsi128_si256(_mm_loadu_si128(low.cast()));
        _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(high.cast()))
    }
}

/// Transposes a square of a matrix: four rows of four elements of 16 bytes each.
///
/// # Safety
/// The elements must be readable at `src`, in rows that begin `src_row` bytes apart, and writable
/// at `dst`, in rows that begin `dst_row` bytes apart. The source must not overlap the destination.
#[inline(always)]
pub(super) unsafe fn of_16(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
    // SAFETY: the accesses are the four rows of four elements in `src`, and the four rows of `dst`
    // that their columns become, which the caller promises.
    unsafe {
        let half = |r: isize, c: isize| _mm256_loadu_si256(src.wrapping_offset(r * src_row + 16 * c).cast());
        let to = |c: isize| dst.wrapping_offset(c * dst_row);
        // Everything is loaded before the first store. If a load came after a store, it could wait
        // for this store if both are at the same offset in their pages.
        let [a, b, c, d] = [half(0, 0), half(1, 0), half(2, 0), half(3, 0)];
        let [e, f, g, h] = [half(0, 2), half(1, 2), half(2, 2), half(3, 2)];
        for (k, [a, b, c, d]) in [(0, [a, b, c, d]), (2, [e, f, g, h])] {
            _mm256_storeu_si256(to(k).cast(), _mm256_permute2x128_si256::<0x20>(a, b));
            _mm256_storeu_si256(to(k).add(32).cast(), _mm256_permute2x128_si256::<0x20>(c, d));
            _mm256_storeu_si256(to(k + 1).cast(), _mm256_permute2x128_si256::<0x31>(a, b));
            _mm256_storeu_si256(to(k + 1).add(32).cast(), _mm256_permute2x128_si256::<0x31>(c, d));
        }
    }
}

/// Transposes a square of a matrix: eight rows of eight elements of 8 bytes each.
///
/// # Safety
/// The elements must be readable at `src`, in rows that begin `src_row` bytes apart, and writable
/// at `dst`, in rows that begin `dst_row` bytes apart. The source must not overlap the destination.
#[inline(always)]
pub(super) unsafe fn of_8(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
    for c in [0, 4] {
        let at = |r: isize, k: isize| src.wrapping_offset(r * src_row + 8 * (c + k));
        let to = |k: isize, r: usize| dst.wrapping_offset((c + k) * dst_row).wrapping_add(8 * r);
        // SAFETY: the accesses are four columns of eight elements in `src`, and the four rows of
        // `dst` that they become, which the caller promises.
        unsafe {
            // Everything is loaded before the first store, because a load after a store could wait
            // for this store if both are at the same offset in their pages. `four` loads two
            // columns of four rows: first the two even rows, then the two odd rows.
            let four = |r: isize, k: isize| (load(at(r, k), at(r + 2, k)), load(at(r + 1, k), at(r + 3, k)));
            let [a, b, e, f] = [four(0, 0), four(4, 0), four(0, 2), four(4, 2)];
            for (k, [(even, odd), (even_2, odd_2)]) in [(0, [a, b]), (2, [e, f])] {
                _mm256_storeu_si256(to(k, 0).cast(), _mm256_unpacklo_epi64(even, odd));
                _mm256_storeu_si256(to(k, 4).cast(), _mm256_unpacklo_epi64(even_2, odd_2));
                _mm256_storeu_si256(to(k + 1, 0).cast(), _mm256_unpackhi_epi64(even, odd));
                _mm256_storeu_si256(to(k + 1, 4).cast(), _mm256_unpackhi_epi64(even_2, odd_2));
            }
        }
    }
}

/// Transposes a square of a matrix: eight rows of eight elements of 4 bytes each.
///
/// # Safety
/// The elements must be readable at `src`, in rows that begin `src_row` bytes apart, and writable
/// at `dst`, in rows that begin `dst_row` bytes apart. The source must not overlap the destination.
#[inline(always)]
pub(super) unsafe fn of_4(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
    let row = |r: isize, c: isize| src.wrapping_offset(r * src_row + 4 * c);
    for c in [0, 4] {
        let to = |k: isize| dst.wrapping_offset((c + k) * dst_row);
        // SAFETY: the accesses are four columns of eight elements in `src`, and the four rows of
        // `dst` that they become, which the caller promises.
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
