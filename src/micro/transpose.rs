//! Family `transpose` of micro-kernels: copies a matrix of small elements so that its rows become
//! columns, tile by tile.
//!
//! A column type accesses memory at a large stride, and touches a cache line again for every
//! element in it. If the stride is a multiple of the page size, the line is evicted in between. The
//! code of this family moves blocks of elements through registers. A block uses up whole cache
//! lines of at least one side at once. Tiles have few rows and many columns. A tile is read along
//! all of its rows at the same time, which are as many as the hardware prefetcher can follow.
//!
//! Elements are not written in the order of the loops of the datatype, so this family is used only
//! if no elements of the destination overlap.

pub(super) mod pieces;

use std::ops::Range;

use super::functions::functions;
use super::isa::{Baseline, Code, OneLength, with_code};
use super::{Actual, Argument, Call, Direction, Family, Micro, Role, block};
use crate::nest::{Offsets, Quantity};
use crate::target::{Level, cost};
use pieces::shape;

functions! {
    /// Copies, for all `r < rows` and `c < cols`, the element at `src + r * src_row + c * src_step`
    /// to `dst + c * dst_row + r * dst_step`. All elements have the length for which the function
    /// is made. Strides are in bytes and may have any sign. No two destination elements overlap.
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

/// Family that transposes a matrix, given as two nested loops. A call has an address in the user's
/// buffer and one in the packed stream. In both, element `(i, j)` lies `i` steps of the outer loop
/// and `j` steps of the inner loop after the address. The length of an element is the one for which
/// the code is made. Elements are moved in any order.
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

/// A loop, given by its number of iterations and its steps in bytes in user memory and on the
/// packed side.
pub type Repeat = (Quantity, Offsets);

/// Returns two nested loops around one element of `len` bytes in the form that a transpose needs:
/// the outer loop goes along user memory and the inner loop along the packed side, both at small
/// strides. Returns `None` if the loops cannot be brought into this form, if one of them has too
/// few iterations, or if an element is so long that a transpose does not pay.
pub fn suited([outer, inner]: [Repeat; 2], len: u64) -> Option<[Repeat; 2]> {
    // If the packed side is a packed stream, the inner loop always goes along the packed side. In a
    // copy between two layouts, the outer loop may go along the packed side instead; the two loops
    // are then exchanged.
    let [outer, inner] = if outer.1.packed.unsigned_abs() < inner.1.packed.unsigned_abs() {
        [inner, outer]
    } else {
        [outer, inner]
    };
    let few = |trip: &Quantity| !trip.per_count && trip.k < cost::TRANSPOSED_TRIP;
    let near = [outer.1.user, inner.1.packed].iter().all(|s| s.unsigned_abs() <= cost::TRANSPOSED_STRIDE);
    let crossed = inner.1.user.unsigned_abs() > outer.1.user.unsigned_abs()
        && inner.1.packed.unsigned_abs() < outer.1.packed.unsigned_abs();
    // Elements of at least a whole cache line do not share cache lines, so a transpose does not pay
    // for them.
    let lines = len >= cost::TRANSPOSED_STRIDE;
    (!few(&outer.0) && !few(&inner.0) && near && crossed && !lines).then_some([outer, inner])
}

/// Returns the micro-kernel that transposes matrices of elements of `len` bytes, or `None` if there
/// is no code for this length. The micro-kernel must be used only if no elements of the destination
/// overlap.
pub fn micro(len: u64, direction: Direction, level: Level) -> Option<Micro> {
    let (len, level) = choose(len, level)?;
    Some(Micro::new(&FAMILY, direction, level).with_length(len))
}

/// Returns the call of a micro-kernel that transposes a matrix of elements of `len` bytes. The
/// matrix is given as two nested loops, the outer loop first: `trips` has their numbers of
/// iterations, and `steps` their steps in user memory and on the packed side. Returns `None` if
/// there is no code for this length.
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

/// Returns the roles that the arguments of a call have as parameters of [`Function`], in the order
/// of the parameters. The rows of the source become columns of the destination, and the inner loop
/// of the call goes along the packed side.
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

/// Calls `f` with the offsets and the length of every element, in the reverse of the order of the
/// two nested loops. The machine code moves the elements tile by tile, so its result depends on the
/// order if two elements have the same destination. A test that executes the loops in order and
/// compares the results then sees a difference.
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

/// Strides in bytes of the elements of a matrix and of its transpose: the last four arguments of
/// [`Function`].
#[derive(Clone, Copy, Debug)]
pub struct Strides {
    /// Distance in the destination between elements that come from neighbouring source columns.
    pub dst_row: i64,
    /// Distance in the source between elements of neighbouring source rows.
    pub src_row: i64,
    /// Distance in the destination between elements that come from neighbouring source rows.
    pub dst_step: i64,
    /// Distance in the source between elements of neighbouring source columns.
    pub src_step: i64,
}

/// Scalar reference of this family of micro-kernels, with which the tests compare them: copies
/// elements of `len` bytes byte by byte.
///
/// # Safety
/// Every byte of every source element must be readable, and every byte of every destination element
/// writable. The two sides must not overlap.
pub unsafe fn scalar_reference(dst: *mut u8, src: *const u8, (rows, cols): (u64, u64), s: Strides, len: u64) {
    for r in 0..rows as i64 {
        for c in 0..cols as i64 {
            for k in 0..len as isize {
                let d = dst.wrapping_offset((c * s.dst_row + r * s.dst_step) as isize + k);
                let s = src.wrapping_offset((r * s.src_row + c * s.src_step) as isize + k);
                // SAFETY: `d` and `s` are byte `k` of element `(r, c)` on both sides, which the
                // caller promises.
                unsafe { d.write(s.read()) }
            }
        }
    }
}

/// Order in which the elements of a matrix are moved: tile by tile. In each tile, the code goes
/// down the rows and then on to the next columns.
struct Tiles {
    /// Number of source rows of a tile.
    rows: usize,
    /// Number of source columns of a tile.
    cols: usize,
    /// Whether the code continues with the tile below the current tile. Otherwise it continues with
    /// the tile to the right.
    down: bool,
}

/// Returns the size and order of the tiles in which a matrix of elements of `len` bytes is
/// transposed.
///
/// Each row of a tile is read as a stream of its own, and the prefetcher of the second-level cache
/// follows about 16 streams. Relative to tiles of 512 by 512 bytes, 1024 x 1024 elements take 0.53
/// of the time for elements of 8 B, 0.71 for 12 B, 0.79 for 16 B and 0.69 for 24 B (in L2 0.58,
/// 0.73, 0.83 and 0.73). With tiles of 32 rows that follow each other downwards, they take 0.80 of
/// the time for elements of 4 B, 0.91 for 32 B and 0.76 for 64 B (Sapphire Rapids).
const fn tiles(len: usize) -> Tiles {
    match len {
        1 | 2 => Tiles { rows: 64, cols: 64, down: false },
        8..=24 => Tiles { rows: 16, cols: 128, down: false },
        _ => Tiles { rows: 32, cols: 64, down: true },
    }
}

/// Addresses and strides in bytes of the elements of a matrix and of its transpose. The code that
/// uses them is made for elements of `LEN` bytes.
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
    /// Returns the addresses of the element in row `r` and column `c` of the source: first its
    /// address in the destination, then its address in the source.
    #[inline(always)]
    fn addresses(self, r: usize, c: usize) -> (*mut u8, *const u8) {
        let (r, c) = (r as isize, c as isize);
        (
            self.dst
                .wrapping_offset(c.wrapping_mul(self.dst_row).wrapping_add(r.wrapping_mul(self.dst_step))),
            self.src
                .wrapping_offset(r.wrapping_mul(self.src_row).wrapping_add(c.wrapping_mul(self.src_step))),
        )
    }

    /// Moves the elements of the source rows `rows` and the source columns `cols` one by one.
    ///
    /// # Safety
    /// All of these elements must be readable in the source and writable in the destination. The
    /// two sides must not overlap.
    #[inline(always)]
    unsafe fn move_elements(self, rows: Range<usize>, cols: Range<usize>) {
        let (mut to, mut from) = self.addresses(rows.start, cols.start);
        for _ in cols {
            let (mut d, mut s) = (to, from);
            for _ in rows.clone() {
                // SAFETY: `d` and `s` are an element of the given rows and columns, which the
                // caller promises.
                unsafe { block::constant::<Baseline, LEN>(d, s) };
                (d, s) = (d.wrapping_offset(self.dst_step), s.wrapping_offset(self.src_row));
            }
            (to, from) = (to.wrapping_offset(self.dst_row), from.wrapping_offset(self.src_step));
        }
    }

    /// Moves the elements of the source rows `rows` and the source columns `cols`. If the elements
    /// of a row follow each other directly both in the source and in the destination, they are
    /// moved in blocks through registers.
    ///
    /// # Safety
    /// All of these elements must be readable in the source and writable in the destination. The
    /// two sides must not overlap. The machine must have the instructions of `I`.
    #[inline(always)]
    unsafe fn tile<I: Code>(self, rows: Range<usize>, cols: Range<usize>) {
        let (block_rows, block_cols) = const { shape::<I>(LEN) };
        if [self.dst_step, self.src_step] != [LEN as isize; 2] {
            // SAFETY: the conditions of `move_elements` are those of this function, for the same
            // elements.
            return unsafe { self.move_elements(rows, cols) };
        }
        // Whole blocks of `block_rows` by `block_cols` elements are transposed in registers: for each
        // group of `block_cols` columns, one block after the other from the first row to the last.
        // The remaining rows and columns do not fill a whole block. Their elements are moved one by
        // one.
        let whole = |all: &Range<usize>, block: usize| all.start + (all.end - all.start) / block * block;
        let (row_end, col_end) = (whole(&rows, block_rows), whole(&cols, block_cols));
        let mut c = cols.start;
        while c < col_end {
            let (mut d, mut s) = self.addresses(rows.start, c);
            let mut r = rows.start;
            while r < row_end {
                // SAFETY: the block lies within the rows and columns, as `row_end` and `col_end`
                // end whole blocks. The caller promises its elements and a machine with the
                // instructions of `I`. Steps between elements are dense on both sides.
                unsafe { I::transpose::<LEN>(d, s, self.dst_row, self.src_row) };
                d = d.wrapping_add(block_rows * LEN);
                s = s.wrapping_offset(self.src_row.wrapping_mul(block_rows as isize));
                r += block_rows;
            }
            c += block_cols;
        }
        // SAFETY: these are the rest of the elements that the caller promises.
        unsafe {
            self.move_elements(row_end..rows.end, cols.start..col_end);
            self.move_elements(rows, col_end..cols.end);
        }
    }
}

