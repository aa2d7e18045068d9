//! Blocks: `n` blocks of listed lengths at listed offsets on both sides.
//!
//! The leaf for what has no pattern. Lengths differ from block to block; a branch on the length is learnt by the processor when a
//! short list comes again and again, and mispredicted when the list is long. AVX-512 then moves up to 64 bytes under a mask
//! without one (1 to 8 doubles a block, GB/s; Sapphire Rapids: 1000 blocks by branches 20, by masks 10 to 18; 100,000 blocks
//! 5 and 8).

use std::marker::PhantomData;

use super::cursor::Offset;
use super::functions::functions;
use super::isa::{Code, Isa, with_code};
use super::rows::ends;
use super::run;
use super::{Argument, Call, Direction, Family, Micro, Role, TableIndex, Width, block};
use crate::column::Column;
use crate::nest::{Offsets, Quantity};
use crate::target::Level;

functions! {
    /// Copies block `i` of `lens[i]` bytes between `user + users[i]` and `packed + packeds[i]`, in order; each column has `n` entries of the width that
    /// the function is made for. Lengths are not negative.
    pub type Function = unsafe extern "C" fn(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        users: *const u8,
        packeds: *const u8,
        lens: *const u8,
    );
}

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
    /// Returns those of user offsets, packed offsets and lengths.
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

/// Returns the call that moves the blocks of `columns`, which are `tables` of the plan.
pub fn call(direction: Direction, level: Level, columns: [&Column; 3], tables: [TableIndex; 3]) -> Call {
    let rows = (Role::Iterations, Argument::Number(Quantity::fixed(columns[0].len() as u64)));
    let arguments = COLUMNS.into_iter().zip(tables.map(Argument::Table));
    Call::new(micro(Widths::of(columns), direction, level), arguments.chain([rows]))
}

/// Blocks of listed lengths at listed offsets: as `blocks` of a nest, over three columns. The variant is the widths of the columns.
pub static FAMILY: Family = Family {
    name: "blocks",
    directed: true,
    parameters: |_| {
        &[Role::User, Role::Packed, Role::Iterations, Role::UserOffsets, Role::PackedOffsets, Role::Lengths]
    },
    variant: |number, f| {
        let Widths { user, packed, len } = Widths::of_number(number);
        write!(f, ".{user}.{packed}.{len}")
    },
    transform: Family::copied,
    address: |micro| function(Widths::of_number(micro.variant()), micro.direction(), micro.level()) as usize,
    check: |call| {
        let columns = COLUMNS.map(|role| call.column(role));
        if columns.iter().any(|c| c.len() as u64 != call.number(Role::Iterations)) {
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
            f(Offsets::new(user.get(i), packed.get(i)), len.get(i) as u64);
        }
    },
    takes: Family::nothing,
};

/// Returns the micro-kernel for columns of `widths`.
pub fn micro(widths: Widths, direction: Direction, level: Level) -> Micro {
    Micro::new(&FAMILY, direction, level).with_variant(widths.number())
}

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
                Width::I32 => i32::load(column, i),
                Width::I64 => i64::load(column, i),
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
unsafe fn all<const PACK: bool, U: Offset, P: Offset, L: Offset>(
    user: *mut u8,
    packed: *mut u8,
    n: usize,
    [users, packeds, lens]: [*const u8; 3],
    copy: impl Fn(*mut u8, *const u8, usize),
) {
    for i in 0..n {
        // SAFETY: entry `i` of `n` of each column.
        let (u, p, len) = unsafe { (U::load(users, i), P::load(packeds, i), L::load(lens, i) as usize) };
        let (dst, src) = ends::<PACK>(user.wrapping_offset(u), packed.wrapping_offset(p));
        copy(dst, src, len);
    }
}

/// Lists longer than this many blocks are copied under masks: a processor does not learn the lengths of more.
const LEARNT: u64 = 4096;

/// Blocks in a direction, in columns of entries of these types.
struct Columns<const PACK: bool, U, P, L>(PhantomData<(U, P, L)>);

impl<const PACK: bool, U: Offset, P: Offset, L: Offset> Body for Columns<PACK, U, P, L> {
    #[inline(always)]
    unsafe fn run<I: Functions>(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        users: *const u8,
        packeds: *const u8,
        lens: *const u8,
    ) {
        let columns = [users, packeds, lens];
        // SAFETY: as promised by the caller; every block that a closure is given is one of them.
        unsafe {
            if const { I::MASKED_UP_TO == 0 } {
                all::<PACK, U, P, L>(user, packed, n as usize, columns, |d, s, len| {
                    by_length::<I, L>(d, s, len)
                });
            } else if n <= LEARNT {
                I::below::<Self>()(user, packed, n, users, packeds, lens);
            } else {
                all::<PACK, U, P, L>(user, packed, n as usize, columns, |d, s, len| {
                    masked::<I, L>(d, s, len)
                });
            }
        }
    }
}

/// Copies a block: in line where lengths are entries of 4 bytes. Those of 8 are there for lengths of 2 GiB, which a call
/// of [`run::copy`] serves best, and small code serves the others well enough.
///
/// # Safety
/// `len` bytes readable at `src`, writable at `dst`, not overlapping.
#[inline(always)]
unsafe fn by_length<I: Isa, L: Offset>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        if const { size_of::<L>() == 8 } {
            run::copy(dst, src, len);
        } else {
            block::run_time_by::<I>(dst, src, len);
        }
    }
}

/// Copies a block: under a mask if it is short enough, else in pieces of the instruction set below, as short lists are.
///
/// # Safety
/// As [`by_length`]; the machine has the instructions of `I`.
#[inline(always)]
unsafe fn masked<I: Code, L: Offset>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as promised by the caller.
    unsafe {
        if len <= I::MASKED_UP_TO {
            I::copy_masked(dst, src, len);
        } else {
            by_length::<I::Below, L>(dst, src, len);
        }
    }
}

/// The function for columns of `widths`.
fn lookup<I: Functions, const PACK: bool>(widths: Widths) -> Function {
    use Width::{I32, I64};
    match (widths.user, widths.packed, widths.len) {
        (I32, I32, I32) => I::of::<Columns<PACK, i32, i32, i32>>(),
        (I32, I32, I64) => I::of::<Columns<PACK, i32, i32, i64>>(),
        (I32, I64, I32) => I::of::<Columns<PACK, i32, i64, i32>>(),
        (I32, I64, I64) => I::of::<Columns<PACK, i32, i64, i64>>(),
        (I64, I32, I32) => I::of::<Columns<PACK, i64, i32, i32>>(),
        (I64, I32, I64) => I::of::<Columns<PACK, i64, i32, i64>>(),
        (I64, I64, I32) => I::of::<Columns<PACK, i64, i64, i32>>(),
        (I64, I64, I64) => I::of::<Columns<PACK, i64, i64, i64>>(),
    }
}

/// Returns the function for columns of `widths`.
pub fn function(widths: Widths, direction: Direction, level: Level) -> Function {
    with_code!(level, I => match direction {
        Direction::Pack => lookup::<I, true>(widths),
        Direction::Unpack => lookup::<I, false>(widths),
    })
}

#[cfg(test)]
mod tests;
