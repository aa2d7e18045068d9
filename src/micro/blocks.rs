//! Blocks: `n` blocks of listed lengths at listed offsets on both sides.
//!
//! The leaf for what has no pattern. Lengths differ from block to block; a branch on the length is learnt by the processor when a
//! short list comes again and again, and mispredicted when the list is long. AVX-512 then moves up to 64 bytes under a mask
//! without one (1 to 8 doubles a block, GB/s; Sapphire Rapids: 1000 blocks by branches 20, by masks 10 to 18; 100,000 blocks
//! 5 and 8).

use super::rows::ends;
use super::side::Entry;
use super::{Argument, Call, Direction, Family, Micro, Role, Width, block};
use crate::column::Column;
use crate::nest::{At, Trip};
use crate::target::Level;

/// `(user, packed, n, user_rows, packed_rows, len_rows)`: block `i` of `len_rows[i]` bytes lies at `user + user_rows[i]` and
/// at `packed + packed_rows[i]`; each column has `n` entries of the width that the function is made for. In order.
/// Lengths are not negative.
pub type Function = unsafe extern "C" fn(*mut u8, *mut u8, u64, *const u8, *const u8, *const u8);

/// Widths of the three columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Widths {
    /// Of the user offsets.
    pub user: Width,
    /// Of the packed offsets.
    pub packed: Width,
    /// Of the lengths.
    pub len: Width,
}

impl Widths {
    /// Those of user offsets, packed offsets and lengths.
    pub fn of([user, packed, len]: [&Column; 3]) -> Widths {
        Widths { user: Width::of(user), packed: Width::of(packed), len: Width::of(len) }
    }

    /// As the number of a variant: one bit a column.
    pub(super) fn number(self) -> u8 {
        self.user as u8 | (self.packed as u8) << 1 | (self.len as u8) << 2
    }

    fn of_number(number: u8) -> Widths {
        let [user, packed, len] = [0, 1, 2].map(|bit| Width::of_number(number >> bit));
        Widths { user, packed, len }
    }
}

/// The columns of a call, in the order of its parameters.
const COLUMNS: [Role; 3] = [Role::UserOffsets, Role::PackedOffsets, Role::Lengths];

/// The call that moves the blocks of `columns`, which are `tables` of the plan.
pub fn call(direction: Direction, level: Level, columns: [&Column; 3], tables: [u32; 3]) -> Call {
    let rows = (Role::Trip, Argument::Number(Trip::fixed(columns[0].len() as u64)));
    let arguments = COLUMNS.into_iter().zip(tables.map(Argument::Table));
    Call::new(Micro::blocks(Widths::of(columns), direction, level), arguments.chain([rows]))
}

/// Blocks of listed lengths at listed offsets. The variant is the widths of the columns.
pub static FAMILY: Family = Family {
    name: "blocks",
    directed: true,
    parameters: |_| {
        &[Role::User, Role::Packed, Role::Trip, Role::UserOffsets, Role::PackedOffsets, Role::Lengths]
    },
    variant: |number, f| {
        let Widths { user, packed, len } = Widths::of_number(number);
        write!(f, ".{user}.{packed}.{len}")
    },
    address: |micro| function(Widths::of_number(micro.variant()), micro.direction(), micro.level()) as usize,
    check: |call| {
        let columns = COLUMNS.map(|role| call.column(role));
        if columns.iter().any(|c| c.len() as u64 != call.number(Role::Trip)) {
            return Err("columns of different length");
        }
        if Widths::of(columns).number() != call.callee().variant() {
            return Err("micro-kernel made for columns of other widths");
        }
        Ok(())
    },
    blocks: |call, f| {
        let [user, packed, len] = COLUMNS.map(|role| call.column(role));
        for i in 0..len.len() {
            f(At::new(user.get(i), packed.get(i)), len.get(i) as u64);
        }
    },
};

/// The meaning: the same bytes one by one.
///
/// # Safety
/// Each of `[user rows, packed rows, lengths]` has `n` entries of its width; every byte of every block is valid on both
/// sides; the sides do not overlap.
pub unsafe fn twin(
    direction: Direction,
    widths: Widths,
    (user, packed): (*mut u8, *mut u8),
    n: u64,
    columns: [*const u8; 3],
) {
    let entry = |width: Width, column: *const u8, i: usize| {
        // SAFETY: `i < n` below.
        unsafe {
            match width {
                Width::I32 => i32::at(column, i),
                Width::I64 => i64::at(column, i),
            }
        }
    };
    for i in 0..n as usize {
        let u = user.wrapping_offset(entry(widths.user, columns[0], i));
        let p = packed.wrapping_offset(entry(widths.packed, columns[1], i));
        for k in 0..entry(widths.len, columns[2], i) {
            let (u, p) = (u.wrapping_offset(k), p.wrapping_offset(k));
            // SAFETY: byte `k` of block `i`, which the caller promises.
            unsafe {
                match direction {
                    Direction::Pack => p.write(u.read()),
                    Direction::Unpack => u.write(p.read()),
                }
            }
        }
    }
}

