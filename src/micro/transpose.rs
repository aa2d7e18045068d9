//! Transpose: a matrix of small elements whose rows become columns, by tiles.
//!
//! A column type walks memory at a large stride and touches a cache line again for each element in it; strides that are
//! multiples of a page's size evict it in between. Blocks of elements go through registers and use up whole lines of at least
//! one side at once; tiles of few rows and many columns read along rows, as many as the hardware prefetches.
//!
//! Writes come in another order than the blocks', so this is for destinations without overlap only.

use super::{Actual, Argument, Call, Direction, Family, Micro, Role, block};
use crate::nest::{At, Trip};
use crate::target::Level;

/// `(dst, src, rows, cols, dst_row, src_row, dst_step, src_step)`: for `r < rows` and `c < cols` the element at
/// `src + r * src_row + c * src_step` goes to `dst + c * dst_row + r * dst_step`. Strides are in bytes, of any sign. No two
/// destination elements overlap.
pub type Function = unsafe extern "C" fn(*mut u8, *const u8, u64, u64, i64, i64, i64, i64);

/// A matrix whose rows become columns.
pub static FAMILY: Family = Family {
    name: "transpose",
    directed: false,
    parameters,
    variant: Family::plain,
    address: |micro| {
        get(micro.made_for().unwrap_or(0) as u16, micro.level()).map_or(0, |function| function as usize)
    },
    check: Family::anything,
    blocks,
};

/// The call that moves `trips` elements of `len` bytes of an outer and an inner loop, if there is code for that length.
pub fn call(direction: Direction, level: Level, trips: [Trip; 2], steps: [At; 2], len: u64) -> Option<Call> {
    let arguments = [
        (Role::Trip, Argument::Number(trips[0])),
        (Role::UserStep, Argument::Step(steps[0].user)),
        (Role::PackedStep, Argument::Step(steps[0].packed)),
        (Role::InnerTrip, Argument::Number(trips[1])),
        (Role::InnerUserStep, Argument::Step(steps[1].user)),
        (Role::InnerPackedStep, Argument::Step(steps[1].packed)),
    ];
    Some(Call::new(Micro::transpose(len, direction, level)?, arguments))
}

/// Rows of the source become columns of the destination: the inner loop runs along the packed side.
fn parameters(direction: Direction) -> &'static [Role] {
    use Role::{InnerPackedStep, InnerTrip, InnerUserStep, Packed, PackedStep, Trip, User, UserStep};
    match direction {
        Direction::Pack => {
            &[Packed, User, InnerTrip, Trip, PackedStep, InnerUserStep, InnerPackedStep, UserStep]
        }
        Direction::Unpack => {
            &[User, Packed, Trip, InnerTrip, InnerUserStep, PackedStep, UserStep, InnerPackedStep]
        }
    }
}

/// By tiles in truth; here in the order that an overlap would show: the first of entries in one place is the last.
fn blocks(call: &Actual<'_>, f: &mut dyn FnMut(At, u64)) {
    let (outer, inner) = (call.number(Role::Trip) as i64, call.number(Role::InnerTrip) as i64);
    let step = call.steps(Role::UserStep, Role::PackedStep);
    let inner_step = call.steps(Role::InnerUserStep, Role::InnerPackedStep);
    for j in (0..inner).rev() {
        for i in (0..outer).rev() {
            f(At::ZERO.step(step, i).step(inner_step, j), call.callee().made_for().unwrap_or(0));
        }
    }
}

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

/// The order in which elements are moved: tile by tile, in each tile down its rows, then on to its next columns.
struct Tiles {
    /// Source rows of a tile.
    rows: usize,
    /// Source columns of a tile.
    cols: usize,
    /// Whether the next tile is the one below; else the one beside it.
    down: bool,
}

/// The tiles for elements of `len` bytes.
///
/// Rows are read as so many streams, and the prefetcher of the second-level cache follows about 16 of them. Time of 1024 x
/// 1024 elements over that of tiles of 512 bytes by 512: 8 B 0.53, 12 B 0.71, 16 B 0.79, 24 B 0.69 (in L2 0.58, 0.73, 0.83 and
/// 0.73); one step down and 32 rows instead: 4 B 0.80, 32 B 0.91, 64 B 0.76 (Sapphire Rapids).
const fn tiles(len: usize) -> Tiles {
    match len {
        1 | 2 => Tiles { rows: 64, cols: 64, down: false },
        8..=24 => Tiles { rows: 16, cols: 128, down: false },
        _ => Tiles { rows: 32, cols: 64, down: true },
    }
}

/// A block of elements that is moved by registers.
trait Block {
    /// Source rows.
    const ROWS: usize;
    /// Source columns.
    const COLS: usize;