/// Moves all elements of a matrix of `rows` rows and `cols` columns tile by tile, so that rows
/// become columns.
///
/// # Safety
/// Every element of `LEN` bytes must be readable in the source and writable in the destination, at
/// the strides `s`. The two sides must not overlap. The machine must have the instructions of `I`.
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
    // If the matrix is a single tile, the loops over tiles, whose preparation takes some 20 ns, are
    // not needed.
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
            // SAFETY: `r` is less than `rows` and `c` less than `cols`, and the ranges end at
            // `rows` and `cols` at the latest, so these are elements that the caller promises. The
            // caller also promises a machine with the instructions of `I`.
            unsafe { matrix.tile::<I>(r..rows.min(r + by_rows), c..cols.min(c + by_cols)) };
        }
    }
}

/// Marker type. Its [`Body`] is the code of the functions for elements of `LEN` bytes, generic over
/// the instruction set.
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
        // SAFETY: the conditions of `made_for` are those of this function, for the length of the
        // body.
        unsafe { made_for::<I, LEN>(dst, src, rows as usize, cols as usize, s) }
    }
}

/// Declares `LENGTHS`, the lengths of elements for which code exists, and `lookup`, which finds the
/// function for a length.
macro_rules! lengths {
    ($($len:literal)*) => {
        /// Lengths in bytes of matrix elements for which code exists, in ascending order.
        pub const LENGTHS: &[u16] = &[$($len),*];

        /// Returns the function that transposes elements of `len` bytes with the instruction set
        /// `I`, or `None` if there is no such function.
        fn lookup<I: Functions>(len: u16) -> Option<Function> {
            Some(match len {
                $($len => I::function::<OfLength<$len>>(),)*
                _ => return None,
            })
        }
    };
}

lengths! { 1 2 4 8 12 16 24 32 64 }

/// Returns the function that transposes elements of `len` bytes, compiled for `level` or for a
/// lower level whose code is as good. Returns `None` if there is no code for this length.
pub(super) fn get(len: u16, level: Level) -> Option<Function> {
    with_code!(level, I => lookup::<I>(len))
}

/// Returns for which length of elements and for which level the code is made that transposes
/// elements of `len` bytes on a target of `level`. Returns `None` if there is no code for this
/// length.
fn choose(len: u64, level: Level) -> Option<(u16, Level)> {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok())?;
    Some((made_for, OneLength::Transposed(made_for.into()).serving(level)))
}

/// Returns the function that transposes elements of `len` bytes on a machine of `level`, or `None`
/// if there is no such function.
pub fn function(len: u64, level: Level) -> Option<Function> {
    get(u16::try_from(len).ok()?, level)
}

#[cfg(test)]
mod tests;