/// All blocks; `copy` moves one of a length known at run time.
///
/// # Safety
/// As [`twin`], entries of types `U`, `P` and `L`; `copy` writes exactly the block.
#[inline(always)]
unsafe fn all<const PACK: bool, U: Entry, P: Entry, L: Entry>(
    user: *mut u8,
    packed: *mut u8,
    n: usize,
    [users, packeds, lens]: [*const u8; 3],
    copy: impl Fn(*mut u8, *const u8, usize),
) {
    for i in 0..n {
        // SAFETY: entry `i` of `n` of each column.
        let (u, p, len) = unsafe { (U::at(users, i), P::at(packeds, i), L::at(lens, i) as usize) };
        let (dst, src) = ends::<PACK>(user.wrapping_offset(u), packed.wrapping_offset(p));
        copy(dst, src, len);
    }
}

/// The C function of one level; `$copy` moves one block.
macro_rules! level {
    ($name:ident, $copy:path, $(#[$feature:meta])?) => {
        mod $name {
            use super::Entry;

            /// # Safety
            /// As [`super::twin`], on a machine of this level.
            $(#[$feature])?
            pub(super) unsafe extern "C" fn move_all<const PACK: bool, U: Entry, P: Entry, L: Entry>(
                user: *mut u8,
                packed: *mut u8,
                n: u64,
                users: *const u8,
                packeds: *const u8,
                lens: *const u8,
            ) {
                // SAFETY: as promised by the caller; every block that the closure is given is one of them.
                unsafe {
                    super::all::<PACK, U, P, L>(user, packed, n as usize, [users, packeds, lens], |d, s, len| {
                        $copy(d, s, len)
                    })
                }
            }
        }
    };
}

level!(baseline, super::by_length::<L, 16>,);
#[cfg(target_arch = "aarch64")]
level!(neon, super::by_length::<L, 32>,);
#[cfg(target_arch = "x86_64")]
level!(avx2, super::by_length::<L, 32>, #[target_feature(enable = "avx2,bmi1,bmi2,fma")]);
/// Lists longer than this many blocks are copied under masks: a processor does not learn the lengths of more.
#[cfg(target_arch = "x86_64")]
const LEARNT: u64 = 4096;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::Entry;

    /// # Safety
    /// As [`super::twin`], on a machine of this level.
    #[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) unsafe extern "C" fn move_all<const PACK: bool, U: Entry, P: Entry, L: Entry>(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        users: *const u8,
        packeds: *const u8,
        lens: *const u8,
    ) {
        // SAFETY: as promised by the caller; every block that the closure is given is one of them.
        unsafe {
            if n <= super::LEARNT {
                return super::avx2::move_all::<PACK, U, P, L>(user, packed, n, users, packeds, lens);
            }
            super::all::<PACK, U, P, L>(user, packed, n as usize, [users, packeds, lens], |d, s, len| {
                super::masked::<L>(d, s, len)
            })
        }
    }
}

/// Copies a block: in line where lengths are entries of 4 bytes. Those of 8 are there for lengths of 2 GiB, which a call of the C
/// library's `memcpy` serves best, and small code serves the others well enough.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
unsafe fn by_length<L: Entry, const WIDE: usize>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        if const { size_of::<L>() == 8 } {
            std::ptr::copy_nonoverlapping(src, dst, len);
        } else {
            block::run_time::<WIDE>(dst, src, len);
        }
    }
}

/// Copies a block: up to 64 bytes under a mask, more in whole pieces with the last one overlapping.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn masked<L: Entry>(dst: *mut u8, src: *const u8, len: usize) {
    use std::arch::x86_64::{_bzhi_u64, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8};
    // SAFETY: bytes whose mask bit is 0 are neither read nor written; the others lie below `len`.
    unsafe {
        if len <= 64 {
            let mask = _bzhi_u64(u64::MAX, len as u32);
            _mm512_mask_storeu_epi8(dst.cast(), mask, _mm512_maskz_loadu_epi8(mask, src.cast()));
        } else {
            by_length::<L, 32>(dst, src, len);
        }
    }
}

fn pick<const PACK: bool, U: Entry, P: Entry, L: Entry>(level: Level) -> Function {
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => avx512::move_all::<PACK, U, P, L>,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => avx2::move_all::<PACK, U, P, L>,
        #[cfg(target_arch = "aarch64")]
        Level::Neon => neon::move_all::<PACK, U, P, L>,
        _ => baseline::move_all::<PACK, U, P, L>,
    }
}

fn pick_widths<const PACK: bool>(widths: Widths, level: Level) -> Function {
    use Width::{I32, I64};
    match (widths.user, widths.packed, widths.len) {
        (I32, I32, I32) => pick::<PACK, i32, i32, i32>(level),
        (I32, I32, I64) => pick::<PACK, i32, i32, i64>(level),
        (I32, I64, I32) => pick::<PACK, i32, i64, i32>(level),
        (I32, I64, I64) => pick::<PACK, i32, i64, i64>(level),
        (I64, I32, I32) => pick::<PACK, i64, i32, i32>(level),
        (I64, I32, I64) => pick::<PACK, i64, i32, i64>(level),
        (I64, I64, I32) => pick::<PACK, i64, i64, i32>(level),
        (I64, I64, I64) => pick::<PACK, i64, i64, i64>(level),
    }
}

/// The function for columns of `widths`.
pub fn function(widths: Widths, direction: Direction, level: Level) -> Function {
    match direction {
        Direction::Pack => pick_widths::<true>(widths, level),
        Direction::Unpack => pick_widths::<false>(widths, level),
    }
}

#[cfg(test)]
mod tests;
