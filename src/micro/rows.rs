//! Rows: `n` blocks of `len` bytes at listed user offsets, a constant stride on the packed side.
//!
//! Packing gathers, unpacking scatters. The table is a column of 4- or 8-byte offsets; it is latency that bounds these loops
//! (`load row; load [user + row]`), so they are plain, unrolled, and leave the overlap to the processor.

use super::side::{self, Entry, Side};
use super::{Argument, Call, Direction, Family, Micro, Role, Width, lengths, turns};
use crate::column::Column;
use crate::nest::{At, Trip};
use crate::target::Level;

/// `(user, packed, n, rows, packed_stride, len)`: block `i` of `len` bytes lies at `user + rows[i]` and at
/// `packed + i * packed_stride`; `rows` has `n` entries of the width that the function is made for. In order.
pub type Function = unsafe extern "C" fn(*mut u8, *mut u8, u64, *const u8, i64, u64);

/// Equal blocks at listed user offsets. The variant is the width of the column.
pub static FAMILY: Family = Family {
    name: "rows",
    directed: true,
    parameters: |_| {
        &[Role::User, Role::Packed, Role::Trip, Role::UserOffsets, Role::PackedStep, Role::Length]
    },
    variant: |number, f| write!(f, ".{}", Width::of_number(number)),
    address: |micro| {
        let width = Width::of_number(micro.variant());
        get(micro.made_for().unwrap_or(0) as u16, width, micro.direction(), micro.level()) as usize
    },
    check: |call| {
        let column = call.column(Role::UserOffsets);
        if call.number(Role::Trip) != column.len() as u64 {
            return Err("another number of rows than its column has");
        }
        if Width::of(column) as u8 != call.callee().variant() {
            return Err("micro-kernel made for a column of another width");
        }
        Ok(())
    },
    blocks: |call, f| {
        let step = call.packed_step();
        for (i, row) in call.column(Role::UserOffsets).iter().enumerate() {
            f(At::new(row, step.wrapping_mul(i as i64)), call.number(Role::Length));
        }
    },
};

/// The call that moves a block of `len` bytes for every row of `column`, which is table `table` of the plan.
pub fn call(
    direction: Direction,
    level: Level,
    (column, table): (&Column, u32),
    packed_step: i64,
    len: u64,
) -> Call {
    let arguments = [
        (Role::Trip, Argument::Number(Trip::fixed(column.len() as u64))),
        (Role::UserOffsets, Argument::Table(table)),
        (Role::PackedStep, Argument::Step(packed_step)),
        (Role::Length, Argument::Number(Trip::fixed(len))),
    ];
    Call::new(Micro::rows(len, Width::of(column), direction, level), arguments)
}

/// Destination and source of a move between the two sides.
#[inline(always)]
pub(super) fn ends<const PACK: bool>(user: *mut u8, packed: *mut u8) -> (*mut u8, *const u8) {
    if PACK { (packed, user) } else { (user, packed) }
}

