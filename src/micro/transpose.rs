//! Transpose: a matrix of small elements whose rows become columns, by tiles.
//!
//! A column type walks memory at a large stride and touches a cache line again for each element in it; strides that are
//! multiples of a page's size evict it in between. Tiles use up what a line brings: small blocks go through registers, and
//! tiles of 512 bytes by 512 bytes keep to few pages on either side.
//!
//! Writes come in another order than the blocks', so this is for destinations without overlap only.

use super::block;
use crate::target::Level;

/// `(dst, src, rows, cols, dst_row, src_row, dst_step, src_step)`: for `r < rows` and `c < cols` the element at
/// `src + r * src_row + c * src_step` goes to `dst + c * dst_row + r * dst_step`. Strides are in bytes, of any sign. No two
/// destination elements overlap.
pub type Function = unsafe extern "C" fn(*mut u8, *const u8, u64, u64, i64, i64, i64, i64);

/// Where elements are: the last four arguments of [`Function`].
#[derive(Clone, Copy, Debug)]
pub struct Strides {
    /// From one source column to the next, in the destination.
    pub dst_row: i64,
    /// From one source row to the next, in the source.
    pub src_row: i64,
    /// From one source row to the next, in the destination.
    pub dst_step: i64,
    /// From one source column to the next, in the source.
    pub src_step: i64,
}

/// The meaning: the same bytes one by one, for elements of `len` bytes.
///
/// # Safety
/// Every byte of every source element is readable, of every destination element writable; the two sides do not overlap.
pub unsafe fn twin(dst: *mut u8, src: *const u8, (rows, cols): (u64, u64), s: Strides, len: u64) {
    for r in 0..rows as i64 {
        for c in 0..cols as i64 {
            for k in 0..len as isize {
                let d = dst.wrapping_offset((c * s.dst_row + r * s.dst_step) as isize + k);
                let s = src.wrapping_offset((r * s.src_row + c * s.src_step) as isize + k);
                // SAFETY: byte `k` of element `(r, c)`.
                unsafe { d.write(s.read()) }
            }
        }
    }
}

/// Rows and columns of a tile, in elements of `len` bytes.
///
/// 512 bytes: 1024 x 1024 elements of 16 B in rows of 16 KiB are transposed 3 to 7 times as fast as by two plain loops,
/// 8 B 10 times, 4 B 20 times; half and double the tile are no better at any of 64 to 1536 rows (Sapphire Rapids).
const fn tile(len: usize) -> usize {
    let side = 512 / len;
    if side > 64 {
        64
    } else if side < 8 {
        8
    } else {
        side
    }
}

/// A square block of elements, moved by registers.
trait Square {
    /// Elements of a side.
    const SIDE: usize;

    /// Transposes one block whose steps are dense.
    ///
    /// # Safety
    /// `SIDE` times `SIDE` elements are valid at `dst` by rows of `dst_row` and at `src` by rows of `src_row`; the machine has
    /// the instructions.
    unsafe fn transpose(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize);
}

/// Blocks of 4 elements by 4, one element after the other; any machine.
struct Plain<const LEN: usize>;

impl<const LEN: usize> Square for Plain<LEN> {
    const SIDE: usize = 4;

    #[inline(always)]
    unsafe fn transpose(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        for c in 0..4 {
            for r in 0..4 {
                let d = dst.wrapping_offset(c * dst_row).wrapping_add(r as usize * LEN);
                let s = src.wrapping_offset(r * src_row).wrapping_add(c as usize * LEN);
                // SAFETY: element `(r, c)` of the block.
                unsafe { block::constant::<LEN, 16>(d, s) };
            }
        }
    }
}

