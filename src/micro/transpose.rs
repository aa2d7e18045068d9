//! Transpose: a matrix of small elements whose rows become columns, by tiles.
//!
//! A column type walks memory at a large stride and touches a cache line again for each element in it; strides that are
//! multiples of a page's size evict it in between. Blocks of elements go through registers and use up whole lines of at least
//! one side at once; tiles of few rows and many columns read along rows, as many as the hardware prefetches.
//!
//! Writes come in another order than the blocks', so this is for destinations without overlap only.

pub(super) mod pieces;

use std::ops::Range;

use super::functions::functions;
use super::isa::{Baseline, Code, OneLength, with_code};
use super::{Actual, Argument, Call, Direction, Family, Micro, Role, block};
use crate::nest::{Offsets, Quantity};
use crate::target::{Level, cost};
use pieces::shape;

functions! {
    /// Copies for `r < rows` and `c < cols` the element at `src + r * src_row + c * src_step` to `dst + c * dst_row + r * dst_step`. Strides are in
    /// bytes, of any sign. No two destination elements overlap.
    pub type Function = unsafe extern "C" fn(
        dst: *mut u8,
        src: *const u8,
        rows: u64,
        cols: u64,
        dst_row: i64,
        src_row: i64,
        dst_step: i64,
        src_step: i64,
    );
}

/// A matrix whose rows become columns: element `(i, j)`, of the length that the code is made for, at `a + i * steps + j * inner steps`, in any
/// order.
pub static FAMILY: Family = Family {
    name: "transpose",
    directed: false,
    parameters,
    variant: Family::plain,
    transform: Family::copied,
    address: |micro| {
        get(micro.made_for().unwrap_or(0) as u16, micro.level()).map_or(0, |function| function as usize)
    },
    check: Family::anything,
    blocks,
    takes: Family::nothing,
};

/// A loop: its trip and its steps in bytes.
pub type Repeat = (Quantity, Offsets);

/// Returns two loops around one element of `len` bytes as the outer and the inner one of a transpose, if they are one worth a call: the inner one runs along the packed side,
/// the outer one along the user's, both at small strides.
pub fn suited([outer, inner]: [Repeat; 2], len: u64) -> Option<[Repeat; 2]> {
    // Along a stream the inner loop always runs; between two layouts the outer one may.
    let [outer, inner] = if outer.1.packed.unsigned_abs() < inner.1.packed.unsigned_abs() {
        [inner, outer]
    } else {
        [outer, inner]
    };
    let few = |trip: &Quantity| !trip.per_count && trip.k < cost::TRANSPOSED_TRIP;
    let near = [outer.1.user, inner.1.packed].iter().all(|s| s.unsigned_abs() <= cost::TRANSPOSED_STRIDE);
    let crossed = inner.1.user.unsigned_abs() > outer.1.user.unsigned_abs()
        && inner.1.packed.unsigned_abs() < outer.1.packed.unsigned_abs();
    // Elements of whole lines share none either.
    let lines = len >= cost::TRANSPOSED_STRIDE;
    (!few(&outer.0) && !few(&inner.0) && near && crossed && !lines).then_some([outer, inner])
}

/// Returns the micro-kernel for elements of `len` bytes, if one is made for that length. Only for destinations whose elements do not overlap.
pub fn micro(len: u64, direction: Direction, level: Level) -> Option<Micro> {
    let (len, level) = choose(len, level)?;
    Some(Micro::new(&FAMILY, direction, level).with_length(len))
}

/// Returns the call that moves `trips` elements of `len` bytes of an outer and an inner loop, if there is code for that length.
pub fn call(
    direction: Direction,
    level: Level,
    trips: [Quantity; 2],
    steps: [Offsets; 2],
    len: u64,
) -> Option<Call> {
    let arguments = [
        (Role::Iterations, Argument::Number(trips[0])),
        (Role::UserStep, Argument::Step(steps[0].user)),
        (Role::PackedStep, Argument::Step(steps[0].packed)),
        (Role::InnerIterations, Argument::Number(trips[1])),
        (Role::InnerUserStep, Argument::Step(steps[1].user)),
        (Role::InnerPackedStep, Argument::Step(steps[1].packed)),
    ];
    Some(Call::new(micro(len, direction, level)?, arguments))
}

