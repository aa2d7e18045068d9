//! Blocks: `n` blocks of listed lengths at listed offsets on both sides.
//!
//! This family moves layouts without any pattern. Lengths differ from block to block. The processor
//! learns a branch on the length if a short list is used again and again, but mispredicts it if the
//! list is long. For long lists, AVX-512 moves blocks of up to 64 bytes under a mask, without such
//! a branch. Blocks of 1 to 8 doubles on Sapphire Rapids: 1000 blocks reach 20 GB/s with branches
//! and 10 to 18 with masks; 100,000 blocks reach 5 and 8 GB/s.

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
    /// Copies block `i` of `lens[i]` bytes between `user + users[i]` and `packed + packeds[i]`, in
    /// order. Each column has `n` entries of the width for which the function is made. No length is
    /// negative.
    pub type Function = unsafe extern "C" fn(
        user: *mut u8,
        packed: *mut u8,
        n: u64,
        users: *const u8,
        packeds: *const u8,
        lens: *const u8,
    );
}

/// Widths of the three columns of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Widths {
    /// Width of the user offsets.
    pub user: Width,
    /// Width of the packed offsets.
    pub packed: Width,
    /// Width of the lengths.
    pub len: Width,
}

impl Widths {
    /// Returns the widths of three columns: user offsets, packed offsets and lengths.
    pub fn of([user, packed, len]: [&Column; 3]) -> Widths {
        Widths { user: Width::of(user), packed: Width::of(packed), len: Width::of(len) }
    }

    /// Returns the number of the variant for these widths. The number has one bit per column.
    pub(super) fn number(self) -> u8 {
        self.user as u8 | (self.packed as u8) << 1 | (self.len as u8) << 2
    }

    fn of_number(number: u8) -> Widths {
        let [user, packed, len] = [0, 1, 2].map(|bit| Width::of_number(number >> bit));
        Widths { user, packed, len }
    }
}

/// Roles of the columns of a call, in the order of its parameters.
const COLUMNS: [Role; 3] = [Role::UserOffsets, Role::PackedOffsets, Role::Lengths];

/// Returns the call that moves the blocks that `columns` list. In the plan, the columns are the
/// tables with the indices `tables`.
pub fn call(direction: Direction, level: Level, columns: [&Column; 3], tables: [TableIndex; 3]) -> Call {
    let rows = (Role::Iterations, Argument::Number(Quantity::fixed(columns[0].len() as u64)));
    let arguments = COLUMNS.into_iter().zip(tables.map(Argument::Table));
    Call::new(micro(Widths::of(columns), direction, level), arguments.chain([rows]))
}

/// Family that copies blocks of listed lengths at listed offsets. Three columns list the user
/// offsets, packed offsets and lengths, as for the node `blocks` of a nest. The number of the variant encodes the widths of the
/// columns.
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

/// Scalar reference of the family: copies the bytes one by one.
///
/// # Safety
/// Each of the columns (user offsets, packed offsets, lengths) must have `n` entries of its width.
/// Every byte of every block must be readable on the source side and writable on the destination
/// side. The sides must not overlap.
pub unsafe fn twin(
    direction: Direction,
    widths: Widths,
    (user, packed): (*mut u8, *mut u8),
    n: u64,
    columns: [*const u8; 3],
) {
    let entry = |width: Width, column: *const u8, i: usize| {
        // SAFETY: all callers below pass an `i` less than `n`, and the width that belongs to the
        // column; the caller of `twin` promises `n` entries.
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
            // SAFETY: `u` and `p` are byte `k` of block `i` on both sides, which the caller
            // promises.
            unsafe {
                match direction {
                    Direction::Pack => p.write(u.read()),
                    Direction::Unpack => u.write(p.read()),
                }
            }
        }
    }
}

/// Copies all blocks. `copy` copies one block of a length known only at run time.
///
/// # Safety
/// The conditions of [`twin`], with entries of the types `U`, `P` and `L`. `copy` must write
/// exactly the bytes of the block.
#[inline(always)]
unsafe fn all<const PACK: bool, U: Offset, P: Offset, L: Offset>(
    user: *mut u8,
    packed: *mut u8,
    n: usize,
    [users, packeds, lens]: [*const u8; 3],
    copy: impl Fn(*mut u8, *const u8, usize),
) {
    for i in 0..n {
        // SAFETY: `i` is less than `n`, and the caller promises `n` entries of these types in each
        // column.
        let (u, p, len) = unsafe { (U::load(users, i), P::load(packeds, i), L::load(lens, i) as usize) };
        let (dst, src) = ends::<PACK>(user.wrapping_offset(u), packed.wrapping_offset(p));
        copy(dst, src, len);
    }
}

/// Maximum number of blocks in a list that is copied with branches on the length. The processor
/// does not learn the lengths of a longer list, so its blocks are copied under masks.
const LEARNT: u64 = 4096;

/// Body for blocks in one direction. The columns of user offsets, packed offsets and lengths have
/// entries of the types `U`, `P` and `L`.
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
        // SAFETY: the caller promises `n` entries in each column, valid blocks, and a machine with
        // the instructions of `I`. Each block that a closure gets is one of these blocks. The
        // function of the instruction set below gets the same arguments.
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

/// Copies a block: in line if the column of lengths has entries of 4 bytes, or else by a call of
/// [`run::copy`]. Entries of 8 bytes exist for lengths of 2 GiB and more, for which the call is
/// best. If a column with entries of 8 bytes also has shorter blocks, the smaller code of the call
/// is good enough for them.
///
/// # Safety
/// `len` bytes must be readable at `src` and writable at `dst`, and the two must not overlap.
#[inline(always)]
unsafe fn by_length<I: Isa, L: Offset>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the conditions of both functions are those of this one.
    unsafe {
        if const { size_of::<L>() == 8 } {
            run::copy(dst, src, len);
        } else {
            block::run_time_by::<I>(dst, src, len);
        }
    }
}

/// Copies a block: under a mask if it is short enough. Otherwise it is copied in pieces of the
/// instruction set below, like the blocks of a short list.
///
/// # Safety
/// The conditions of [`by_length`]. The machine must have the instructions of `I`.
#[inline(always)]
unsafe fn masked<I: Code, L: Offset>(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the caller promises the block and the instructions of `I`, which include those of the
    // instruction set below. `copy_masked` gets at most `MASKED_UP_TO` bytes.
    unsafe {
        if len <= I::MASKED_UP_TO {
            I::copy_masked(dst, src, len);
        } else {
            by_length::<I::Below, L>(dst, src, len);
        }
    }
}

/// Returns the function for columns of `widths` with instruction set `I`.
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
