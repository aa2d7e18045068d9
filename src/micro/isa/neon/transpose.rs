//! Code that transposes square blocks of a matrix in NEON registers. Rows are loaded and stored in
//! pairs of registers; in between, `zip` moves the elements to their places.
//!
//! Number of instructions of the inner loop for 16 elements, as the compiler writes it, first in
//! portable code and then in the code of this file: 46 and 21 for elements of 4 B, 46 and 29 for 8
//! B, 46 and 28 for 16 B, 78 and 46 for 32 B, 142 and 78 for 64 B. These loops have not been timed
//! on any machine.

use std::arch::aarch64::{
    uint8x16_t, uint32x4_t, vld1q_u8, vld1q_u32, vld1q_u64, vreinterpretq_u32_u64, vreinterpretq_u64_u32,
    vst1q_u8, vst1q_u32, vst1q_u64, vzip1q_u32, vzip1q_u64, vzip2q_u32, vzip2q_u64,
};

/// Transposes a square of a matrix: eight rows of eight elements of 4 bytes each.
///
/// # Safety
/// The elements must be readable at `src`, in rows that begin `src_row` bytes apart, and writable
/// at `dst`, in rows that begin `dst_row` bytes apart. The source must not overlap the destination.
#[inline(always)]
pub(super) unsafe fn of_4(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
    // Each iteration moves four columns of eight rows, so that each row that it stores to `dst` is
    // a pair of registers.
    for c in [0, 4] {
        let from = |r: isize| src.wrapping_offset(r * src_row + 4 * c).cast::<u32>();
        let to = |k: isize| dst.wrapping_offset((c + k) * dst_row).cast::<u32>();
        // SAFETY: the accesses are four columns of eight elements in `src`, and the four rows of
        // `dst` that they become, which the caller promises.
        unsafe {
            let low =
                columns([vld1q_u32(from(0)), vld1q_u32(from(1)), vld1q_u32(from(2)), vld1q_u32(from(3))]);
            let high =
                columns([vld1q_u32(from(4)), vld1q_u32(from(5)), vld1q_u32(from(6)), vld1q_u32(from(7))]);
            for k in 0..4 {
                vst1q_u32(to(k), low[k as usize]);
                vst1q_u32(to(k).add(4), high[k as usize]);
            }
        }
    }
}

/// Transposes a square of four rows of four words in registers: returns its four columns.
#[inline(always)]
fn columns([a, b, c, d]: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
    // SAFETY: every aarch64 machine has the instructions.
    unsafe {
        let words = |x: uint32x4_t| vreinterpretq_u64_u32(x);
        let (ab, cd) = (words(vzip1q_u32(a, b)), words(vzip1q_u32(c, d)));
        let (ab_high, cd_high) = (words(vzip2q_u32(a, b)), words(vzip2q_u32(c, d)));
        [
            vreinterpretq_u32_u64(vzip1q_u64(ab, cd)),
            vreinterpretq_u32_u64(vzip2q_u64(ab, cd)),
            vreinterpretq_u32_u64(vzip1q_u64(ab_high, cd_high)),
            vreinterpretq_u32_u64(vzip2q_u64(ab_high, cd_high)),
        ]
    }
}

/// Transposes a square of a matrix: four rows of four elements of 8 bytes each.
///
/// # Safety
/// The elements must be readable at `src`, in rows that begin `src_row` bytes apart, and writable
/// at `dst`, in rows that begin `dst_row` bytes apart. The source must not overlap the destination.
#[inline(always)]
pub(super) unsafe fn of_8(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
    let from = |r: isize, c: usize| src.wrapping_offset(r * src_row).wrapping_add(8 * c).cast::<u64>();
    let to = |c: isize, r: usize| dst.wrapping_offset(c * dst_row).wrapping_add(8 * r).cast::<u64>();
    // SAFETY: the accesses are the four rows of four elements on both sides, which the caller
    // promises.
    unsafe {
        // The two loads are written out as the elements of an array, because `map` of an array is
        // not reliably inlined.
        let row = |r: isize| [vld1q_u64(from(r, 0)), vld1q_u64(from(r, 2))];
        let (a, b, c, d) = (row(0), row(1), row(2), row(3));
        for half in [0, 1] {
            let k = 2 * half as isize;
            vst1q_u64(to(k, 0), vzip1q_u64(a[half], b[half]));
            vst1q_u64(to(k, 2), vzip1q_u64(c[half], d[half]));
            vst1q_u64(to(k + 1, 0), vzip2q_u64(a[half], b[half]));
            vst1q_u64(to(k + 1, 2), vzip2q_u64(c[half], d[half]));
        }
    }
}

/// Transposes a square of a matrix: four rows of four elements of 16 bytes each.
///
/// # Safety
/// The elements must be readable at `src`, in rows that begin `src_row` bytes apart, and writable
/// at `dst`, in rows that begin `dst_row` bytes apart. The source must not overlap the destination.
#[inline(always)]
pub(super) unsafe fn of_16(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
    // Each iteration moves two columns. It loads a pair of registers from each row, and stores a
    // pair of registers to each of the two rows that the columns become.
    for c in [0, 2] {
        let from = |r: isize, k: usize| src.wrapping_offset(r * src_row).wrapping_add(16 * (c + k));
        let to = |k: usize| dst.wrapping_offset((c + k) as isize * dst_row);
        // SAFETY: the accesses are two columns of four elements in `src`, and the two rows of `dst`
        // that they become, which the caller promises.
        unsafe {
            let row = |r: isize| [vld1q_u8(from(r, 0)), vld1q_u8(from(r, 1))];
            let rows: [[uint8x16_t; 2]; 4] = [row(0), row(1), row(2), row(3)];
            for k in [0, 1] {
                for (r, row) in rows.iter().enumerate() {
                    vst1q_u8(to(k).add(16 * r), row[k]);
                }
            }
        }
    }
}