/// Rows of the source become columns of the destination: the inner loop runs along the packed side.
fn parameters(direction: Direction) -> &'static [Role] {
    use Role::{
        InnerIterations, InnerPackedStep, InnerUserStep, Iterations, Packed, PackedStep, User, UserStep,
    };
    match direction {
        Direction::Pack => {
            &[Packed, User, InnerIterations, Iterations, PackedStep, InnerUserStep, InnerPackedStep, UserStep]
        }
        Direction::Unpack => {
            &[User, Packed, Iterations, InnerIterations, InnerUserStep, PackedStep, UserStep, InnerPackedStep]
        }
    }
}

/// By tiles in truth; here in the order that an overlap would show: the first of entries in one place is the last.
fn blocks(call: &Actual<'_>, f: &mut dyn FnMut(Offsets, u64)) {
    let (outer, inner) = (call.number(Role::Iterations) as i64, call.number(Role::InnerIterations) as i64);
    let step = call.steps(Role::UserStep, Role::PackedStep);
    let inner_step = call.steps(Role::InnerUserStep, Role::InnerPackedStep);
    for j in (0..inner).rev() {
        for i in (0..outer).rev() {
            f(Offsets::ZERO.step(step, i).step(inner_step, j), call.callee().made_for().unwrap_or(0));
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

/// Where the elements are, for code that is made for their length.
#[derive(Clone, Copy)]
struct Matrix<const LEN: usize> {
    dst: *mut u8,
    src: *const u8,
    dst_row: isize,
    src_row: isize,
    dst_step: isize,
    src_step: isize,
}

impl<const LEN: usize> Matrix<LEN> {
    /// Element `(r, c)` on both sides.
    #[inline(always)]
    fn place(self, r: usize, c: usize) -> (*mut u8, *const u8) {
        let (r, c) = (r as isize, c as isize);
        (
            self.dst
                .wrapping_offset(c.wrapping_mul(self.dst_row).wrapping_add(r.wrapping_mul(self.dst_step))),
            self.src
                .wrapping_offset(r.wrapping_mul(self.src_row).wrapping_add(c.wrapping_mul(self.src_step))),
        )
    }

    /// Moves the elements of some rows and columns one by one.
    ///
    /// # Safety
    /// They are readable and writable; the two sides do not overlap.
    #[inline(always)]
    unsafe fn each(self, rows: Range<usize>, cols: Range<usize>) {
        let (mut to, mut from) = self.place(rows.start, cols.start);
        for _ in cols {
            let (mut d, mut s) = (to, from);
            for _ in rows.clone() {
                // SAFETY: an element of the ranges.
                unsafe { block::constant::<Baseline, LEN>(d, s) };
                (d, s) = (d.wrapping_offset(self.dst_step), s.wrapping_offset(self.src_row));
            }
            (to, from) = (to.wrapping_offset(self.dst_row), from.wrapping_offset(self.src_step));
        }
    }

    /// Moves the elements of some rows and columns, in blocks where steps are dense.
    ///
    /// # Safety
    /// As [`Matrix::each`]; the machine has the instructions of `I`.
    #[inline(always)]
    unsafe fn tile<I: Code>(self, rows: Range<usize>, cols: Range<usize>) {
        let (block_rows, block_cols) = const { shape::<I>(LEN) };
        if [self.dst_step, self.src_step] != [LEN as isize; 2] {
            // SAFETY: as promised by the caller.
            return unsafe { self.each(rows, cols) };
        }
        let whole = |all: &Range<usize>, block: usize| all.start + (all.end - all.start) / block * block;
        let (row_end, col_end) = (whole(&rows, block_rows), whole(&cols, block_cols));
        let mut c = cols.start;
        while c < col_end {
            let (mut d, mut s) = self.place(rows.start, c);
            let mut r = rows.start;
            while r < row_end {
                // SAFETY: a whole block lies within the rows and columns. The caller promises a
                // machine with the instructions of `I`.
                unsafe { I::transpose::<LEN>(d, s, self.dst_row, self.src_row) };
                d = d.wrapping_add(block_rows * LEN);
                s = s.wrapping_offset(self.src_row.wrapping_mul(block_rows as isize));
                r += block_rows;
            }
            c += block_cols;
        }
        // SAFETY: the rest of the same rows and columns.
        unsafe {
            self.each(row_end..rows.end, cols.start..col_end);
            self.each(rows, col_end..cols.end);
        }
    }
}

/// Moves all elements tile by tile.
///
/// # Safety
/// As [`twin`] with `len = LEN`; the machine has the instructions of `I`.
#[inline(always)]
unsafe fn made_for<I: Code, const LEN: usize>(
    dst: *mut u8,
    src: *const u8,
    rows: usize,
    cols: usize,
    s: Strides,
) {
    let [dst_row, src_row, dst_step, src_step] =
        [s.dst_row, s.src_row, s.dst_step, s.src_step].map(|s| s as isize);
    let matrix = Matrix::<LEN> { dst, src, dst_row, src_row, dst_step, src_step };
    let Tiles { rows: by_rows, cols: by_cols, down } = const { tiles(LEN) };
    // One alone needs nothing of what is made ready for many, which takes some 20 ns.
    if rows <= by_rows && cols <= by_cols {
        // SAFETY: these are all elements. The caller promises them, and a machine with the
        // instructions of `I`.
        return unsafe { matrix.tile::<I>(0..rows, 0..cols) };
    }
    let (outer, inner) =
        if down { ((cols, by_cols), (rows, by_rows)) } else { ((rows, by_rows), (cols, by_cols)) };
    for a in (0..outer.0).step_by(outer.1) {
        for b in (0..inner.0).step_by(inner.1) {
            let (r, c) = if down { (b, a) } else { (a, b) };
            // SAFETY: `r` is less than `rows` and `c` less than `cols`, and the ranges end there at
            // the latest, so these are elements that the caller promises. The caller promises a
            // machine with the instructions of `I` too.
            unsafe { matrix.tile::<I>(r..rows.min(r + by_rows), c..cols.min(c + by_cols)) };
        }
    }
}

/// Elements of `LEN` bytes.
struct OfLength<const LEN: usize>;

impl<const LEN: usize> Body for OfLength<LEN> {
    const ONE_LENGTH: Option<OneLength> = Some(OneLength::Transposed(LEN));

    #[inline(always)]
    unsafe fn run<I: Functions>(
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
        unsafe { made_for::<I, LEN>(dst, src, rows as usize, cols as usize, s) }
    }
}

/// The lengths of elements that there is code for, and the lookup of it.
macro_rules! lengths {
    ($($len:literal)*) => {
        /// Lengths of elements that there is code for, in bytes, ascending.
        pub const LENGTHS: &[u16] = &[$($len),*];

        /// The function for elements of `len` bytes, if there is one.
        fn lookup<I: Functions>(len: u16) -> Option<Function> {
            Some(match len {
                $($len => I::of::<OfLength<$len>>(),)*
                _ => return None,
            })
        }
    };
}

lengths! { 1 2 4 8 12 16 24 32 64 }

/// Returns the function made for elements of `len` bytes at `level`, or below it where that is as good; of those of another length, none.
pub(super) fn get(len: u16, level: Level) -> Option<Function> {
    with_code!(level, I => lookup::<I>(len))
}

/// The code for elements of `len` bytes: its length and level; none where no code is made for the length.
fn choose(len: u64, level: Level) -> Option<(u16, Level)> {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok())?;
    Some((made_for, OneLength::Transposed(made_for.into()).serving(level)))
}

/// Returns the function for elements of `len` bytes, if there is one.
pub fn function(len: u64, level: Level) -> Option<Function> {
    get(u16::try_from(len).ok()?, level)
}

#[cfg(test)]
mod tests;
