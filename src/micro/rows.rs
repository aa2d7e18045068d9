//! Rows: `n` blocks of `len` bytes at listed user offsets, at a constant stride on the packed side.
//!
//! Packing gathers blocks, unpacking scatters them. The table is a column of offsets of 4 or 8
//! bytes. These loops are limited by latency (`load row; load [user + row]`); they are therefore
//! plain and unrolled, and the processor overlaps their loads.

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
    /// in order. `rows` has `n` entries of the width for which the function is made.
    pub type Function = unsafe extern "C" fn(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        rows: *const u8,
        packed_stride: i64,
        len: u64,
    );
}

/// Family that copies equal blocks at listed user offsets. There is one block per row, at
/// `a + (row i, i * packed-step)`, where `a` stands for the call's addresses on the two sides.
/// Blocks are moved in order. The variant is the width of the column.
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
        if Width::of(column) as u8 != call.callee().variant() {
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

/// Returns the micro-kernel for blocks of `len` bytes at the offsets in a column of `width`.
pub fn micro(len: u64, width: Width, direction: Direction, level: Level) -> Micro {
    let (len, level) = choose(len, level);
    Micro::new(&FAMILY, direction, level).with_length(len).with_variant(width as u8)
}

/// Returns the call that moves a block of `len` bytes for every row of `column`, which is the table
/// with the index `table` in the plan.
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
    Call::new(micro(len, Width::of(column), direction, level), arguments)
}

/// Returns the destination and the source of a move between the two sides.
#[inline(always)]
pub(super) fn ends<const PACK: bool>(user: *mut u8, packed: *mut u8) -> (*mut u8, *const u8) {
    if PACK { (packed, user) } else { (user, packed) }
}

/// Scalar reference of the family: copies the bytes one by one.
///
/// # Safety
/// `rows` must have `n` entries of `width`. Every byte of every block must be readable on the
/// source side and writable on the destination side. The sides must not overlap.
pub unsafe fn twin(
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

/// Copies blocks of `LEN` bytes by the loop that fits the direction and the stride on the packed
/// side. If there are many blocks that are far apart, it prefetches them, moves them one by one, or
/// both ([`MANY`], [`PAGES`]).
///
/// # Safety
/// The conditions of [`twin`] with `len = LEN` and entries of type `O`. The machine must have the
/// instructions of `I`.
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
    // SAFETY: `rows` has `n` entries, more than `FEW`.
    let far = n > FEW && unsafe { spread::<O>(rows.next.cast(), n) } >= FAR;
    let (ahead, apart) = (far && n <= MANY, far && n > PAGES);
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
                (true, _) => constant_length::each::<I, LEN>(Strided::new(packed, stride), rows, n),
                (false, true) if const { constant_length::has_unpack::<I>(LEN) } => {
                    constant_length::unpack::<I, LEN>(rows, packed, n, true)
                }
                (false, _) => constant_length::each::<I, LEN>(rows, Strided::new(packed, stride), n),
            }
        }
        rows.next = rows.next.wrapping_add(n);
        packed = packed.wrapping_offset(stride.wrapping_mul(n as isize));
    }
}

/// Number of pages that the second-level TLB holds. If blocks lie in more pages, most accesses need
/// a page walk, and blocks are moved one by one: the entry of each block is read just before the
/// block is moved. Reading four entries before their four blocks are moved would take 13 % more
/// time (87,500 blocks of 12 B in 40 MB; Emerald Rapids). If the TLB holds the pages, reading four
/// entries first takes 15 % less time.
const PAGES: usize = 2048;

/// Number of bytes of [`PAGES`] pages. Blocks are far apart if the lowest and the highest sampled
/// entry of their column differ by at least this number of bytes.
const FAR: usize = 4096 * PAGES;

/// Number of blocks that are prefetched while the blocks before them are moved. A prefetch brings
/// the cache line, and with it the translation of the page. Hardware prefetchers do not follow
/// blocks at listed offsets.
const AHEAD: usize = 32;

/// The spread of addresses is sampled only for more blocks than this.
const FEW: usize = 16 * AHEAD;

/// Maximum number of blocks for which prefetching gains, by 2 to 12 %. For more blocks it can cost
/// up to 6 % (300,000 blocks of 12 B in 137 MB; Emerald Rapids).
const MANY: usize = 1 << 15;

/// Returns the distance in bytes between the lowest and the highest of eight entries, which are
/// sampled from all parts of the column.
///
/// # Safety
/// `rows` must have `n` entries of type `O`, and `n` must be greater than [`FEW`].
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

/// Prefetches the cache lines in which the next `n` blocks begin.
///
/// # Safety
/// `rows` must have `n` entries left.
#[inline(never)]
unsafe fn prefetch<I: Code, const PACK: bool>(mut rows: impl Cursor, n: usize) {
    for _ in 0..n {
        // SAFETY: fewer than `n` blocks have been taken, so the next block has its entry.
        let at = unsafe { rows.at(0) };
        if PACK {
            I::prefetch::<false>(at)
        } else {
            I::prefetch::<true>(at)
        }
        rows.advance(1);
    }
}

/// Body for blocks of `LEN` bytes in one direction, at offsets of one width.
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

/// Body for blocks of any length in one direction, at offsets of one width.
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

/// Declares the lengths for which functions are made, and the function that looks them up.
macro_rules! lengths {
    ($($len:literal)*) => {
        /// Lengths in bytes for which functions are made, in ascending order.
        pub const LENGTHS: &[u16] = &[$($len),*];

        /// Returns the function for `len`. For 0, and for lengths for which no function is made, it
        /// is the function for any length.
        fn lookup<I: Functions, const PACK: bool, O: Offset>(len: u16) -> Function {
            match len {
                $($len => I::of::<OfLength<PACK, O, $len>>(),)*
                _ => I::of::<OfAnyLength<PACK, O>>(),
            }
        }
    };
}

lengths! { 1 2 4 8 12 16 20 24 32 40 48 64 }

/// Returns the function for `len` (0 for any length) at `level`, or at a lower level whose code is
/// as good.
pub(super) fn get(len: u16, width: Width, direction: Direction, level: Level) -> Function {
    with_code!(level, I => match (direction, width) {
        (Direction::Pack, Width::I32) => lookup::<I, true, i32>(len),
        (Direction::Pack, Width::I64) => lookup::<I, true, i64>(len),
        (Direction::Unpack, Width::I32) => lookup::<I, false, i32>(len),
        (Direction::Unpack, Width::I64) => lookup::<I, false, i64>(len),
    })
}

/// Returns which function moves blocks of `len` bytes at `level`: the length (0 for any) and the
/// level for which this function is made.
fn choose(len: u64, level: Level) -> (u16, Level) {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok()).unwrap_or(0);
    (made_for, OneLength::Rows(made_for.into()).serving(level))
}

/// Returns the function for blocks of `len` bytes.
#[inline]
pub fn function(len: u64, width: Width, direction: Direction, level: Level) -> Function {
    // Only the table in `get` is used, and not `choose`: callers with many short runs look up a
    // function for each of them.
    get(u16::try_from(len).unwrap_or(0), width, direction, level)
}

#[cfg(test)]
mod tests;