/// The meaning: the same bytes one by one.
///
/// # Safety
/// `rows` has `n` entries of `width`; every byte of every block is valid on both sides; the sides do not overlap.
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
        // SAFETY: entry `i` of `n`, then byte `k` of block `i`.
        unsafe {
            let row = match width {
                Width::I32 => i32::at(rows, i),
                Width::I64 => i64::at(rows, i),
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

/// Chooses the loop by direction and by whether the packed side is dense.
///
/// # Safety
/// As [`twin`] with `len = LEN`, entries of type `E`; the machine runs `LEVEL`.
#[inline(always)]
unsafe fn sides<const PACK: bool, E: Entry, const LEN: usize, const LEVEL: u8>(
    user: *mut u8,
    packed: *mut u8,
    n: usize,
    rows: *const u8,
    stride: isize,
) {
    let mut rows = side::Rows::<E> { user, rows: rows.cast() };
    let (mut packed, mut left) = (packed, n);
    // SAFETY: `n` entries.
    let sparse = unsafe { sparse::<E>(rows.rows.cast(), n) };
    while left > 0 {
        let n = if sparse { left.min(AHEAD) } else { left };
        left -= n;
        if sparse {
            // SAFETY: the entries after the next `n`, of which `left` remain.
            unsafe {
                prefetch::<PACK, E>(side::Rows { rows: rows.rows.wrapping_add(n), ..rows }, left.min(AHEAD))
            };
        }
        // SAFETY: the same blocks in every case.
        unsafe {
            match (PACK, stride == LEN as isize) {
                (true, true) if turns::has_pack(LEN, LEVEL) => turns::pack::<LEN, LEVEL, _>(packed, rows, n),
                (true, _) => turns::each::<LEN, LEVEL, _, _>(side::Strided::new(packed, stride), rows, n),
                (false, true) if turns::has_unpack(LEN, LEVEL) => {
                    turns::unpack::<LEN, LEVEL, _>(rows, packed, n, true)
                }
                (false, _) => turns::each::<LEN, LEVEL, _, _>(rows, side::Strided::new(packed, stride), n),
            }
        }
        rows.rows = rows.rows.wrapping_add(n);
        packed = packed.wrapping_offset(stride.wrapping_mul(n as isize));
    }
}

/// Blocks whose lines are asked for while the ones before them are moved.
const AHEAD: usize = 32;

/// Whether blocks lie so far apart that no prefetcher follows them, and take more than the second-level cache: as far as
/// the first and the last entry show. There asking ahead saves 4 to 15 in a hundred of the time; in the second-level cache it gains
/// nothing, in the first it costs as much as the copy (Sapphire Rapids).
///
/// # Safety
/// `rows` has `n` entries.
#[inline(always)]
unsafe fn sparse<E: Entry>(rows: *const u8, n: usize) -> bool {
    // SAFETY: the first and the last of `n` entries.
    n > 16 * AHEAD && unsafe { E::at(rows, n - 1).abs_diff(E::at(rows, 0)) } >= FAR.max(256 * n)
}

/// Bytes between the first and the last entry from which on blocks are asked for ahead.
const FAR: usize = 2 << 20;

/// Asks for the lines in which the next `n` blocks begin.
///
/// # Safety
/// `rows` has `n` entries.
#[inline(always)]
unsafe fn prefetch<const PACK: bool, E: Entry>(mut rows: side::Rows<E>, n: usize) {
    for _ in 0..n {
        // SAFETY: a remaining block has its entry.
        let at = unsafe { rows.at(0) };
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a hint, which no address makes fail.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};
            if PACK {
                _mm_prefetch::<_MM_HINT_T0>(at.cast())
            } else {
                _mm_prefetch::<_MM_HINT_ET0>(at.cast())
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = at;
        rows.advance(1);
    }
}

/// The C functions of one level.
macro_rules! level {
    ($name:ident, $level:path, $(#[$feature:meta])?) => {
        mod $name {
            use super::{Entry, lengths, side};

            /// # Safety
            /// As [`super::twin`] with `len = LEN`, on a machine of this level.
            $(#[$feature])?
            pub(super) unsafe extern "C" fn made_for<const PACK: bool, E: Entry, const LEN: usize>(
                user: *mut u8,
                packed: *mut u8,
                n: u64,
                rows: *const u8,
                packed_stride: i64,
                _len: u64,
            ) {
                // SAFETY: as promised by the caller.
                unsafe {
                    super::sides::<PACK, E, LEN, { $level }>(user, packed, n as usize, rows, packed_stride as isize)
                }
            }

            /// # Safety
            /// As [`super::twin`], on a machine of this level.
            $(#[$feature])?
            pub(super) unsafe extern "C" fn any<const PACK: bool, E: Entry>(
                user: *mut u8,
                packed: *mut u8,
                n: u64,
                rows: *const u8,
                packed_stride: i64,
                len: u64,
            ) {
                let user = side::Rows::<E> { user, rows: rows.cast() };
                let packed = side::Strided::new(packed, packed_stride as isize);
                let (n, len) = (n as usize, len as usize);
                // SAFETY: as promised by the caller.
                unsafe {
                    if PACK {
                        lengths::any::<{ $level }, _, _>(packed, user, n, len);
                    } else {
                        lengths::any::<{ $level }, _, _>(user, packed, n, len);
                    }
                }
            }
        }
    };
}

level!(baseline, super::turns::BASELINE,);
#[cfg(target_arch = "aarch64")]
level!(neon, super::turns::NEON,);
#[cfg(target_arch = "x86_64")]
level!(avx2, super::turns::AVX2, #[target_feature(enable = "avx2,bmi1,bmi2,fma")]);
#[cfg(target_arch = "x86_64")]
level!(
    avx512,
    super::turns::AVX512,
    #[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
);

/// Whether NEON has better code for rows of `len` bytes (0: any): pairs of blocks, or pairs of registers in one. At other lengths the
/// portable code is the same instructions.
const fn has_neon(len: u16) -> bool {
    matches!(len, 0 | 4 | 8 | 16) || len >= 32
}

/// `len` where it has code of its own at NEON, else one length for all, so that unused instances are not compiled.
#[cfg(target_arch = "aarch64")]
const fn own(len: u16) -> usize {
    if has_neon(len) { len as usize } else { 16 }
}

/// The lengths with instances of their own, and the lookup of them.
macro_rules! lengths {
    ($($len:literal)*) => {
        /// Lengths in bytes that have instances of their own, ascending.
        pub const LENGTHS: &[u16] = &[$($len),*];

        fn pick<const PACK: bool, E: Entry>(len: u16, level: Level) -> Function {
            match (level, len) {
                $(
                    #[cfg(target_arch = "x86_64")]
                    (Level::Avx512, $len) if const { $len == 64 } => avx512::made_for::<PACK, E, 64>,
                    #[cfg(target_arch = "x86_64")]
                    (Level::Avx2 | Level::Avx512, $len) => avx2::made_for::<PACK, E, $len>,
                    #[cfg(target_arch = "aarch64")]
                    (Level::Neon, $len) if const { has_neon($len) } => neon::made_for::<PACK, E, { own($len) }>,
                    #[cfg(target_arch = "aarch64")]
                    (Level::Neon, $len) => baseline::made_for::<PACK, E, $len>,
                    (Level::Baseline, $len) => baseline::made_for::<PACK, E, $len>,
                )*
                #[cfg(target_arch = "x86_64")]
                (Level::Avx512, _) => avx512::any::<PACK, E>,
                #[cfg(target_arch = "x86_64")]
                (Level::Avx2, _) => avx2::any::<PACK, E>,
                #[cfg(target_arch = "aarch64")]
                (Level::Neon, _) => neon::any::<PACK, E>,
                _ => baseline::any::<PACK, E>,
            }
        }
    };
}

lengths! { 1 2 4 8 12 16 20 24 32 40 48 64 }

/// The function made for `len` (0: for any length) at exactly `level`.
pub(super) fn get(len: u16, width: Width, direction: Direction, level: Level) -> Function {
    match (direction, width) {
        (Direction::Pack, Width::I32) => pick::<true, i32>(len, level),
        (Direction::Pack, Width::I64) => pick::<true, i64>(len, level),
        (Direction::Unpack, Width::I32) => pick::<false, i32>(len, level),
        (Direction::Unpack, Width::I64) => pick::<false, i64>(len, level),
    }
}

/// The instance for blocks of `len` bytes at `level`: the length it is made for (0: any) and the level it is made for.
pub(super) fn choose(len: u64, level: Level) -> (u16, Level) {
    let made_for = u16::try_from(len).ok().filter(|l| LENGTHS.binary_search(l).is_ok()).unwrap_or(0);
    // Below 64 bytes AVX-512 has nothing better: masked stores that cross lines cost more at random rows than they save (12 B:
    // 14 against 32 GB/s), and masked loads no less than two plain ones (24 B: 57 against 67; Sapphire Rapids, L1).
    let level = match level {
        Level::Avx512 if !matches!(made_for, 0 | 64) => Level::Avx2,
        Level::Neon if !has_neon(made_for) => Level::Baseline,
        level => level,
    };
    (made_for, level)
}

/// The function for blocks of `len` bytes.
#[inline]
pub fn function(len: u64, width: Width, direction: Direction, level: Level) -> Function {
    // By the tables of `get` alone: callers with many short runs ask every time.
    get(u16::try_from(len).unwrap_or(0), width, direction, level)
}

#[cfg(test)]
mod tests;
