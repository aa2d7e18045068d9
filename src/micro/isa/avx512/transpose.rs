//! Code that transposes square blocks of a matrix in AVX-512 registers. Every store writes 64 bytes
//! of one row of the destination.

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm512_castps_si512, _mm512_castsi128_si512, _mm512_castsi512_ps,
    _mm512_inserti32x4, _mm512_loadu_si512, _mm512_shuffle_i64x2, _mm512_shuffle_ps, _mm512_storeu_si512,
    _mm512_unpackhi_epi64, _mm512_unpackhi_ps, _mm512_unpacklo_epi64, _mm512_unpacklo_ps,
};

/// Loads 64 bytes.
///
/// # Safety
/// 64 bytes must be readable at `p`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(p: *const u8) -> __m512i {
    // SAFETY: the caller promises 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(p.cast()) }
}

/// Stores 64 bytes.
///
/// # Safety
/// 64 bytes must be writable at `p`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store(p: *mut u8, v: __m512i) {
    // SAFETY: the caller promises 64 writable bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512(p.cast(), v) }
}

/// Loads 16 bytes from each of four places, which are `step` bytes apart.
///
/// # Safety
/// 16 bytes must be readable at each place.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn quarters(p: *const u8, step: isize) -> __m512i {
    // SAFETY: the caller promises 16 readable bytes at the four places; the loads need no
    // alignment.
    unsafe {
        let at = |i: isize| _mm_loadu_si128(p.wrapping_offset(i * step).cast());
        let v = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(at(0)), at(1));
        _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(v, at(2)), at(3))
    }
}

/// Transposes a square of 4 by 4 pieces of 16 bytes; each register is one row.
#[inline]
#[target_feature(enable = "avx512f")]
fn pieces([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab, ab_high) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0xee>(a, b));
    let (cd, cd_high) = (_mm512_shuffle_i64x2::<0x44>(c, d), _mm512_shuffle_i64x2::<0xee>(c, d));
    [
        _mm512_shuffle_i64x2::<0x88>(ab, cd),
        _mm512_shuffle_i64x2::<0xdd>(ab, cd),
        _mm512_shuffle_i64x2::<0x88>(ab_high, cd_high),
        _mm512_shuffle_i64x2::<0xdd>(ab_high, cd_high),
    ]
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
        let row = |r: isize| load(src.wrapping_offset(r * src_row));
        let [a, b, c, d] = pieces([row(0), row(1), row(2), row(3)]);
        let to = |c: isize| dst.wrapping_offset(c * dst_row);
        store(to(0), a);
        store(to(1), b);
        store(to(2), c);
        store(to(3), d);
    }
}

/// Transposes a square of a matrix: eight rows of eight elements of 8 bytes each.
///
/// # Safety
/// The elements must be readable at `src`, in rows that begin `src_row` bytes apart, and writable
/// at `dst`, in rows that begin `dst_row` bytes apart. The source must not overlap the destination.
#[inline(always)]
pub(super) unsafe fn of_8(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
    // SAFETY: the accesses are the eight rows of eight elements in `src`, and the eight rows of
    // `dst` that their columns become, which the caller promises.
    unsafe {
        let pair = |r: isize| {
            let (a, b) =
                (load(src.wrapping_offset(r * src_row)), load(src.wrapping_offset((r + 1) * src_row)));
            (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
        };
        let (p, q, r, s) = (pair(0), pair(2), pair(4), pair(6));
        let to = |c: isize| dst.wrapping_offset(c * dst_row);
        for (odd, four) in [(0, pieces([p.0, q.0, r.0, s.0])), (1, pieces([p.1, q.1, r.1, s.1]))] {
            store(to(odd), four[0]);
            store(to(odd + 2), four[1]);
            store(to(odd + 4), four[2]);
            store(to(odd + 6), four[3]);
        }
    }
}

/// Transposes a square of a matrix: sixteen rows of sixteen elements of 4 bytes each.
///
/// # Safety
/// The elements must be readable at `src`, in rows that begin `src_row` bytes apart, and writable
/// at `dst`, in rows that begin `dst_row` bytes apart. The source must not overlap the destination.
#[inline(always)]
pub(super) unsafe fn of_4(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
    for c in [0, 4, 8, 12] {
        // SAFETY: the accesses are four columns of sixteen elements in `src`, and the four rows of
        // `dst` that they become, which the caller promises.
        unsafe {
            let rows = |r: isize| {
                _mm512_castsi512_ps(quarters(src.wrapping_offset(r * src_row + 4 * c), 4 * src_row))
            };
            let (a, b, e, f) = (rows(0), rows(1), rows(2), rows(3));
            let (ab, ab_high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            let (ef, ef_high) = (_mm512_unpacklo_ps(e, f), _mm512_unpackhi_ps(e, f));
            let to = |k: isize| dst.wrapping_offset((c + k) * dst_row);
            store(to(0), _mm512_castps_si512(_mm512_shuffle_ps::<0x44>(ab, ef)));
            store(to(1), _mm512_castps_si512(_mm512_shuffle_ps::<0xee>(ab, ef)));
            store(to(2), _mm512_castps_si512(_mm512_shuffle_ps::<0x44>(ab_high, ef_high)));
            store(to(3), _mm512_castps_si512(_mm512_shuffle_ps::<0xee>(ab_high, ef_high)));
        }
    }
}