/// Moves all elements tile by tile, in blocks of `Q` where steps are dense.
///
/// # Safety
/// As [`twin`] with `len = LEN`; `Q` is of elements of that length, and the machine has its instructions.
#[inline(always)]
unsafe fn all<const LEN: usize, Q: Square>(
    dst: *mut u8,
    src: *const u8,
    rows: usize,
    cols: usize,
    s: Strides,
) {
    let [dst_row, src_row, dst_step, src_step] =
        [s.dst_row, s.src_row, s.dst_step, s.src_step].map(|s| s as isize);
    let dense = dst_step == LEN as isize && src_step == LEN as isize;
    let place = |r: usize, c: usize| {
        let (r, c) = (r as isize, c as isize);
        (
            dst.wrapping_offset(c.wrapping_mul(dst_row).wrapping_add(r.wrapping_mul(dst_step))),
            src.wrapping_offset(r.wrapping_mul(src_row).wrapping_add(c.wrapping_mul(src_step))),
        )
    };
    let each = |rs: std::ops::Range<usize>, cs: std::ops::Range<usize>| {
        for c in cs {
            for r in rs.clone() {
                let (d, s) = place(r, c);
                // SAFETY: element `(r, c)`, which is there.
                unsafe { block::constant::<LEN, 16>(d, s) };
            }
        }
    };
    let side = const { tile(LEN) };
    let mut r0 = 0;
    while r0 < rows {
        let r1 = rows.min(r0 + side);
        let mut c0 = 0;
        while c0 < cols {
            let c1 = cols.min(c0 + side);
            if !dense {
                each(r0..r1, c0..c1);
            } else {
                let (r2, c2) = (r0 + (r1 - r0) / Q::SIDE * Q::SIDE, c0 + (c1 - c0) / Q::SIDE * Q::SIDE);
                for c in (c0..c2).step_by(Q::SIDE) {
                    for r in (r0..r2).step_by(Q::SIDE) {
                        let (d, s) = place(r, c);
                        // SAFETY: a whole block lies within the tile.
                        unsafe { Q::transpose(d, s, dst_row, src_row) };
                    }
                }
                each(r2..r1, c0..c2);
                each(r0..r1, c2..c1);
            }
            c0 = c1;
        }
        r0 = r1;
    }
}

macro_rules! function {
    ($name:ident<$($len:ident)?>, $size:expr, $square:ty, $(#[$feature:meta])?) => {
        /// # Safety
        /// As [`twin`] for elements of this length.
        $(#[$feature])?
        unsafe extern "C" fn $name$(<const $len: usize>)?(
            dst: *mut u8,
            src: *const u8,
            rows: u64,
            cols: u64,
            dst_row: i64,
            src_row: i64,
            dst_step: i64,
            src_step: i64,
        ) {
            let s = Strides { dst_row, src_row, dst_step, src_step };
            // SAFETY: as promised by the caller.
            unsafe { all::<{ $size }, $square>(dst, src, rows as usize, cols as usize, s) }
        }
    };
}

function!(plain<LEN>, LEN, Plain<LEN>,);

#[cfg(target_arch = "x86_64")]
mod avx2;

/// Lengths of elements that there is code for, in bytes.
pub const LENGTHS: &[u16] = &[1, 2, 4, 8, 12, 16, 24, 32, 64];

/// The function made for elements of `len` bytes at exactly `level`; of those of another length, none.
pub(super) fn get(len: u16, level: Level) -> Option<Function> {
    #[cfg(target_arch = "x86_64")]
    if level >= Level::Avx2 {
        return avx2::get(len);
    }
    let _ = level;
    Some(match len {
        1 => plain::<1>,
        2 => plain::<2>,
        4 => plain::<4>,
        8 => plain::<8>,
        12 => plain::<12>,
        16 => plain::<16>,
        24 => plain::<24>,
        32 => plain::<32>,
        64 => plain::<64>,
        _ => return None,
    })
}

/// The code for elements of `len` bytes: its length and level; none where no code is made for the length.
pub(super) fn choose(len: u64, level: Level) -> Option<(u16, Level)> {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok())?;
    let wide = cfg!(target_arch = "x86_64") && level >= Level::Avx2 && matches!(made_for, 4 | 8 | 16);
    Some((made_for, if wide { Level::Avx2 } else { Level::Baseline }))
}

/// The function for elements of `len` bytes, if there is one.
pub fn function(len: u64, level: Level) -> Option<Function> {
    let (made_for, level) = choose(len, level)?;
    get(made_for, level)
}

#[cfg(test)]
mod tests;