    /// Transposes one block whose steps are dense.
    ///
    /// # Safety
    /// `ROWS` times `COLS` elements are valid at `dst` by rows of `dst_row` and at `src` by rows of `src_row`; the machine has
    /// the instructions.
    unsafe fn transpose(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize);
}

/// Blocks of 4 columns, one element after the other in pieces of up to `WIDE` bytes: as many rows as make whole lines.
struct Plain<const LEN: usize, const WIDE: usize>;

impl<const LEN: usize, const WIDE: usize> Block for Plain<LEN, WIDE> {
    const ROWS: usize = match LEN {
        12 => 16,
        24 => 8,
        _ => 4,
    };
    const COLS: usize = 4;

    #[inline(always)]
    unsafe fn transpose(dst: *mut u8, src: *const u8, dst_row: isize, src_row: isize) {
        for c in 0..Self::COLS {
            for r in 0..Self::ROWS {
                let d = dst.wrapping_offset(c as isize * dst_row).wrapping_add(r * LEN);
                let s = src.wrapping_offset(r as isize * src_row).wrapping_add(c * LEN);
                // SAFETY: element `(r, c)` of the block.
                unsafe { block::constant::<LEN, WIDE>(d, s) };
            }
        }
    }
}

/// Moves all elements tile by tile, in blocks of `B` where steps are dense.
///
/// # Safety
/// As [`twin`] with `len = LEN`; `B` is of elements of that length, and the machine has its instructions.
#[inline(always)]
unsafe fn all<const LEN: usize, B: Block>(
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
    let tile = |r0: usize, c0: usize| {
        let (r1, c1) = (rows.min(r0 + const { tiles(LEN).rows }), cols.min(c0 + const { tiles(LEN).cols }));
        if !dense {
            return each(r0..r1, c0..c1);
        }
        let (r2, c2) = (r0 + (r1 - r0) / B::ROWS * B::ROWS, c0 + (c1 - c0) / B::COLS * B::COLS);
        let mut c = c0;
        while c < c2 {
            let (mut d, mut s) = place(r0, c);
            let mut r = r0;
            while r < r2 {
                // SAFETY: a whole block lies within the tile.
                unsafe { B::transpose(d, s, dst_row, src_row) };
                d = d.wrapping_add(B::ROWS * LEN);
                s = s.wrapping_offset(src_row.wrapping_mul(B::ROWS as isize));
                r += B::ROWS;
            }
            c += B::COLS;
        }
        each(r2..r1, c0..c2);
        each(r0..r1, c2..c1);
    };
    let Tiles { rows: by_rows, cols: by_cols, down } = const { tiles(LEN) };
    let (outer, inner) =
        if down { ((cols, by_cols), (rows, by_rows)) } else { ((rows, by_rows), (cols, by_cols)) };
    for a in (0..outer.0).step_by(outer.1) {
        for b in (0..inner.0).step_by(inner.1) {
            if down { tile(b, a) } else { tile(a, b) }
        }
    }
}

macro_rules! function {
    ($name:ident<$($len:ident)?>, $size:expr, $block:ty, $(#[$feature:meta])?) => {
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
            unsafe { all::<{ $size }, $block>(dst, src, rows as usize, cols as usize, s) }
        }
    };
}

function!(plain<LEN>, LEN, Plain<LEN, 16>,);

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

/// Lengths of elements that there is code for, in bytes.
pub const LENGTHS: &[u16] = &[1, 2, 4, 8, 12, 16, 24, 32, 64];

/// The function made for elements of `len` bytes at exactly `level`; of those of another length, none.
pub(super) fn get(len: u16, level: Level) -> Option<Function> {
    #[cfg(target_arch = "x86_64")]
    match level {
        Level::Avx512 => return avx512::get(len),
        Level::Avx2 => return avx2::get(len),
        Level::Baseline | Level::Neon => {}
    }
    #[cfg(target_arch = "aarch64")]
    if level == Level::Neon {
        return neon::get(len);
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
    let level = match (level, made_for) {
        (Level::Avx512, 4 | 8 | 16) => Level::Avx512,
        (Level::Avx2 | Level::Avx512, 4 | 8 | 16 | 32 | 64) => Level::Avx2,
        (Level::Neon, 4 | 8 | 16 | 32 | 64) => Level::Neon,
        _ => Level::Baseline,
    };
    Some((made_for, level))
}

/// The function for elements of `len` bytes, if there is one.
pub fn function(len: u64, level: Level) -> Option<Function> {
    let (made_for, level) = choose(len, level)?;
    get(made_for, level)
}

#[cfg(test)]
mod tests;
