//! Family `rows` of micro-kernels: copies `n` blocks of `len` bytes. Their offsets in user memory
//! are listed in a table; on the packed side they lie at a constant stride.
//!
//! Packing gathers blocks, unpacking scatters them. The table is a column of offsets of 4 or 8
//! bytes, each of which is called a row. These loops are limited by the latency of two loads, of
//! which the second needs the result of the first (`load row; load [user + row]`). The loops are
//! therefore plain and unrolled, so that the processor overlaps the loads of several blocks.

use std::marker::PhantomData;

use super::cursor::{Cursor, Listed, Offset, Strided};
use super::functions::functions;
use super::isa::{Code, OneLength, with_code};
use super::{
    Argument, Call, Direction, Family, Micro, Role, TableIndex, Width, constant_length, run_time_length,
};
use crate::column::Column;
use crate::nest::{Offsets, Quantity};
use crate::target::Level;

functions! {
    /// Copies block `i` of `len` bytes between `user + rows[i]` and `packed + i * packed_stride`,
    /// in order. `rows` is a table of `n` offsets of the width, 4 or 8 bytes, for which the
    /// function is made.
    pub type Function = unsafe extern "C" fn(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        rows: *const u8,
        packed_stride: i64,
        len: u64,
    );
}

/// Family that copies equal blocks at listed user offsets. Block `i` lies in the user's buffer at
/// the call's address plus the offset in row `i` of a table, and in the packed stream at the call's
/// address plus `i * packed-step`. Blocks are moved in order. The variant is the width of the
/// table's entries.
pub static FAMILY: Family = Family {
    name: "rows",
    directed: true,
    parameters: |_| {
        &[Role::User, Role::Packed, Role::Iterations, Role::UserOffsets, Role::PackedStep, Role::Length]
    },
    variant: |number, f| write!(f, ".{}", Width::of_number(number)),
    transform: Family::copied,
    address: |micro| {
        let width = Width::of_number(micro.variant());
        get(micro.made_for().unwrap_or(0) as u16, width, micro.direction(), micro.level()) as usize
    },
    check: |call| {
        let column = call.column(Role::UserOffsets);
        if call.number(Role::Iterations) != column.len() as u64 {
            return Err("another number of rows than its column has");
        }
        if Width::from_column(column) as u8 != call.callee().variant() {
            return Err("micro-kernel made for a column of another width");
        }
        Ok(())
    },
    blocks: |call, f| {
        let step = call.step(Role::PackedStep);
        for (i, row) in call.column(Role::UserOffsets).iter().enumerate() {
            f(Offsets::new(row, step.wrapping_mul(i as i64)), call.number(Role::Length));
        }
    },
    takes: Family::nothing,
};

/// Returns the micro-kernel that moves blocks of `len` bytes whose user offsets are listed in a
/// table with entries of `width`.
pub fn micro(len: u64, width: Width, direction: Direction, level: Level) -> Micro {
    let (len, level) = choose(len, level);
    Micro::new(&FAMILY, direction, level).with_length(len).with_variant(width as u8)
}

/// Returns the call of a micro-kernel that moves a block of `len` bytes for every offset in
/// `column`, which is the table with the index `table` in the plan. On the packed side, each block
/// lies `packed_step` bytes after the block before it.
pub fn call(
    direction: Direction,
    level: Level,
    (column, table): (&Column, TableIndex),
    packed_step: i64,
    len: u64,
) -> Call {
    let arguments = [
        (Role::Iterations, Argument::Number(Quantity::fixed(column.len() as u64))),
        (Role::UserOffsets, Argument::Table(table)),
        (Role::PackedStep, Argument::Step(packed_step)),
        (Role::Length, Argument::Number(Quantity::fixed(len))),
    ];
    Call::new(micro(len, Width::from_column(column), direction, level), arguments)
}

/// Returns the addresses of the destination and of the source of a move between user memory and
/// packed memory: `PACK` is true if `packed` is the destination.
#[inline(always)]
pub(super) fn ends<const PACK: bool>(user: *mut u8, packed: *mut u8) -> (*mut u8, *const u8) {
    if PACK { (packed, user) } else { (user, packed) }
}

/// Scalar reference of this family of micro-kernels, with which the tests compare them: copies the
/// bytes one by one.
///
/// # Safety
/// `rows` must have `n` entries of `width`. Every byte of every block must be readable on the
/// source side and writable on the destination side. The sides must not overlap.
pub unsafe fn scalar_reference(
    direction: Direction,
    width: Width,
    (user, packed): (*mut u8, *mut u8),
    n: u64,
    rows: *const u8,
    packed_stride: i64,
    len: u64,
) {
    for i in 0..n as usize {
        // SAFETY: the caller promises entry `i` of `n`, and byte `k` of block `i` on both sides.
        unsafe {
            let row = match width {
                Width::I32 => i32::load(rows, i),
                Width::I64 => i64::load(rows, i),
            };
            for k in 0..len as isize {
                let u = user.wrapping_offset(row + k);
                let p = packed.wrapping_offset(i as isize * packed_stride as isize + k);
                match direction {
                    Direction::Pack => p.write(u.read()),
                    Direction::Unpack => u.write(p.read()),
                }
            }
        }
    }
}

/// Copies `n` blocks of `LEN` bytes by the loop that fits the direction and the stride on the
/// packed side. If there are many blocks that are far apart, the function prefetches the blocks,
/// moves them one by one, or both ([`MAX_PREFETCHED_BLOCKS`], [`PAGES`]).
///
/// # Safety
/// `rows` must have `n` entries of the type `O`. Every byte of every block must be readable on the
/// source side and writable on the destination side. The sides must not overlap. The machine must
/// have the instructions of `I`.
#[inline(always)]
unsafe fn made_for<I: Code, const PACK: bool, O: Offset, const LEN: usize>(
    user: *mut u8,
    packed: *mut u8,
    n: usize,
    rows: *const u8,
    stride: isize,
) {
    let mut rows = Listed::<O> { base: user, next: rows.cast() };
    let (mut packed, mut left) = (packed, n);
    // SAFETY: `rows` has `n` entries, more than `MAX_UNSAMPLED_BLOCKS`.
    let far = n > MAX_UNSAMPLED_BLOCKS && unsafe { spread::<O>(rows.next.cast(), n) } >= FAR;
    let (ahead, apart) = (far && n <= MAX_PREFETCHED_BLOCKS, far && n > PAGES);
    while left > 0 {
        let n = if ahead { left.min(AHEAD) } else { left };
        left -= n;
        if ahead {
            // SAFETY: `left` entries follow the next `n` ones, and at most `left` of them are read.
            unsafe {
                prefetch::<I, PACK>(Listed { next: rows.next.wrapping_add(n), ..rows }, left.min(AHEAD))
            };
        }
        // SAFETY: in every case these are the next `n` of the blocks that the caller promises.
        // `pack` and `unpack` are used only if the stride on the packed side is `LEN`.
        unsafe {
            match (PACK, stride == LEN as isize && !apart) {
                (true, true) if const { constant_length::has_pack::<I>(LEN) } => {
                    constant_length::pack::<I, LEN>(packed, rows, n)
                }
                (true, _) => constant_length::copy_blocks::<I, LEN>(Strided::new(packed, stride), rows, n),
                (false, true) if const { constant_length::has_unpack::<I>(LEN) } => {
                    constant_length::unpack::<I, LEN>(rows, packed, n, true)
                }
                (false, _) => constant_length::copy_blocks::<I, LEN>(rows, Strided::new(packed, stride), n),
            }
        }
        rows.next = rows.next.wrapping_add(n);
        packed = packed.wrapping_offset(stride.wrapping_mul(n as isize));
    }
}

/// Number of pages that the second-level TLB holds. If blocks lie in more pages, most accesses need
/// a page walk, and blocks are moved one by one: the entry of each block is read just before the
/// block is moved. Reading four entries before their four blocks are moved would take 13 % more
/// time (87,500 blocks of 12 B in 40 MB; Emerald Rapids). If the TLB holds all pages, reading four
/// entries before their four blocks are moved takes 15 % less time than moving blocks one by one.
const PAGES: usize = 2048;

/// Number of bytes of [`PAGES`] pages. Some offsets of the table that lists the blocks are sampled.
/// The blocks are far apart if the lowest and the highest sampled offset differ by at least this
/// number of bytes.
const FAR: usize = 4096 * PAGES;

/// Number of blocks that are prefetched while the blocks before them are moved. A prefetch brings
/// the cache line, and with it the translation of the page. Hardware prefetchers do not follow
/// blocks at listed offsets.
const AHEAD: usize = 32;

/// How far the blocks are spread over memory is sampled only if there are more blocks than this.
const MAX_UNSAMPLED_BLOCKS: usize = 16 * AHEAD;

/// Maximum number of blocks for which prefetching pays: it gains 2 to 12 %. For more blocks,
/// prefetching can cost up to 6 % (300,000 blocks of 12 B in 137 MB; Emerald Rapids).
const MAX_PREFETCHED_BLOCKS: usize = 1 << 15;

/// Returns the distance in bytes between the lowest and the highest of eight offsets, which are
/// sampled from all parts of the table `rows`.
///
/// # Safety
/// `rows` must have `n` entries of type `O`, and `n` must be greater than [`MAX_UNSAMPLED_BLOCKS`].
#[inline(never)]
unsafe fn spread<O: Offset>(rows: *const u8, n: usize) -> usize {
    let (mut least, mut most) = (isize::MAX, isize::MIN);
    for i in 0..8 {
        // SAFETY: the index is at most `n - 1`, as `i` is at most 7.
        let row = unsafe { O::load(rows, i * (n - 1) / 7) };
        (least, most) = (least.min(row), most.max(row));
    }
    most.abs_diff(least)
}

/// Prefetches the cache lines in which the next `n` blocks of the cursor `rows` begin.
///
/// # Safety
/// At least `n` blocks must remain in the cursor `rows`.
#[inline(never)]
unsafe fn prefetch<I: Code, const PACK: bool>(mut rows: impl Cursor, n: usize) {
    for _ in 0..n {
        // SAFETY: fewer than `n` blocks have been taken, so the next block has its entry.
        let at = unsafe { rows.address(0) };
        if PACK {
            I::prefetch::<false>(at)
        } else {
            I::prefetch::<true>(at)
        }
        rows.advance(1);
    }
}

/// Marker type. Its [`Body`] is the code of the functions for blocks of `LEN` bytes, one direction
/// and offsets of the type `O`, generic over the instruction set.
struct OfLength<const PACK: bool, O, const LEN: usize>(PhantomData<O>);

impl<const PACK: bool, O: Offset, const LEN: usize> Body for OfLength<PACK, O, LEN> {
    const ONE_LENGTH: Option<OneLength> = Some(OneLength::Rows(LEN));

    #[inline(always)]
    unsafe fn run<I: Functions>(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        rows: *const u8,
        packed_stride: i64,
        _len: u64,
    ) {
        // SAFETY: the conditions of `made_for` are those of this function, for the length and width
        // of the body.
        unsafe { made_for::<I, PACK, O, LEN>(user, packed, n as usize, rows, packed_stride as isize) }
    }
}

/// Marker type. Its [`Body`] is the code of the functions for blocks of any length, one direction
/// and offsets of the type `O`, generic over the instruction set.
struct OfAnyLength<const PACK: bool, O>(PhantomData<O>);

impl<const PACK: bool, O: Offset> Body for OfAnyLength<PACK, O> {
    #[inline(always)]
    unsafe fn run<I: Functions>(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        rows: *const u8,
        packed_stride: i64,
        len: u64,
    ) {
        let user = Listed::<O> { base: user, next: rows.cast() };
        let packed = Strided::new(packed, packed_stride as isize);
        let (n, len) = (n as usize, len as usize);
        // SAFETY: the caller promises `n` entries and `n` blocks of `len` bytes, without overlap
        // between the sides, and a machine with the instructions of `I`. The destination is the
        // side that the direction writes.
        unsafe {
            if PACK {
                run_time_length::any::<I>(packed, user, n, len);
            } else {
                run_time_length::any::<I>(user, packed, n, len);
            }
        }
    }
}

/// Declares `LENGTHS`, the block lengths for which functions are made, and `lookup`, which finds
/// the function for a length.
macro_rules! lengths {
    ($($len:literal)*) => {
        /// Block lengths in bytes for which functions are made, in ascending order.
        pub const LENGTHS: &[u16] = &[$($len),*];

        /// Returns the function for blocks of `len` bytes. If `len` is 0 or no function is made for
        /// this length, the function for blocks of any length is returned.
        fn lookup<I: Functions, const PACK: bool, O: Offset>(len: u16) -> Function {
            match len {
                $($len => I::function::<OfLength<PACK, O, $len>>(),)*
                _ => I::function::<OfAnyLength<PACK, O>>(),
            }
        }
    };
}

lengths! { 1 2 4 8 12 16 20 24 32 40 48 64 }

/// Returns the function for blocks of `len` bytes (0 for any length), compiled for `level` or for a
/// lower level whose code is as good.
pub(super) fn get(len: u16, width: Width, direction: Direction, level: Level) -> Function {
    with_code!(level, I => match (direction, width) {
        (Direction::Pack, Width::I32) => lookup::<I, true, i32>(len),
        (Direction::Pack, Width::I64) => lookup::<I, true, i64>(len),
        (Direction::Unpack, Width::I32) => lookup::<I, false, i32>(len),
        (Direction::Unpack, Width::I64) => lookup::<I, false, i64>(len),
    })
}

/// Returns which function moves blocks of `len` bytes on a target of `level`: the block length (0
/// for any length) and the level for which this function is made.
fn choose(len: u64, level: Level) -> (u16, Level) {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok()).unwrap_or(0);
    (made_for, OneLength::Rows(made_for.into()).serving(level))
}

/// Returns the function that moves blocks of `len` bytes whose user offsets are listed in a table
/// with entries of `width`.
#[inline]
pub fn function(len: u64, width: Width, direction: Direction, level: Level) -> Function {
    // `get`, which is only a `match` on the length, is used here, and not `choose`, which searches
    // a list: callers with many short runs of bytes look up a function for each run.
    get(u16::try_from(len).unwrap_or(0), width, direction, level)
}

#[cfg(test)]
mod tests;
